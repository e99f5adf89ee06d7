"""The solver that switches between contact states: one set of arrays, nothing planned, nothing allocated."""

import tracemalloc
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError, UnknownContactError, UnplannedStateError
from nori_dyn.estimation import plan as plans_module
from nori_dyn.io.cache_files import cache_root
from nori_dyn.model.tree import Frame
from nori_dyn.program.kernel.native import NativeKernel
from nori_dyn.program.kernel.registry import BACKENDS
from nori_dyn.system.side_by_side import SideBySide
from tests.compilers import needs_compiler
from tests.covering import covering
from tests.systems import ACCELERATIONS, TORQUES, sensor_set
from tests.tolerances import SOLVED, assert_close
from tests.unit.solve.test_solver import backend as runnable
from tests.unit.solve.test_solver import every_backend

TREE = nd.autotree(6, branching=2, skew=0.7)
TREE = TREE.replace(frames={"tip": Frame(4, TREE.X_tree[1])})

LEAVES = {"a": "link4", "b": "link5", "c": "link6"}
SOME = ("tau", "fx:tip", "a:link6")
COMPILED = ("a", "b", "c"), ("b",), ()
"""States that are compiled, each by itself; through NumPy all are."""
FREE = {"type": "external_wrench", "links": {"except": list(LEAVES.values())}, "value": 0}


def sensors(*measurements, names=tuple(LEAVES), **contacts):
    """Sensors that know the motion, and the wrench on each leaf: a sensor's while it is closed, else zero."""
    leaves = {
        name: {
            "closed": [{"type": "external_wrench", "links": LEAVES[name]}],
            "open": [{"type": "external_wrench", "links": LEAVES[name], "value": 0}],
        }
        for name in names
    }
    rows = [ACCELERATIONS, FREE, *measurements]
    return sensor_set(*rows, name="leaves", contacts=leaves | contacts)


@lru_cache
def planned(*outputs, states=None):
    return nd.plan(TREE, sensors(), outputs=outputs or None, states=states)


def data(plan_set, n=40, seed=0):
    """Q, Qd, Y, and for each state the contacts that are closed."""
    rng = np.random.default_rng(seed)
    Q = np.array([TREE.random_configuration(rng) for _ in range(n)])
    which = [plan_set.states[k] for k in rng.integers(len(plan_set.states), size=n)]
    return Q, rng.normal(size=(n, TREE.nv)), rng.normal(size=(n, len(plan_set.measurement_names))), which


def own(plan_set, state, y):
    """The readings of a state, from those of all."""
    by_name = dict(zip(plan_set.measurement_names, y, strict=True))
    return np.array([by_name[name] for name in plan_set[state].system.measurement_names])


def run(solver, q, qd, y):
    solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = q, qd, y
    return solver.tick()


@covering(strength=1, name=list(BACKENDS), outputs={"some": SOME, "all": ()})
def test_every_way_to_call_gives_what_the_plan_of_the_state_gives(name, outputs):
    plan_set = planned(*outputs, states=COMPILED if name == "native" else None)
    solver = plan_set.solver(runnable(name))
    plain = {state: plan_set[state].solver(name) for state in plan_set.states}
    Q, Qd, Y, which = data(plan_set)
    arrays = dict(vars(solver.outputs))
    batch = solver.solve_batch(Q, Qd, Y, which)
    assert batch.residual.shape == batch.fell_back.shape == (len(Q),)
    for k, state in enumerate(which):
        expected = plain[state].solve(Q[k], Qd[k], own(plan_set, state, Y[k]))
        single = solver.solve(Q[k], Qd[k], Y[k], state)
        solver.switch(state)
        assert solver.contacts == state
        assert run(solver, Q[k], Qd[k], Y[k]).ok
        run(plain[state], Q[k], Qd[k], own(plan_set, state, Y[k]))
        for output, array in arrays.items():
            assert getattr(solver.outputs, output) is array
            np.testing.assert_array_equal(array, getattr(plain[state].outputs, output))
            np.testing.assert_array_equal(single[output], expected[output])
            assert_close(batch[output][k], expected[output], SOLVED)
        np.testing.assert_array_equal(single.residual, expected.residual)


def test_contacts_in_any_order_by_name_or_as_booleans_and_states_in_any_order():
    plan_set = planned()
    solver = plan_set.solver("numpy")
    whole = plan_set[("a", "b", "c")].system.measurement_names
    assert plan_set.measurement_names == solver.measurement_names == whole  # each once
    assert solver.ny == len(solver.inputs.y) == TREE.nv + 18
    assert solver.inputs.weights.shape == (0,)
    assert solver.contact_names == solver.contacts == ("a", "b", "c")
    assert solver.states == plan_set.states
    both = ("a", "c")
    for closed in (("c", "a"), ["a", "c", "a"], {"a", "c"}, np.array([True, False, True]), "b", ()):
        solver.switch(closed)
        assert solver.contacts == (both if len(closed) > 1 else tuple(closed))
    Q, Qd, Y, which = data(plan_set)
    flags = np.array([[name in state for name in "abc"] for state in which])
    by_name = solver.solve_batch(Q, Qd, Y, [state[::-1] for state in which])
    np.testing.assert_array_equal(by_name.tau, solver.solve_batch(Q, Qd, Y, flags).tau)
    order = np.random.default_rng(3).permutation(len(Q))
    mixed = solver.solve_batch(Q[order], Qd[order], Y[order], [which[k] for k in order])
    for output in ("tau", "fx", "a"):
        np.testing.assert_array_equal(mixed[output], by_name[output][order])
    every = solver.solve_batch(Q, Qd, Y, "b")
    for other in ({"b"}, frozenset("b"), np.array([False, True, False]), [("b",)] * len(Q), [{"b"}] * len(Q)):
        np.testing.assert_array_equal(solver.solve_batch(Q, Qd, Y, other).tau, every.tau)
    solver.switch("b")
    np.testing.assert_array_equal(solver.solve_batch(Q, Qd, Y).tau, every.tau)
    np.testing.assert_array_equal(solver.solve(Q[0], Qd[0], Y[0]).tau, solver.solve(Q[0], Qd[0], Y[0], "b").tau)


def test_a_batch_in_single_precision():
    plan_set = planned()
    solver = plan_set.solver("numpy")
    Q, Qd, Y, which = data(plan_set)
    found, expected = (solver.solve_batch(Q, Qd, Y, which, dtype=dtype).tau for dtype in ("float32", "float64"))
    assert found.dtype == np.float32
    assert 0 < np.abs(found - expected).max() < 3e-6 * np.abs(expected).max()


def test_what_a_state_does_not_read_may_be_anything():
    plan_set = planned()
    solver = plan_set.solver("numpy")
    Q, Qd, Y, _ = data(plan_set)
    y = Y[0].copy()
    y[[name.startswith(("fx:link4", "fx:link6")) for name in plan_set.measurement_names]] = np.nan
    expected = solver.solve(Q[0], Qd[0], Y[0], "b")
    np.testing.assert_array_equal(solver.solve(Q[0], Qd[0], y, "b").tau, expected.tau)
    np.testing.assert_array_equal(solver.solve_batch(Q[:2], Qd[:2], np.stack([y, y]), "b").tau[0], expected.tau)
    solver.switch("b")
    assert run(solver, Q[0], Qd[0], y).ok
    np.testing.assert_array_equal(solver.outputs.tau, expected.tau)
    named = dict(zip(plan_set.measurement_names, Y[0], strict=True))
    np.testing.assert_array_equal(solver.solve(Q[0], Qd[0], named, "b").tau, expected.tau)
    few = {name: value for name, value in named.items() if not name.startswith(("fx:link4", "fx:link6"))}
    np.testing.assert_array_equal(solver.solve(Q[0], Qd[0], few, "b").tau, expected.tau)
    with pytest.raises(InputError, match=r"y lacks 12 of 24 measurements: fx:link4.mx"):
        solver.solve(Q[0], Qd[0], few, ("a", "b", "c"))


def test_wrong_contacts_and_states_are_refused_by_name():
    plan_set = nd.plan(TREE, sensors(), outputs=("tau",), states=[("a",), ("b", "a"), ()])
    solver = plan_set.solver("numpy")
    Q, Qd, Y, _ = data(plan_set, 3)
    with pytest.raises(UnplannedStateError, match=r"state 'b' is not planned. Planned: a, b; a; no contact") as raised:
        solver.solve(Q[0], Qd[0], Y[0], ("b",))
    assert raised.value.state == ("b",)
    assert raised.value.planned == plan_set.states == (("a", "b"), ("a",), ())
    with pytest.raises(UnplannedStateError, match="'b, c'"):
        solver.contacts = ("c", "b")
    for wrong, message in (
        (("a", "d"), r"unknown contact 'd'. Known: a, b, c"),
        ([1], "unknown contact '1'"),
        (np.zeros(3), "array of float64"),
    ):
        with pytest.raises(InputError, match=message):
            solver.switch(wrong)
    for wrong, message in (
        ([("a",), ()], "contacts has 2 states, expected 3"),
        (np.zeros((2, 3), dtype=bool), r"contacts has shape \(2, 3\), expected \(3, 3\)"),
    ):
        with pytest.raises(InputError, match=message):
            solver.solve_batch(Q, Qd, Y, wrong)
    assert solver.contacts == ("a", "b")


def test_wrong_input_is_refused_by_name():
    plan_set = planned()
    solver = plan_set.solver("numpy")
    Q, Qd, Y, which = data(plan_set, 8)
    for y, more, message in (
        (Y[0, :-1], {}, r"y has shape \(23,\), expected \(24,\)"),
        ({"fx:link9": 0}, {"contacts": ()}, r"unknown measurement 'fx:link9'.*sensors 'leaves'"),
        (Y[0], {"weights": np.ones(3)}, "they have no weights"),
    ):
        with pytest.raises(InputError, match=message):
            solver.solve(Q[0], Qd[0], y, **more)
    with pytest.raises(InputError, match=r"Y has shape \(8, 23\), expected \(8, 24\)"):
        solver.solve_batch(Q, Qd, Y[:, :-1])
    Y[5, TREE.nv + 3] = np.nan
    which = [("b",)] * 5 + [("b", "a")] + [("a",)] * 2
    with pytest.raises(InputError, match=r"state 5 of 8 \(a, b\): y.*'fx:link4.fx'.*is nan"):
        solver.solve_batch(Q, Qd, Y, which)
    which[5] = ("b",)
    assert solver.solve_batch(Q, Qd, Y, which).tau.shape == (8, TREE.nv)


def soft(sigma):
    """Sensors with rows to spare, and an accelerometer that is trusted less while its leaf is open."""
    both = {"type": "accelerometer", "links": "link4"}
    return sensors(
        TORQUES | {"sigma": 1},
        {"type": "external_wrench", "links": ["link5", "link6"], "value": 0},
        names=(),
        a={
            "closed": [{**both, "sigma": 0.1}, {"type": "external_wrench", "links": "link4", "sigma": 2}],
            "open": [{**both, "sigma": sigma}, {"type": "external_wrench", "links": "link4", "value": 0}],
        },
    )


@every_backend
def test_weights_of_all_states(name):
    plan_set = nd.plan(TREE, soft(0.5), outputs=("tau", "fx"))
    solver = plan_set.solver(runnable(name))
    joints = [f"tau:{joint}" for joint in TREE.joint_names]
    assert plan_set.weight_names == solver.weight_names
    assert solver.weight_names == (*joints, "acc:link4 (sigma 0.1)", "fx:link4", "acc:link4 (sigma 0.5)")
    assert_close(solver.inputs.weights, [1] * 6 + [100, 0.25, 4], SOLVED)
    Q, Qd, Y, which = data(plan_set, 6)
    plain = {state: plan_set[state].solver(name) for state in plan_set.states}
    rng = np.random.default_rng(1)
    W = rng.uniform(0.1, 9, size=(6, 9))
    batch, configured = solver.solve_batch(Q, Qd, Y, which, W), solver.solve_batch(Q, Qd, Y, which)
    for k, state in enumerate(which):
        y, these = own(plan_set, state, Y[k]), [*range(6), 6, 7] if state else [*range(6), 8]
        expected = plain[state].solve(Q[k], Qd[k], y, W[k, these])
        solver.switch(state)
        solver.inputs.weights[:] = W[k]
        run(solver, Q[k], Qd[k], Y[k])
        by_name = dict(zip(solver.weight_names, W[k], strict=True))
        for weights in (W[k], by_name):
            np.testing.assert_array_equal(solver.solve(Q[k], Qd[k], Y[k], state, weights).fx, expected.fx)
        for found in (batch.fx[k], solver.outputs.fx):
            assert_close(found, expected.fx, SOLVED)
        assert_close(configured.fx[k], plain[state].solve(Q[k], Qd[k], y).fx, SOLVED)
        without = plain[state].solve(Q[k], Qd[k], y, {"acc:link4": 0})
        np.testing.assert_array_equal(solver.solve(Q[k], Qd[k], Y[k], state, {"acc:link4": 0}).fx, without.fx)
        lost = {**dict(zip(plan_set.measurement_names, Y[k], strict=True)), "acc:link4.ay": np.nan}
        np.testing.assert_array_equal(solver.solve(Q[k], Qd[k], lost, state, missing="drop").fx, without.fx)
    with pytest.raises(InputError, match=r"unknown weight 'acc:link5'.*Did you mean 'acc:link4'"):
        solver.solve(Q[0], Qd[0], Y[0], (), {"acc:link5": 0})


def test_weights_that_begin_alike_are_one():
    plan_set = nd.plan(TREE, soft(0.1), outputs=("tau",))
    assert plan_set.weight_names[6:] == ("acc:link4", "fx:link4")
    systems = [plan.system for plan in plan_set.plans.values()]
    assert [places.tolist() for places in SideBySide(systems, "").weight_indices] == [[*range(8)], [*range(7)]]


@needs_compiler
def test_a_state_is_compiled_when_it_is_first_needed(own_cache):
    plan_set = nd.plan(TREE, sensors(), outputs=("tau",), states=[("a", "b"), ("a",), ("b",), ()])
    solver, states = plan_set.solver("native"), plan_set.states
    Q, Qd, Y, _ = data(plan_set, 1)

    def compiled():
        return len([*(cache_root() / "native").glob("*.json")])

    assert (solver.prepared, compiled()) == (states[:1], 1)
    solver.solve(Q[0], Qd[0], Y[0], contacts=states[2])
    assert (solver.prepared, compiled()) == ((states[0], states[2]), 2)
    assert "2 of 4 are prepared" in str(solver)
    assert "2 of 4 are compiled, the others when first needed" in " ".join(str(plan_set).split())
    solver.switch(states[1])
    assert (solver.prepared, compiled()) == (states[:3], 3)
    with pytest.raises(UnknownContactError):
        solver.prepare([("d",)])
    solver.prepare()
    assert (solver.prepared, compiled()) == (states, 4)
    assert "4 of 4 are compiled." in str(plan_set)


def test_what_is_compiled_is_counted_while_it_lasts():
    plan_set, told = planned("tau"), []

    @contextmanager
    def watch(title):
        yield lambda stage, done=None: told.append((title, stage, done))

    solver = nd.results.SwitchingSolver(plan_set.plans, plan_set.contact_names, "numpy", watch=watch)
    solver.switch("b")
    solver.prepare()
    title = f"preparing {TREE.name}"
    before = [(title, "compiling 1 of 8", 0.0), (title, "compiling 2 of 8", 0.0)]
    assert told == [*before, *((title, f"compiling {k + 3} of 8", k / 6) for k in range(6))]


@needs_compiler
def test_a_switch_and_a_tick_allocate_plan_and_compile_nothing(monkeypatch):
    plan_set = planned()
    solver = plan_set.solver("native")
    solver.prepare()
    Q, Qd, Y, _ = data(plan_set, 1)
    states = [*plan_set.states, np.array([True, False, True])]

    def forbidden(*arguments, **options):
        raise AssertionError("something is planned, compiled or placed")

    monkeypatch.setattr(plans_module, "make_plan", forbidden)
    monkeypatch.setattr(NativeKernel, "__init__", forbidden)
    monkeypatch.setattr(NativeKernel, "bind", forbidden)

    def turn(times):
        for _ in range(times):
            for state in states:
                solver.switch(state)
                solver.tick()

    run(solver, Q[0], Qd[0], Y[0])
    turn(2)
    tracemalloc.start()
    try:
        turn(2)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        turn(200)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 256  # nothing is kept: a number of the interpreter's own, at most
    assert peak - before < 1024  # nothing the size of an array comes and goes: y and q alone have 240 bytes each
    assert solver.tick().ok
