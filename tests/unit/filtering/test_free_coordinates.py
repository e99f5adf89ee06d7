"""What is free in a tick, and what weighed rows say of it, against a dense solution of the system's own equations."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.ranges import numbers_in
from nori_dyn.filtering import free_coordinates
from nori_dyn.filtering.tick_programs import TickPrograms
from nori_dyn.program.compiler import find_compiler
from tests.mechanisms import closed_state, four_bar
from tests.robots import load
from tests.systems import ACCELERATIONS, SPEED, TORQUES, UNLOADED
from tests.trees import three_children
from tests.unit.filtering.recorded import remembering


def observer():
    return nd.sensors("momentum_observer")


def pushed():
    torque = TORQUES | {"sigma": 0.1}
    free = {"type": "external_wrench", "links": {"except": "tips"}, "value": 0}
    return remembering(torque, free, ACCELERATIONS, memory={"push": {"of": "fx:link3", "walk": 5.0, "sigma": 20}})


def standing(foot="LF_FOOT"):
    measurements = [
        {"type": "joint_acceleration", "joints": "actuated", "sigma": 0.5},
        {"type": "joint_torque", "joints": "actuated", "sigma": 0.1, "offset": {"sigma": 3}},
        {"type": "joint_torque", "joints": {"except": "actuated"}, "value": 0},
        {"type": "rigid_contact", "links": [foot]},
        {"type": "external_wrench", "links": {"except": [foot]}, "value": 0},
    ]
    return remembering(*measurements, memory={"speed": SPEED, "offsets": {"of": "offset", "walk": 0.01}})


def four_bars():
    torques = TORQUES | {"sigma": 0.1, "offset": {"sigma": 1}}
    return remembering(torques, UNLOADED, memory={"speed": SPEED, "push": {"of": "offset", "walk": 1.0}})


CASES = {
    "an arm": (lambda: load("ur5"), observer, (6, 6, 6)),
    "one that is pushed": (lambda: nd.autotree(3, skew=0.3), pushed, None),
    "a body on one of three limbs": (three_children, lambda: standing(three_children().names[3]), (3, 9, 3)),
    "a walker on a foot": (lambda: load("anymal", "floating"), standing, (12, 18, 12)),
    "a loop": (four_bar, four_bars, None),
}
LONG = {"a walker on a foot": pytest.mark.long}


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG.get(name, ())) for name in CASES])
def test_rows_and_rates_are_those_of_the_whole_system(name):
    robot, sensors, sizes = CASES[name]
    tree = robot()
    system = nd.System(tree, sensors())
    tick = TickPrograms(nd.plan(system, outputs=["tau", "qdd"]))
    freed, system = tick.coordinates, tick.system
    assert sizes is None or tick.sizes == sizes
    rng = np.random.default_rng(3)
    q = closed_state(tree, 2)[0] if tree.components else tree.random_configuration(2)
    qd, y, u = rng.normal(size=tree.nv), rng.normal(size=system.ny), rng.normal(size=len(freed.names))
    D, b = system.D(q).toarray(), system.b(q, qd, y)
    exact = numbers_in(row.slice for row in system.rows if row.is_exact)
    selected = np.eye(system.shape[1])[freed.columns]
    d = np.linalg.solve(np.vstack([D[exact], selected]), np.concatenate([-b[exact], u]))

    measured = tick.measured(q, qd, y)
    weighed = numbers_in(row.slice for row in freed.weighed)
    assert measured.A @ u + measured.c == pytest.approx(
        D[weighed] @ d + b[weighed], rel=1e-9, abs=1e-9 * np.abs(d).max()
    )
    rates = numbers_in(system.column(*one.rate) for one in freed.memory if one.rate is not None)
    assert measured.X @ u + measured.x == pytest.approx(d[rates], rel=1e-9, abs=1e-9 * np.abs(d).max())
    estimate = tick.outputs(q, qd, y, u)
    for kind in ("tau", "qdd"):
        assert estimate[kind] == pytest.approx(d[numbers_in(v.slice for v in system.variables if v.kind == kind)])
    slopes = tick.slopes(q, qd, y)
    assert estimate.tau + (slopes @ u)[: tree.nv] == pytest.approx(tick.outputs(q, qd, y, 2 * u).tau)


def test_what_is_known_at_first_is_no_row_of_a_tick():
    system = nd.System(load("ur5"), observer())
    names = TickPrograms(nd.plan(system, outputs=["qdd"])).coordinates.row_names
    assert not [name for name in names if name.startswith("prior:")]
    assert len(names) == 12


def test_the_order_of_a_tick_is_looked_up(own_cache, monkeypatch):
    made, real = [], free_coordinates.make_plan
    monkeypatch.setattr(
        free_coordinates, "make_plan", lambda *given, **named: made.append(given) or real(*given, **named)
    )
    arms = [nd.System(nd.autotree(3, skew=skew), "momentum_observer") for skew in (0.0, 0.2)]
    (one, again), (other, _) = ([TickPrograms(nd.plan(arm), "numpy") for _ in range(2)] for arm in arms)
    assert len(made) == 2  # one of each arm
    state = np.ones(3), np.ones(3), np.ones(arms[0].ny)
    np.testing.assert_array_equal(one.rows(*state), again.rows(*state))
    costs = [each.coordinates.plan.cost.total for each in (one, again, other)]
    assert costs[0] == costs[1] < costs[2]


@pytest.mark.skipif(find_compiler() is None, reason="NumPy runs the expressions")
def test_what_was_compiled_is_not_traced_again(own_cache, monkeypatch):
    system = nd.System(nd.autotree(3), "momentum_observer")
    state = np.full(3, 0.3), np.ones(3), np.ones(system.ny)

    def found():
        tick = TickPrograms(nd.plan(system, outputs=["tau"]))
        measured = tick.measured_each(*(one[None] for one in state))
        return tick.coordinates.rows.A, tick.rows(*state), measured, tick.slopes(*state), tick.rows

    *first, _ = found()
    with monkeypatch.context() as patched:
        patched.setattr("nori_dyn.planning.planner.refine", lambda *a: pytest.fail("traced again"))
        *again, rows = found()
        assert again[0] == first[0]
        for one, other in zip(first[1:], again[1:], strict=True):
            np.testing.assert_array_equal(one, other)
        with pytest.raises(nd.errors.SingularSystemError, match="is not finite"):
            rows(np.full(3, 1e300), np.full(3, 1e200), state[2])
    for entry in (own_cache / "native").glob("*.json"):
        entry.write_bytes(entry.read_bytes()[:-3])
    *anew, _ = found()
    assert anew[0] == first[0]
    np.testing.assert_array_equal(anew[1], first[1])
