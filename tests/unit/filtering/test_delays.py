"""How late estimates follow what persists: by closed forms, and by steps of it that are simulated."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import UnknownNameError
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED
from tests.unit.filtering.recorded import planned, remembering, sensors

ARM = nd.autotree(1)


def walking(walk, sigma, **more):
    """A torque sensor with an offset that walks, on a joint whose acceleration is known."""
    torque = TORQUES | {"sigma": sigma, "offset": {"sigma": 5}}
    return remembering(torque, UNLOADED, ACCELERATIONS, memory={"offsets": {"of": "offset", "walk": walk, **more}})


@pytest.mark.parametrize(
    ("walk", "dt", "T"),
    [(0.5, 0.01, np.inf), (3.0, 0.1, np.inf), (1e-2, 0.05, np.inf), (6e-7, 0.05, np.inf), (1.0, 0.05, 0.3)],
)
def test_a_walk_that_is_read_and_what_decays(walk, dt, T):
    more = {"time_constant": T} if np.isfinite(T) else {}
    plan = planned(walking(walk, 0.2, **more), ARM, ("offset", "tau"))
    a, r2 = np.exp(-dt / T), 0.04
    Q = walk**2 * (T / 2 * (1 - np.exp(-2 * dt / T)) if more else dt)
    b = r2 * (1 - a**2) - Q  # of Kalman's filter, settled: P = a^2 P r2 / (P + r2) + Q
    P = (-b + np.sqrt(b**2 + 4 * Q * r2)) / 2
    K = P / (P + r2)
    late = dt * (1 - K) / (1 - a * (1 - K))
    found = nd.Tracker(plan, dt, backend="numpy").delays(np.zeros(1))
    assert found["offset:tau:joint1"] == pytest.approx(late, rel=1e-9)
    np.testing.assert_allclose(found.outputs["offset"], late, rtol=1e-9)
    np.testing.assert_array_equal(found.outputs["tau"], 0.0)  # known by the acceleration
    assert "offset:tau:joint1" in str(found)


def test_constants_are_not_followed():
    plan = planned(walking(0.0, 0.2), ARM, ("offset", "tau"))
    found = nd.Tracker(plan, 0.01, backend="numpy").delays(np.zeros(1))
    assert found["offset:tau:joint1"] == np.inf
    with pytest.raises(UnknownNameError, match="nothing"):
        _ = found["nothing"]


def test_what_is_seen_only_together_is_not_followed():
    torque = TORQUES | {"sigma": 0.2, "offset": {"sigma": 5}}
    memory = {"offsets": {"of": "offset", "walk": 0.5}, "push": {"of": "fx:link1", "walk": 0.5, "sigma": 1}}
    plan = planned(remembering(torque, ACCELERATIONS, memory=memory), ARM, ("offset", "fx:link1", "tau"))
    found = nd.Tracker(plan, 0.01, backend="numpy").delays(np.zeros(1))
    assert found["offset:tau:joint1"] == np.inf
    assert found["fx:link1"] == np.inf
    assert np.isinf(found.outputs["offset"]).all()


def test_what_decays_and_is_read_by_nothing_is_not_followed():
    memory = {"push": {"of": "fx:link1", "walk": 0.5, "time_constant": 1000, "sigma": 1}}
    plan = planned(remembering(TORQUES | {"sigma": 0.2}, ACCELERATIONS, memory=memory), ARM, ("fx:link1",))
    found = nd.Tracker(plan, 0.01, backend="numpy").delays(np.array([0.4]))
    followed = [axis for axis in ("mx", "my", "mz", "fx", "fy", "fz") if np.isfinite(found[f"fx:link1.{axis}"])]
    assert followed == ["mz"]  # about the axis of the joint


@pytest.mark.parametrize("joint", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_step_that_is_simulated(joint):
    """An observer of a push: what the estimate misses after a step, summed up, is the delay that is stated.

    q is held where it is, so that the filter is the same at all ticks; all else is as the push would have it.
    """
    dt, n = 0.004, 600
    plan = planned(sensors(offsets={"of": "offset", "walk": 4.0}), outputs=("qdd", "offset"))
    one, tree, q, still = nd.Tracker(plan, dt), plan.system.tree, np.array([0.3, -0.4]), np.zeros(2)
    stated, held = one.delays(q), nd.rnea(plan.system.tree, q, still, still)

    def late(push, qdd, name):
        one.reset()
        for _ in range(n):
            one.step(q, still, held)
        missing = []
        for k in range(n):
            qd = k * dt * qdd
            tracked = one.step(q, qd, nd.rnea(tree, q, qd, qdd) + push)
            missing.append((push if name == "offset" else qdd) - tracked[name])
        return dt * np.sum(missing, axis=0)

    own = np.eye(2)[joint]
    found = late(own, still, "offset")[joint]  # the motors push, and the arm stands still
    assert stated[f"offset:tau:joint{joint + 1}"] == pytest.approx(found, rel=1e-3)
    assert stated.outputs["offset"][joint] == pytest.approx(found, rel=1e-3)
    push = nd.minverse(tree, q)[joint]  # of all pushes as large the one that this joint feels most
    qdd = -nd.minverse(tree, q) @ push  # the motors go on as they are
    assert stated.outputs["qdd"][joint] == pytest.approx(late(push, qdd, "qdd")[joint] / qdd[joint], rel=1e-3)
