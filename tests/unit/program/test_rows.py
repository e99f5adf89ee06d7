"""Rows of programs: they compute what their elements are, and are taken where they save instructions."""

from dataclasses import replace

import numpy as np
import pytest

from nori_dyn.algebra.counting import expression_cost
from nori_dyn.algebra.expressions import Graph
from nori_dyn.algebra.rows import combination, mapped
from nori_dyn.algebra.spatial import cross, stack
from nori_dyn.errors import InputError, SingularSystemError
from nori_dyn.model.synthetic import autotree
from nori_dyn.program import emit as emit_module
from nori_dyn.program import row_plan as planning
from nori_dyn.program.functions import CompiledFunction, compile
from nori_dyn.program.row_needs import BLOCK, NeededRows
from nori_dyn.program.row_plan import ColumnLoop, row_plan
from nori_dyn.program.tracing import traced
from nori_dyn.recursions.coriolis import coriolis
from nori_dyn.recursions.crba import crba, inertia_forward_dynamics
from nori_dyn.recursions.derivatives import aba_derivatives
from nori_dyn.recursions.minverse import minverse
from nori_dyn.recursions.rnea import rnea
from tests.compilers import needs_compiler
from tests.robots import load
from tests.tolerances import EXACT, RECURSION, SOLVED, assert_close


@pytest.fixture
def eager(monkeypatch):
    """Take rows wherever they can be."""
    monkeypatch.setattr(planning, "LEAST", 0)
    monkeypatch.setattr(planning, "GAIN", np.inf)


def products(tree, q):
    """Sums of rows with a row as it is, rows of several blocks, coefficients from rows, and a copy."""
    n = 3 * BLOCK
    A = np.array([np.roll(np.concatenate([q, np.zeros(n - len(q))]), 5 * k) for k in range(4)], dtype=object)
    first = combination(A[0], [q[0], -q[1]], [A[1], A[2]])
    second = combination(np.zeros(n, dtype=object), [1, first[0], q[1] * first[1]], [A[3], first, A[0]], slice(3, 20))
    turned = np.array([*first[BLOCK:], *first[:BLOCK]], dtype=object)
    third = combination(second, [first[k] for k in range(4)], [turned, second, first, A[1]], subtracted=True)
    return np.concatenate([first, second, third])


def waiting(tree, q):
    """Rows of which the first waits for a statement, the second does not, and both read another's elements."""
    n = 2 * BLOCK
    A = np.array([np.roll(np.concatenate([q, np.zeros(n - len(q))]), 3 * k) for k in range(3)], dtype=object)
    first = combination(A[0], [q[0], q[1]], [A[1], A[2]])
    turned = np.array([*first[3:], *first[:3]], dtype=object)
    late = first[0] * q[2] + q[3]
    second = combination(A[1], [late, q[2]], [turned, A[0]])
    third = combination(A[2], [q[3], q[4]], [turned, A[0]])
    return np.concatenate([second, third])


@pytest.mark.usefixtures("eager")
def test_native_rows_are_what_numpy_computes(lanes):
    tree = autotree(9, branching=1.3, skew=0.4)
    for function in (products, waiting, minverse, coriolis):
        check_rows(function, tree)
    assert compile(crba, tree, backend="native").cost == compile(crba, tree, backend="numpy").cost  # it has no rows


def check_rows(function, tree, **shapes):
    """Compare native code by rows with NumPy, which knows none; return the plan of the rows."""
    native, plain = (compile(function, tree, shapes=shapes, backend=backend) for backend in ("native", "numpy"))
    assert native.cost != plain.cost
    rng = np.random.default_rng(1)
    for _ in range(3):
        given = {name: rng.normal(size=np.shape(x)) for name, x in vars(native.inputs).items()}
        given |= {"q": tree.random_configuration(rng)} if "q" in given else {}
        for found, expected in zip(np.atleast_1d(native(**given)), np.atleast_1d(plain(**given)), strict=True):
            assert_close(found, expected, SOLVED)
    return native._program.rows


@pytest.mark.parametrize(
    "name", ["g1", *(pytest.param(x, marks=pytest.mark.long) for x in ("talos_reduced", "iCubGenova04"))]
)
def test_the_inverse_of_a_humanoid_is_computed_by_rows(name):
    tree = load(name, "floating")
    found = traced(minverse, tree)
    flat = [x for array in found.outputs.values() for x in array.flat]
    plan = row_plan(found.graph, flat)
    statements = sum(len(phase.statements) for phase in plan.phases)
    assert statements < 0.4 * expression_cost(flat).total
    f = compile(minverse, tree)
    assert f.cost == plan.cost
    rng = np.random.default_rng(0)
    states = np.array([tree.random_configuration(rng) for _ in range(3)])
    inverses = np.array([f(q) for q in states])
    assert_close(f.batch(states), inverses, RECURSION)
    assert_close(inverses[0] @ crba(tree, states[0]), np.eye(tree.nv), SOLVED)


@pytest.mark.usefixtures("eager")
def test_all_that_blocks_multiply_is_counted():
    graph = Graph()
    x, y = ([graph.input(f"{name}{k}") for k in range(3 * BLOCK)] for name in "xy")
    rows = [np.array([0] * k + x[k:], dtype=object) for k in range(BLOCK)]
    row = combination(np.array(y, dtype=object), x[:BLOCK], rows)
    targets = [row[k] for k in range(2 * BLOCK)]
    plan = row_plan(graph, targets)
    assert (plan.cost.multiplications, plan.cost.additions) == (2 * BLOCK**2, 2 * BLOCK**2)  # two of three blocks
    assert expression_cost(targets).multiplications < plan.cost.multiplications


@needs_compiler
@pytest.mark.usefixtures("eager")
def test_what_lies_beyond_the_columns_of_a_row_is_made_zero():
    """A sum over more columns than a row has comes out of its block, and must not get into others."""

    def parts(tree, x, a):
        part = combination(x, a, [x * a[1], x], np.array([0, 2, 3, 6]))
        return np.concatenate([part[:4], combination(x, a, [part, x])])

    plan = check_rows(parts, autotree(1), x=(BLOCK,), a=(2,))
    assert any(o.mask == 0b1001101 for phase in plan.phases for o in phase.operations)


@needs_compiler
@pytest.mark.usefixtures("eager")
def test_the_same_operations_in_each_column_are_a_loop():
    def turned(x, y):
        return np.concatenate([cross(x, y), stack(x[0] * y[2] - y[0])])

    def columns(tree, x, y, a):
        y = y.copy()
        y[1, :4], y[2] = a[0] * 0, a[0] * 0 + 0.5  # zero in some columns, and the same in all
        found = mapped(turned, x, y)
        return np.concatenate([combination(found[0], a, list(found[1:3])), found[3]])

    plan = check_rows(columns, autotree(1), x=(3, 2 * BLOCK + 3), y=(3, 2 * BLOCK + 3), a=(2,))
    (loop,) = (o for phase in plan.phases for o in phase.operations if isinstance(o, ColumnLoop))
    assert loop.width == 3
    assert len(loop.sources) == 5  # but for what is a number


def test_a_row_is_not_made_of_itself():
    graph = Graph()
    row = np.array([graph.input(f"x{k}") for k in range(BLOCK)], dtype=object)
    assert combination(np.zeros(BLOCK, dtype=object), [1], [row]).tolist() == row.tolist()
    assert not NeededRows(graph, row.tolist(), range(len(graph.combinations))).made


def test_small_programs_and_programs_without_combinations_have_none():
    arm = autotree(6)
    for function in (minverse, coriolis, rnea):
        found = traced(function, arm)
        assert row_plan(found.graph, [x for array in found.outputs.values() for x in array.flat]) is None


@pytest.mark.parametrize(
    ("name", "base", "has_rows"),
    [
        ("panda", "fixed", True),
        ("anymal", "floating", False),
        pytest.param("g1", "floating", True, marks=pytest.mark.long),
    ],
)
def test_limbs_in_lanes_are_preferred_where_they_save_more(name, base, has_rows):
    """Four legs share vectors of four; the fingers of a hand and two legs share too little."""
    made = compile(aba_derivatives, load(name, base), backend="numpy")
    assert (made._program.rows is not None) is has_rows


@pytest.mark.usefixtures("eager")
def test_functions_with_rows_have_derivatives():
    tree = autotree(4, skew=0.3)
    f = compile(inertia_forward_dynamics, tree, inputs=("q", "qd", "tau"))
    q, qd, tau = np.random.default_rng(2).normal(size=(3, 4))
    assert_close(f.derivative("tau")(q, qd, tau), minverse(tree, q), RECURSION)
    by_q, step = compile(minverse, tree).derivative("q")(q), 1e-5
    ahead, behind = (np.stack([minverse(tree, q + s * unit) for unit in np.eye(4)], axis=-1) for s in (step, -step))
    assert np.abs(by_q - (ahead - behind) / (2 * step)).max() < 1e-6 * np.abs(by_q).max()


@needs_compiler
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_long_programs_go_through_a_batch_state_by_state(monkeypatch, base):
    monkeypatch.setattr(emit_module, "BY_STATE", 0)
    tree = load("panda", base)
    f, n = compile(inertia_forward_dynamics, tree, inputs=("q", "qd", "tau")), 41
    assert '#include "states.h"' in emit_module.emit(f._program, emit_module.Target.BATCH, BLOCK).text
    rng = np.random.default_rng(3)
    q = tree.random_configurations(n, rng)
    qd, tau = rng.normal(size=(2, n, tree.nv))
    for part in tree.quaternions:
        q[:, part] *= 1 + 1e-9  # what is no unit quaternion yet is made one
    each = np.array([f(*state) for state in zip(q, qd, tau, strict=True)])
    for threads in (1, 2, 3):
        assert_close(f.batch(q, qd, tau, threads=threads), each, EXACT)
    assert_close(f.batch(np.asfortranarray(q), qd, tau, order="F"), each, EXACT)
    tau[17, 2] = np.nan
    with pytest.raises(InputError, match=r"tau\[17, 2\]"):
        f.batch(q, qd, tau)


@pytest.mark.usefixtures("eager")
def test_elements_of_rows_can_be_guarded():
    tree = autotree(9, branching=1.3, skew=0.4)
    found = traced(minverse, tree)
    inverse, q = found.outputs["result"], tree.random_configuration(3)
    size = abs(minverse(tree, q)[0, 0])
    near, far = (CompiledFunction(replace(found, guards=((inverse[0, 0], s * size),))) for s in (0.9, 1.1))
    assert near.cost == CompiledFunction(found).cost
    assert_close(near(q), minverse(tree, q), RECURSION)
    with pytest.raises(SingularSystemError, match="loses its digits"):
        far(q)


def test_the_program_of_numpy_knows_no_rows():
    tree = load("g1", "floating")
    f = compile(minverse, tree, backend="numpy")
    found = traced(minverse, tree)
    flat = tuple(x for array in found.outputs.values() for x in array.flat)
    assert f.cost == expression_cost(flat)
