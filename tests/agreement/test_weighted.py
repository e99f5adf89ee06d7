"""Weighted least squares with exact dynamics, against QR in extended precision; states that are not refined."""

from functools import lru_cache

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError, SingularSystemError, SystemShapeError
from nori_dyn.planning.outputs import output_columns
from nori_dyn.program.kernel.fast_path import LARGEST_READING, least_pivots
from nori_dyn.program.limits import STEP_LIMIT
from tests.least_squares import constrained_least_squares
from tests.robots import load
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set
from tests.tolerances import SOLVED, assert_close
from tests.trees import TREES, on_a_free_base

long = pytest.mark.long

RELATIVE = 1e-8
"""The weights span nine decades, and the elimination works with their ratios."""


SOFT = (ACCELERATIONS | {"sigma": 0.1}, {"type": "external_wrench", "links": "all", "sigma": 1})
PLACED = {"frame": {"xyz": [0.1, 0.02, 0.03], "rpy": [0.1, 0.2, 0.3]}}


def redundant(tree):
    """Every joint acceleration, torque and wrench with a sigma, and accelerometers; no torque at the base."""
    return sensor_set(
        {"type": "joint_acceleration", "joints": "actuated", "sigma": 0.1},
        {"type": "joint_torque", "joints": tree.joint_names[0], "value": 0},
        {"type": "joint_torque", "joints": {"except": tree.joint_names[0]}, "sigma": 0.1},
        {"type": "external_wrench", "links": "all", "sigma": [1, 1, 1, 2, 2, 2]},
        {"type": "accelerometer", "links": list(tree.names[::3]), "sigma": 0.1, **PLACED},
        name="redundant",
    )


def tree_of(robot):
    small = nd.autotree(4, branching=2, skew=0.4)
    return {"small": small, "small floating": on_a_free_base(small)}.get(robot) or load(robot, "floating")


@lru_cache
def planned(robot):
    tree = tree_of(robot)
    return nd.plan(nd.System(tree, redundant(tree)))


def state(system, seed):
    rng = np.random.default_rng(seed)
    q, qd, y = system.tree.random_configuration(rng), rng.normal(size=system.tree.nv), rng.normal(size=system.ny)
    return q, qd, y, 10.0 ** rng.uniform(-3, 6, system.n_weights)


def exact_rows(system):
    """Which rows hold exactly."""
    return np.concatenate([np.full(len(row.equation.components), row.is_exact) for row in system.rows])


def weights_of_rows(system, weights):
    """The weight of each row that does not."""
    return np.array([weights[k] for row in system.rows if not row.is_exact for k in row.weight_of_rows])


def reference(system, q, qd, y, weights):
    """The minimiser of the same problem in extended precision, from its definition: D, b, and what is exact."""
    exact, D, b = exact_rows(system), system.D(q).tocsr(), system.b(q, qd, y)
    return constrained_least_squares(D[exact], b[exact], D[~exact], b[~exact], weights_of_rows(system, weights))


def unknowns(system, estimate):
    """d of an estimate."""
    found = []
    for v in system.variables:
        values = estimate[v.kind]
        found.append(values[system.tree.v_slices[v.body]] if v.kind in ("tau", "tau_J", "qdd") else values[v.body])
    return np.concatenate(found)


@pytest.mark.parametrize(
    ("robot", "backend"),
    [
        ("small", "native"),
        ("small floating", "numpy"),
        *(pytest.param(name, "numpy", marks=long) for name in ("solo12", "iCubGenova04", "talos_reduced", "g1")),
    ],
)
def test_estimates_equal_qr_in_extended_precision(robot, backend):
    plan = planned(robot)
    solver = plan.solver(backend)
    for seed in range(3 if robot == "small" else 1):
        q, qd, y, weights = state(plan.system, seed)
        estimate = solver.solve(q, qd, y, weights)
        d = reference(plan.system, q, qd, y, weights).d
        assert np.linalg.norm(unknowns(plan.system, estimate) - d) <= RELATIVE * np.linalg.norm(d)
        assert not estimate.fell_back


def test_weights_are_those_of_the_sigmas_until_told_otherwise():
    plan = planned("small")
    system, solver = plan.system, plan.solver("numpy")
    q, qd, y, _ = state(system, 0)
    configured = solver.solve(q, qd, y)
    np.testing.assert_array_equal(configured.tau, solver.solve(q, qd, y, system.weights).tau)
    np.testing.assert_array_equal(configured.tau, solver.solve_batch(q[None], qd[None], y[None]).tau[0])
    solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = q, qd, y
    solver.tick()
    assert_close(solver.outputs.tau, configured.tau, SOLVED)
    link = system.tree.names[3]
    weights = system.weights.copy()
    weights[0], first = 25.0, system.weight_names.index(f"fx:{link}.mx")
    weights[first : first + 6] = range(1, 7)
    changed = solver.solve(q, qd, y, {system.weight_names[0]: 25.0, f"fx:{link}": [1, 2, 3, 4, 5, 6]})
    np.testing.assert_array_equal(changed.tau, solver.solve(q, qd, y, weights).tau)


def test_a_reading_that_holds_exactly_cannot_be_dropped():
    tree = nd.autotree(3)
    system = nd.System(tree, sensor_set(ACCELERATIONS, SOFT[1]))
    y = np.zeros(system.ny)
    y[1] = np.nan
    with pytest.raises(InputError, match=r"'qdd:joint2'.*is nan"):
        nd.plan(system).solver("numpy").solve(np.zeros(3), np.zeros(3), y, missing="drop")


def test_what_is_left_undetermined_is_refused_and_not_answered():
    """All wrenches free, and one joint's acceleration neither measured nor implied once its weight is zero."""
    tree = nd.autotree(4, skew=0.3)
    sensors = sensor_set(
        ACCELERATIONS | {"sigma": 0.1},
        {"type": "joint_torque", "joints": {"except": "joint2"}, "sigma": 0.1},
        UNLOADED,
    )
    solver = nd.plan(nd.System(tree, sensors)).solver("numpy")
    q, qd, y, _ = state(solver.system, 3)
    solver.solve(q, qd, y, {"qdd:joint2": 0})  # its torque is not known, but its acceleration is by the others
    with pytest.raises(SingularSystemError, match="rank is 78 of 80"):
        solver.solve(q, qd, y, {"qdd:joint2": 0, "qdd:joint1": 0, "qdd:joint3": 0, "tau:joint1": 0, "tau:joint3": 0})
    solver.inputs.weights[:] = 0
    solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = q, qd, y
    assert not solver.tick().ok


def test_wrong_weights_are_named():
    system = nd.System(nd.autotree(2), sensor_set(*SOFT))
    solver = nd.plan(system).solver("numpy")
    for weights, message in (
        ({"qdd:joint9": 1}, "weight 'qdd:joint9'.*qdd:joint"),
        ({"qdd:joint1": -1}, "'qdd:joint1' is -1: it is below zero"),
        ({"qdd:joint1": np.nan}, "'qdd:joint1'.*nan"),
        ({"qdd:joint1": [1, 2]}, "expected 1 numbers"),
        (np.ones(3), r"weights has shape \(3,\)"),
    ):
        with pytest.raises(InputError, match=message):
            solver.solve(np.zeros(2), np.zeros(2), np.zeros(system.ny), weights)


def test_without_any_sigma_all_readings_of_a_redundant_set_weigh_the_same():
    tree = nd.autotree(3)
    kinds = ("joint_acceleration", "joint_torque")
    plain, unit = (
        nd.System(tree, sensor_set(*({"type": kind, "joints": "all", **sigma} for kind in kinds), UNLOADED))
        for sigma in ({}, {"sigma": 1})
    )
    q, qd, y, _ = state(plain, 0)
    assert plain.weight_names == unit.weight_names == (*plain.measurement_names,)
    first, second = (nd.plan(system).solver("numpy").solve(q, qd, y) for system in (plain, unit))
    assert_close(first.tau, second.tau, SOLVED)


def test_exact_rows_that_contradict_each_other_are_named():
    tree = nd.autotree(3)
    twice = sensor_set(
        *SOFT,
        {"type": "joint_torque", "joints": "joint2"},
        {"type": "linear_relation", "name": "gear", "terms": {"tau:joint2": 2}, "value": 1},
    )
    with pytest.raises(SingularSystemError, match=r"'relation:gear'.*'tau:joint2'|'tau:joint2'.*'relation:gear'"):
        nd.plan(nd.System(tree, twice))


def test_soft_rows_that_do_not_suffice_are_refused():
    few = sensor_set(SOFT[0])
    with pytest.raises(SystemShapeError, match="too few"):
        nd.plan(nd.System(nd.autotree(3), few))
    blind = sensor_set({"type": "link_acceleration", "links": "all", "sigma": 1}, TORQUES | {"sigma": 1})
    with pytest.raises(SingularSystemError, match="fx:link"):
        nd.plan(nd.System(nd.autotree(3), blind))


WRENCHES = {"type": "external_wrench", "links": "all", "sigma": 1}
SYSTEMS = {
    "accelerations": (
        nd.autotree(4, branching=2, skew=0.4),
        (
            ACCELERATIONS | {"sigma": 100},
            {"type": "accelerometer", "links": "all", "sigma": 0.01, **PLACED},
            WRENCHES,
        ),
    ),
    "torques": (
        nd.autotree(3, skew=0.2),
        (
            TORQUES | {"sigma": 0.01},
            {"type": "accelerometer", "links": "all", "sigma": 1, **PLACED},
            {"type": "external_wrench", "links": "all", "sigma": 0.1},
        ),
    ),
    "prior": (
        TREES["three_children"],
        (
            {"type": "force_torque", "joints": "actuated", "sigma": 0.01, **PLACED},
            {"type": "prior", "variables": "all", "sigma": 10},
            WRENCHES,
        ),
    ),
}
NEAR = (0.0, 1e-9, 1e-6, 1e-3)
"""How far from coordinate poses, at which axes are parallel and planes meet [rad]."""


@lru_cache
def native(name):
    tree, entries = SYSTEMS[name]
    return nd.plan(nd.System(tree, sensor_set(*entries))).solver("native")


def ranges(made):
    """The least and the largest inputs of usual states."""
    kernel, n = made.kernel, sum(made.system.input_sizes.values())
    limits = kernel.limits[len(kernel.pivot_names) + made._layout.size :]
    return limits[:n], limits[n : 2 * n]


@pytest.mark.parametrize("name", SYSTEMS)
def test_usual_states_are_right_at_coordinate_poses_and_at_the_ends_of_the_weights(name):
    made = native(name)
    system, rng = made.system, np.random.default_rng(1)
    low, high = (end[len(end) - system.n_weights :] for end in ranges(made))
    assert (low < system.weights).all()
    assert (system.weights < high).all()
    for near in NEAR:
        q = system.tree.random_configuration(rng)
        for joint, part in zip(system.tree.joints, system.tree.q_slices, strict=True):
            if len(joint.coordinates) == 1:
                q[part] = rng.integers(-2, 3) * np.pi / 2 + rng.choice([-near, near])
        weights = np.where(rng.random(len(low)) < 0.5, low, high)
        state = q, rng.normal(size=system.tree.nv), 10 * rng.normal(size=system.ny), weights
        right = np.asarray(reference(system, *state).d, dtype=float)[output_columns(made.system, made.plan.outputs)]
        found = made.solved(*state)[0]
        assert np.abs(found - right).max() <= STEP_LIMIT * max(1.0, np.abs(right).max())


def test_a_system_whose_weights_differ_by_decades_has_no_usual_states():
    tree = nd.autotree(2, skew=0.6)
    spread = [ACCELERATIONS | {"sigma": 1e3}, TORQUES | {"sigma": 1e-3}]
    low, high = ranges(nd.plan(nd.System(tree, sensor_set(*spread, UNLOADED))).solver("native"))
    assert (low > high).all()


@pytest.mark.parametrize("beyond", ["weight", "reading", "none"])
def test_states_that_are_not_usual_are_refined_and_others_are_not(beyond):
    """Beside the program of NumPy, which refines always."""
    made = native("torques")
    plan, rng = made.plan, np.random.default_rng(3)
    system = plan.system
    refined = plan.solver("numpy")
    last = 0.0
    for _ in range(5):
        q, qd, y = system.tree.random_configuration(rng), rng.normal(size=system.tree.nv), rng.normal(size=system.ny)
        weights = system.weights.copy()
        if beyond == "weight":
            weights[0] *= 1e3
        if beyond == "reading":
            y[0] = 2 * LARGEST_READING
        found = made.solved(q, qd, y, weights)[0]
        expected = unknowns(system, refined.solve(q, qd, y, weights))[output_columns(made.system, made.plan.outputs)]
        last = max(last, np.abs(found - expected).max() / np.abs(expected).max())
        batch = np.empty((1, len(found)))
        made.solved_batch([q[None], qd[None], y[None], weights[None]], [batch])
        assert np.abs(batch[0] - expected).max() <= 1e-9 * np.abs(expected).max()
    assert last <= 1e-9
    if beyond != "none":
        assert last <= 1e-15


def test_a_tick_does_not_wait_for_what_refines_states_that_are_not_usual(own_cache, monkeypatch):
    tree, entries = SYSTEMS["torques"]
    system = nd.System(tree, sensor_set(*entries))
    made = nd.plan(system).solver("native")
    numbers = state(system, 4)[:3]
    made.inputs.q[:], made.inputs.qd[:], made.inputs.y[:] = numbers
    made.inputs.weights[0] *= 1e3
    expected = np.asarray(reference(system, *numbers, made.inputs.weights).d, dtype=float)
    asked = []
    with monkeypatch.context() as patch:
        patch.setattr(made.kernel, "prepare", lambda wait: asked.append(wait))
        status = made.tick()
    assert (status.ok, status.fell_back, asked) == (True, True, [False])
    assert "off the fast path" in status.cause
    found = [unknowns(system, vars(made.outputs))]
    made.prepare()
    status = made.tick()
    assert (status.ok, status.fell_back) == (True, False)
    later = nd.plan(system).solver("native")  # finds both in the cache
    later.inputs.q[:], later.inputs.qd[:], later.inputs.y[:], later.inputs.weights[:] = *numbers, made.inputs.weights
    assert not later.tick().fell_back
    found += [unknowns(system, vars(each.outputs)) for each in (made, later)]
    for own in found:
        assert np.abs(own - expected).max() <= 1e-9 * np.abs(expected).max()


def test_pivots_tell_usual_states_from_those_whose_steps_are_larger():
    """One such state is told by the pivot that leaves the most on the path."""
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(300):
        pivots, is_small = rng.uniform(0.5, 1, size=(2, 20)), rng.random(20) < 0.95
        pivots[0, ~is_small] *= rng.choice([1, 0.3, 1e-3])
        least, tenth = least_pivots(pivots, is_small), 0.1 * pivots[:, is_small].min(axis=1)
        on_path = (pivots >= (tenth if least is None else least)[:, None]).all(axis=0)
        if least is not None:
            assert on_path.sum() >= 18
            assert not (on_path & ~is_small).any()
        elif is_small.sum() == 19:
            (larger,) = pivots.T[~is_small]
            assert max((one[is_small] >= 2 * x).sum() for one, x in zip(pivots, larger, strict=True)) < 18
        else:
            assert is_small.sum() < 18 or (on_path & ~is_small).any()
        outcomes.add((least is not None, bool(is_small.all()), least is not None and bool((least > tenth).any())))
    assert len(outcomes) == 4
