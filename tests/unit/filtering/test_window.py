"""A smoother with a fixed lag, against one least-squares problem over the ticks up to now."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError, SingularSystemError
from tests.unit.filtering.recorded import DT, WIDE, by_least_squares, columns, felt, planned, recorded

N, LAG = 9, 3


def stepped(window, ticks, N=N):
    steps = np.diff(ticks.T, prepend=ticks.T[0] - DT)
    return [window.step(ticks.Q[k], ticks.Qd[k], ticks.Y[k], steps[k]) for k in range(N)]


def test_each_tick_is_estimated_by_the_readings_up_to_now(every_backend):
    plan = planned(tree=WIDE)
    ticks = recorded(plan.system, N, seed=1)
    window = nd.Tracker(plan, DT, LAG, backend=every_backend)
    found = stepped(window, ticks)
    assert found[:LAG] == [None] * LAG
    for k in range(LAG, N):
        mean, covariance = by_least_squares(plan.system, *(each[: k + 1] for each in ticks.all))
        for name in ("qdd", "tau"):
            own = columns(plan.system, name)
            np.testing.assert_allclose(found[k][name], mean[k - LAG, own], rtol=1e-9, atol=1e-9)
            spread = np.sqrt(covariance[k - LAG, own, own])
            np.testing.assert_allclose(found[k].deviations[name], spread, rtol=1e-8)
        own = [plan.system.variable_names.index(name) for name in window.memory_names]
        memory = found[k].memory
        np.testing.assert_allclose(memory.mean, mean[k - LAG, own], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(memory.covariance, covariance[k - LAG][np.ix_(own, own)], rtol=1e-8, atol=1e-12)
        assert memory.time == pytest.approx(ticks.T[k - LAG] - ticks.T[0])


def test_the_rest_and_the_present_are_those_of_smoother_and_filter():
    plan = planned()
    ticks = recorded(plan.system, N, seed=2, steps=[DT] * 4 + [10 * DT] + [DT] * 4)  # with a gap
    window, one = nd.Tracker(plan, DT, LAG), nd.Tracker(plan, DT)
    stepped(window, ticks)
    smoothed = one.over(*ticks.all, causal=False)
    rest = window.rest()
    assert len(rest) == LAG
    for k, tracked in zip(range(N - LAG, N), rest, strict=True):
        np.testing.assert_allclose(tracked["tau"], smoothed["tau"][k], rtol=1e-9)
        np.testing.assert_allclose(tracked.deviations["tau"], smoothed.deviations["tau"][k], rtol=1e-9)
    np.testing.assert_allclose(window.present["tau"], one.over(*ticks.all)["tau"][-1], rtol=1e-9)
    assert window.consistency.nis == pytest.approx(smoothed.consistency.nis)
    assert "joint1" in str(window.present)
    few = nd.Tracker(plan, DT, 20)
    stepped(few, ticks)
    assert len(few.rest()) == N


def test_a_window_goes_back_to_the_beginning():
    plan = planned()
    ticks = recorded(plan.system, N, seed=3)
    window = nd.Tracker(plan, DT, LAG)
    first = stepped(window, ticks)[-1]
    window.reset()
    assert window.rest() == []
    np.testing.assert_array_equal(stepped(window, ticks)[-1]["tau"], first["tau"])
    window.reset(first.memory)
    assert window.step(ticks.Q[0], ticks.Qd[0], ticks.Y[0]) is None
    np.testing.assert_allclose(window.present.memory.time, first.memory.time)


def test_what_is_refused():
    plan = planned()
    with pytest.raises(InputError, match=r"lag is 2\.5"):
        nd.Tracker(plan, DT, 2.5)
    window = nd.Tracker(plan, DT, 2)
    with pytest.raises(InputError, match="seen no tick"):
        _ = window.present
    with pytest.raises(InputError, match="dt is -1"):
        window.step(np.zeros(2), np.zeros(2), np.zeros(2), dt=-1)
    with pytest.raises(InputError, match="y has shape"):
        window.step(np.zeros(2), np.zeros(2), np.zeros(3))


def test_what_later_readings_tell_is_no_error():
    plan = planned(felt(), outputs=("tau",))
    ticks = recorded(plan.system, N, seed=4)
    lost = np.where([name.startswith("fx") for name in plan.system.measurement_names], np.nan, ticks.Y[0])
    window = nd.Tracker(plan, DT, 1)
    assert window.step(ticks.Q[0], ticks.Qd[0], lost, missing="drop") is None
    with pytest.raises(SingularSystemError, match="at 0 s: fx:link1"):
        _ = window.present
    assert np.isfinite(window.step(ticks.Q[1], ticks.Qd[1], ticks.Y[1])["tau"]).all()
    window.reset()
    window.step(ticks.Q[0], ticks.Qd[0], lost, missing="drop")
    with pytest.raises(SingularSystemError, match="at 0 s: fx:link1"):
        window.step(ticks.Q[0], ticks.Qd[0], lost, missing="drop")


def test_ticks_and_steps_are_the_same_and_leave_each_other_alone():
    plan = planned()
    ticks = recorded(plan.system, 20, seed=5)
    stepping, mixed = nd.Tracker(plan, DT, LAG), nd.Tracker(plan, DT, LAG)
    assert "seen 1 ticks" in mixed.tick().cause
    mixed.reset()
    found, expected = {}, {}
    for k in range(20):
        expected[k] = stepping.step(ticks.Q[k], ticks.Qd[k], ticks.Y[k])
        if k % 5 == 4:
            found[k] = mixed.step(ticks.Q[k], ticks.Qd[k], ticks.Y[k])
            continue
        mixed.inputs.q[:], mixed.inputs.qd[:], mixed.inputs.y[:] = ticks.Q[k], ticks.Qd[k], ticks.Y[k]
        assert mixed.tick().ok == (k >= LAG)
        if k >= LAG:
            np.testing.assert_allclose(mixed.outputs.tau, expected[k]["tau"], rtol=1e-12)
    for k, tracked in found.items():  # how sure they are is asked for after the window has gone on
        np.testing.assert_array_equal(tracked["tau"], expected[k]["tau"])
        np.testing.assert_array_equal(tracked.memory.covariance, expected[k].memory.covariance)


def test_readings_that_are_none_leave_their_tick_without_an_estimate():
    plan = planned()
    ticks = recorded(plan.system, N, seed=6)
    window = nd.Tracker(plan, DT, LAG)
    for k in range(N):
        window.inputs.q[:], window.inputs.qd[:] = ticks.Q[k], ticks.Qd[k]
        window.inputs.y[:] = np.nan if k == 2 else ticks.Y[k]
        status = window.tick()
        assert status.ok == (k >= LAG and k != 2 + LAG), status
        if k == 2 + LAG:
            assert "at 0.02 s: " in status.cause
            assert "not determined" in status.cause
            assert np.isnan(window.outputs.tau).all()
    assert window.consistency.ticks == N - 1
