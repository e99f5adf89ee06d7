"""Programs whose blocks repeat: what is found, that loops compute what straight lines do, and who stays as it was."""

from functools import partial

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.expressions import Op
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import make_plan
from nori_dyn.program import repeated_writer
from nori_dyn.program.emit import Target, emit
from nori_dyn.program.kernel import native as native_module
from nori_dyn.program.lowering import solution_program
from nori_dyn.program.repeated import LEAST, Statements, repeated_forms
from nori_dyn.program.repeated_writer import LoopWriter
from nori_dyn.program.statements import FORMATS
from nori_dyn.program.tracing import traced
from nori_dyn.program.writer import StatementWriter
from nori_dyn.solve.solver import Solver
from tests.compilers import needs_compiler
from tests.tolerances import SAME_PROGRAM, SOLVED, assert_close

pytestmark = pytest.mark.usefixtures("own_cache")


def statements_of(tree):
    """The inverse dynamics of a robot as statements, by the recursion: made link by link."""
    function = traced(nd.rnea, tree)
    graph = function.graph
    nodes = graph.reachable(function.outputs["result"].flat)
    return Statements.of(graph, [i for i in nodes if graph.ops[i] in FORMATS])


def test_blocks_of_a_form_join_the_same_operations_in_the_same_way():
    statements = statements_of(nd.autotree(40, 1.5, 1.5))
    forms = repeated_forms(statements, np.zeros(len(statements), dtype=np.intp))
    assert forms
    covered = np.zeros(len(statements), dtype=int)
    for form in forms:
        assert len(form) >= LEAST
        for start, reads in zip(form.starts, form.reads, strict=True):
            covered[start : start + form.length] += 1
            for k, (op, operands) in enumerate(zip(form.ops, form.operands, strict=True)):
                assert statements.ops[start + k] == op
                named = [start + x if x < form.length else reads[x - form.length] for x in operands if x >= 0]
                actual = [ref for ref in statements.refs[:, start + k].tolist() if ref >= 0]
                assert sorted(named) == sorted(actual)  # a sum may be turned round
                if op == Op.SUB:
                    assert named == actual
    assert covered.max() == 1


def test_the_text_of_a_chain_does_not_grow_with_it():
    written = []
    for n in (60, 180):
        statements = statements_of(nd.autotree(n, 1.0, 1.5))
        forms = repeated_forms(statements, np.zeros(len(statements), dtype=np.intp))
        covered = sum(len(form) * form.length for form in forms)
        written.append(len(statements) - covered + sum(form.length for form in forms))
    assert written[1] < 1.5 * written[0]
    assert written[1] < len(statements) / 10


def test_roles_and_edges_part_blocks():
    statements = statements_of(nd.autotree(40, 1.0, 1.5))
    edge = len(statements) // 2
    roles = np.zeros(len(statements), dtype=np.intp)
    roles[np.arange(edge, len(statements), 3)] = 1
    for form in repeated_forms(statements, roles, [edge]):
        assert not ((form.starts < edge) & (form.starts + form.length > edge)).any()
        assert (roles[form.numbers] == roles[form.numbers[0]]).all()


def with_loops(plan, monkeypatch):
    """The solver of a plan with loops wherever something repeats."""
    monkeypatch.setattr(repeated_writer, "SHRINKS", np.inf)
    monkeypatch.setattr(native_module, "emit", partial(emit, large=0))
    return Solver(plan, "native")


def states(plan, n):
    system, rng = plan.system, np.random.default_rng(0)
    state = [
        system.tree.random_configurations(n, rng),
        rng.normal(size=(n, system.tree.nv)),
        rng.normal(size=(n, system.ny)),
    ]
    return [*state, np.tile(system.weights, (n, 1))] if system.is_weighted else state


WEIGHTED = {
    "name": "weighted",
    "measurements": [
        {"type": "joint_acceleration", "joints": "all", "sigma": 0.1},
        {"type": "joint_torque", "joints": ["joint1"], "sigma": 0.5},
        {"type": "external_wrench", "links": "all", "value": 0},
    ],
}

CASES = {
    "all unknowns, with the residual": (nd.autotree(24, 1.0, 1.5), "inverse_dynamics", None),
    "all unknowns of forward dynamics": (nd.autotree(12, 1.0, 1.5), "forward_dynamics", None),
    "pivots, and batches": (nd.autotree(20, 2.0, 1.5), "forward_dynamics", ("qdd",)),
    "several shapes of links": (
        nd.tools.random_tree(30, 2, ["revolute", "prismatic"], 1.0, 0.9),
        "inverse_dynamics",
        ("tau",),
    ),
    "refinement": (nd.autotree(6, 1.0, 1.5), WEIGHTED, ("qdd",)),
}


@needs_compiler
@pytest.mark.parametrize("case", CASES)
def test_loops_compute_what_straight_lines_do(case, monkeypatch):
    tree, sensors, outputs = CASES[case]
    given = nd.sensors(sensors) if isinstance(sensors, str) else nd.SensorSet.from_dict(sensors)
    plan = make_plan(nd.System(tree, given), outputs)
    loops = with_loops(plan, monkeypatch)
    assert "loop0" in loops.native.unit(Target.ONE_STATE).text
    state = states(plan, 5)
    expected = np.empty((5, loops._layout.size))
    Solver(plan, "numpy").solved_batch(state, [expected])
    for k in range(5):
        values, residual, fell_back, _ = loops.solved(*(array[k] for array in state))
        assert not fell_back
        assert_close(values, expected[k], SOLVED)
    if outputs is None:
        assert residual < 1e-13
    if outputs == ("qdd",) and not plan.system.is_weighted:
        found = np.empty_like(expected)
        _, fell_back, _ = loops.solved_batch(state, [found])
        assert not np.any(fell_back)
        assert_close(found, expected, SOLVED)


@needs_compiler
def test_functions_may_have_loops(monkeypatch):
    tree = nd.autotree(30, 2.0, 1.5)
    monkeypatch.setattr("nori_dyn.program.kernel.native.emit", partial(emit, large=0))
    compiled = nd.compile(nd.rnea, tree)
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 4, 30))
    expected = np.array([nd.rnea(tree, *x) for x in zip(q, qd, qdd, strict=True)])
    assert_close(compiled(q[0], qd[0], qdd[0]), expected[0], SAME_PROGRAM)
    assert_close(compiled.batch(q, qd, qdd), expected, SAME_PROGRAM)


def test_small_programs_stay_straight():
    plan = make_plan(nd.System(nd.autotree(60), nd.sensors("inverse_dynamics")), ["tau"])
    program = solution_program(plan, output_columns(plan.system, plan.outputs).tolist()).program
    assert type(repeated_writer.writer_of(program)) is StatementWriter
    assert type(repeated_writer.writer_of(program, large=0)) is LoopWriter
