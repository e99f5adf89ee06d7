"""An ordering by name eliminates D in its own P and Q, with the operations that it counts; UMFPACK's drives the tick.

On real robots, against solutions in extended precision.
"""

import ast
from functools import cache

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.estimation.plan import Plan
from nori_dyn.planning.orderings.problem import ordering_problem
from nori_dyn.planning.orderings.registry import ORDERINGS
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.planning.outputs import output_columns
from nori_dyn.program.kernel.umfpack import Umfpack
from nori_dyn.program.python_source import python_source
from nori_dyn.system.trace import trace
from tests import covering
from tests.robots import load
from tests.systems import random_states
from tests.tolerances import SOLVED, assert_close

ICUB = "iCubGenova04"
NAMES = [name for name in ORDERINGS if name != "umfpack" or has_umfpack()]

# The operations of a tick by the default, and by `recursive` of D itself. UMFPACK's and SuperLU's are their version's.
COUNTS = {
    ("panda", "forward_dynamics"): (1_585, 2_128),
    ("talos_reduced", "forward_dynamics"): (8_880, 16_959),
    (ICUB, "forward_dynamics"): (11_151, 23_233),
    ("talos_reduced", "load_cells_square"): (5_099, 7_197),
    (ICUB, "load_cells_square"): (5_915, 9_003),
}
OUTPUT = {"inverse_dynamics": "tau", "forward_dynamics": "qdd", "load_cells_square": "tau"}


TASKS = [("panda", "inverse_dynamics"), ("panda", "forward_dynamics"), ("talos_reduced", "load_cells_square")]


@cache
def system_of(robot: str, sensors: str) -> nd.System:
    return nd.System(load(robot, "fixed" if robot == "panda" else "floating"), sensors)


@cache
def planned(robot: str, sensors: str, ordering: str) -> Plan:
    return nd.plan(system_of(robot, sensors), [OUTPUT[sensors]], ordering)


def counted(plan: Plan) -> int:
    """The operations in the text of a tick as Python runs it, changes of sign by themselves among them."""
    wanted = [plan.solved.unknowns[column] for column in output_columns(plan.system, plan.outputs)]
    nodes = list(ast.walk(ast.parse(python_source(plan.symbolic.inputs, wanted))))
    signs = (node for node in nodes if isinstance(node, ast.Assign) and isinstance(node.value, ast.UnaryOp))
    return sum(isinstance(node, ast.BinOp) for node in nodes) + sum(isinstance(s.targets[0], ast.Name) for s in signs)


@pytest.mark.parametrize(
    ("robot", "sensors"), [pytest.param(*one, marks=pytest.mark.long if one[0] == ICUB else ()) for one in COUNTS]
)
def test_operations_by_ordering(robot, sensors):
    default, recursive = COUNTS[robot, sensors]
    names = NAMES if covering.ALL or (robot, sensors) in TASKS else ["recursive"]
    plans = {name: planned(robot, sensors, name) for name in ("auto", *names)}
    assert plans["auto"].cost.total == default
    assert plans["recursive"].cost.total == recursive
    assert len({plan.cost for plan in plans.values()}) == len(plans)  # no two are one program under two names
    for name, plan in plans.items():
        assert plan.cost.total == counted(plan), name
        assert plan.cost.total >= default, name


needs_umfpack = pytest.mark.skipif(not has_umfpack(), reason="the extra 'umfpack' is not installed")


@pytest.fixture(scope="module", params=TASKS, ids="-".join)
def own_plan(request):
    """A plan in UMFPACK's order, and its system."""
    return system_of(*request.param), planned(*request.param, "umfpack")


@needs_umfpack
def test_umfpacks_p_and_q_are_computed_offline(own_plan):
    """File and cache keep them, and programs go by them, as those of any order by name."""
    import scikits.umfpack as umfpack

    system, plan = own_plan
    problem = ordering_problem(system, trace(system), seed=0)
    asked = []
    for state in range(3):
        context = umfpack.UmfpackContext("di")
        context.control[umfpack.UMFPACK_SCALE] = umfpack.UMFPACK_SCALE_NONE
        asked.append([order.tolist() for order in context.lu(problem.matrix(state))[2:4]])
    P, Q = plan.row_permutation.tolist(), plan.column_permutation.tolist()
    assert [P, Q] in asked
    assert sorted(P) == sorted(Q) == list(range(system.shape[0]))


@needs_umfpack
def test_umfpacks_kernel_keeps_q_and_chooses_rows(own_plan):
    """Columns and rows with one entry left come first, whoever's the order; in UMFPACK's own they do already."""
    import scikits.umfpack as umfpack

    system, plan = own_plan
    for made in (plan, nd.plan(system, [OUTPUT[system.sensors.name]], "recursive")):
        kernel, places = Umfpack(made), (made.row_permutation[:, None], made.column_permutation)
        for q in random_states(system.tree, 3, seed=5).q:
            D = system.D(q).tocsc()
            kernel.factorise(np.asarray(D[made.symbolic.rows, made.symbolic.columns]).ravel())
            planned, info = kernel._matrix, kernel._context.info
            np.testing.assert_array_equal(planned.toarray() != 0, D.toarray()[places] != 0)  # P D Q, up to its scale
            L, U, P, Q, _, _ = kernel._context.lu(planned)
            first = int(info[umfpack.UMFPACK_COL_SINGLETONS] + info[umfpack.UMFPACK_ROW_SINGLETONS])
            assert (np.diff(Q[first:]) > 0).all()
            assert made is not plan or Q.tolist() == list(range(len(Q)))
            assert sorted(P) == list(range(len(P)))
            assert_close((L @ U).toarray(), planned.toarray()[P][:, Q], SOLVED)


def test_derivatives_and_exported_c_go_by_a_named_order_too(tmp_path):
    """Of the set of the paper's code, whose derivatives follow from the planned elimination."""
    system = nd.System(nd.autotree(4, skew=1.5, taper=0.95), "nori_code")
    truth, y = random_states(system.tree, 1, seed=6), np.random.default_rng(6).normal(size=system.ny)
    state, found, texts = (truth.q[0], truth.qd[0], y), {}, set()
    for name in ("auto", *NAMES):
        plan = nd.plan(system, ["tau"], name)
        found[name] = plan.derivative("q", "qd", "y", backend="numpy")(*state)
        texts.add(plan.export(tmp_path / name, name="chain").files["chain.c"])
        for one, other in zip(found["auto"], found[name], strict=True):
            assert_close(other, one, SOLVED)
    assert len(texts) == len(found)  # no two are one program under two names
