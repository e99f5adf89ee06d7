"""Rows of programs: they compute what their elements are, and are taken where they save instructions."""

from dataclasses import replace

import numpy as np
import pytest

from nori_dyn.algebra.counting import expression_cost
from nori_dyn.algebra.expressions import Expr, Graph, Op
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
from tests.tolerances import EXACT, RECURSION, ROUNDING, SOLVED, assert_close

UFUNCS = {
    Op.ADD: np.add,
    Op.SUB: np.subtract,
    Op.MUL: np.multiply,
    Op.NEG: np.negative,
    Op.RECIPROCAL: np.reciprocal,
}


@pytest.fixture
def eager(monkeypatch):
    """Take rows wherever they can be."""
    monkeypatch.setattr(planning, "LEAST", 0)
    monkeypatch.setattr(planning, "GAIN", np.inf)


def computed(plan, graph, inputs):
    """The values of all nodes that a plan computes, phase by phase, by NumPy on its storage."""
    storage, values = np.zeros(plan.size), dict(inputs)

    def put(i):
        for place in plan.filled.get(i, ()):
            storage[place] = values[i]

    for i in plan.given:
        if i not in values:
            values[i] = graph.evaluate([Expr(graph, i)], {k: np.array([x]) for k, x in inputs.items()})[0, 0]
        put(i)
    for phase in plan.phases:
        for i in phase.statements:
            sources = [s for s in (graph.left[i], graph.right[i]) if s >= 0]
            known = [storage[plan.where[s]] if s in plan.where else values[s] for s in sources]
            values[i] = UFUNCS[graph.ops[i]](*known)
            put(i)
        copies = list(phase.copies)
        for number, o in enumerate(phase.operations):
            while copies and copies[0][2] <= number:
                source, target, _ = copies.pop(0)
                storage[target] = storage[source]
            size = BLOCK * o.width
            if isinstance(o, ColumnLoop):
                given = {x.index: storage[place : place + size].copy() for x, place in o.sources}
                outcomes = o.graph.evaluate([x for x, _ in o.targets], given)
                for outcome, (_, place) in zip(outcomes, o.targets, strict=True):
                    storage[place : place + size] = outcome
                continue
            total = np.zeros(size) if o.initial is None else storage[o.initial : o.initial + size].copy()
            for sign, terms in ((1, o.added), (-1, o.subtracted)):
                for coefficient, blocks in terms:
                    factor = storage[plan.where[coefficient]] if coefficient in plan.where else values[coefficient]
                    total += sign * factor * storage[blocks : blocks + size]
            if o.mask is not None:
                total[[not o.mask >> k & 1 for k in range(size)]] = 0.0
            storage[o.target : o.target + size] = total
    return values | {i: storage[place] for i, place in plan.where.items()}


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


@pytest.mark.parametrize("function", [products, waiting, minverse, coriolis, crba])
@pytest.mark.usefixtures("eager")
def test_rows_are_what_their_elements_are(function):
    tree = autotree(9, branching=1.3, skew=0.4)
    found = traced(function, tree)
    flat = [x for array in found.outputs.values() for x in array.flat]
    plan = row_plan(found.graph, flat)
    assert (plan is None) == (function is crba)
    if plan is not None:
        assert_computed(plan, found.graph, flat)


@pytest.mark.usefixtures("eager")
def test_native_rows_are_what_numpy_computes(lanes):
    tree = autotree(9, branching=1.3, skew=0.4)
    for function in (products, minverse, coriolis):
        check_rows(function, tree)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "function", [minverse, *(pytest.param(f, marks=pytest.mark.long) for f in (products, coriolis))]
)
def test_native_rows_of_a_robot_are_what_numpy_computes(function):
    check_rows(function, load("anymal", "floating"))


def check_rows(function, tree):
    native, plain = (compile(function, tree, backend=backend) for backend in ("native", "numpy"))
    assert native.cost != plain.cost  # it goes by rows
    rng = np.random.default_rng(1)
    for _ in range(3):
        state = [tree.random_configuration(rng), rng.normal(size=tree.nv)][: len(vars(native.inputs))]
        for found, expected in zip(np.atleast_1d(native(*state)), np.atleast_1d(plain(*state)), strict=True):
            assert_close(found, expected, SOLVED)


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


@pytest.mark.usefixtures("eager")
def test_what_lies_beyond_the_columns_of_a_row_is_made_zero():
    """A sum over more columns than a row has comes out of its block, and must not get into others."""
    graph = Graph()
    x = np.array([graph.input(f"x{k}") for k in range(BLOCK)], dtype=object)
    a, b = graph.input("a"), graph.input("b")
    part = combination(x, [a, b], [x * b, x], np.array([0, 2, 3, 6]))
    whole = combination(x, [a, b], [part, x])
    targets = [*part[:4], *whole]
    plan = row_plan(graph, targets)
    assert {node.index for node in whole} <= set(plan.where)
    assert any(o.mask == 0b1001101 for phase in plan.phases for o in phase.operations)
    assert_computed(plan, graph, targets)


@pytest.mark.usefixtures("eager")
def test_the_same_operations_in_each_column_are_a_loop():
    graph = Graph()
    shape = (3, 2 * BLOCK + 3)
    x, y = (np.array([graph.input(f"{name}{k}") for k in range(shape[0] * shape[1])]).reshape(shape) for name in "xy")
    y[1, :4] = graph.zero  # zero in some columns
    y[2] = graph.expr(0.5)  # and the same in all

    def turned(x, y):
        return np.concatenate([cross(x, y), stack(x[0] * y[2] - y[0])])

    found = mapped(turned, x, y)
    whole = combination(found[0], [graph.input("a"), graph.input("b")], list(found[1:3]))
    targets = [*whole, *found[3]]
    plan = row_plan(graph, targets)
    (loop,) = (o for phase in plan.phases for o in phase.operations if isinstance(o, ColumnLoop))
    assert loop.width == 3
    assert len(loop.sources) == 5  # but for what is a number
    assert_computed(plan, graph, targets)


def assert_computed(plan, graph, targets):
    """Assert that a plan gives the values of its targets."""
    rng = np.random.default_rng(0)
    inputs = {i: rng.normal() for i in graph.reachable(targets) if graph.ops[i] is Op.INPUT}
    values = computed(plan, graph, inputs)
    found = [x.value if x.is_constant else values[x.index] for x in targets]
    expected = graph.evaluate(targets, {i: np.array([value]) for i, value in inputs.items()})[:, 0]
    assert_close(found, expected, ROUNDING)


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
