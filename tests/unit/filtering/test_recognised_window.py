"""A lag over recognised contacts: what a window says that is told the states which hypotheses settle."""

from functools import cache

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError, PlanError
from tests.unit.filtering.test_base import DT, TILTS, run_of, stepping
from tests.unit.filtering.test_contacts import readings, sensors
from tests.walking import walk

LAG, SETTLED = 7, 3


@cache
def late(backend: str) -> nd.Tracker:
    """One of each backend, which every test begins anew: that in C is compiled for vectors of four doubles."""
    return nd.Tracker(stepping(), DT, lag=LAG, hypotheses=nd.Hypotheses(lag=SETTLED), backend=backend)


def check_same(found: nd.results.Tracked, expected: nd.results.Tracked) -> None:
    assert found.memory.time == pytest.approx(expected.memory.time)
    np.testing.assert_allclose(found["fx"], expected["fx"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.deviations["fx"], expected.deviations["fx"], rtol=1e-9)
    np.testing.assert_allclose(found.memory.mean, expected.memory.mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("every_backend", ["numpy", 4], indirect=True)
def test_it_is_a_window_that_is_told_what_was_settled(every_backend):
    """Through a foot that gives way and readings that are no numbers; the base is state, along axes that turn."""
    n = 60
    _, (_, Q, Qd, Y) = run_of(n, TILTS[1], 3)
    Y[30:, 6] += 0.5
    Y[41, 0] = np.nan
    plan, tracker = stepping(), late(every_backend)
    tracker.reset()
    told = nd.Tracker(plan, DT, lag=LAG - SETTLED, backend=every_backend)
    judged = nd.Tracker(plan, DT, hypotheses=nd.Hypotheses(lag=SETTLED), backend=every_backend)
    found, settled = [], []
    for k in range(n):
        given = Q[k], Qd[k], Y[k]
        one = tracker.step(*given, missing="drop")
        judged.step(*given, missing="drop")
        assert (one is None) == (k < LAG)
        found += [one] * (one is not None)
        if k >= SETTLED:
            past = judged.smoothed(SETTLED)
            settled.append(max(past, key=past.__getitem__))
    assert tracker.present.contacts == judged.contacts
    assert len(set(settled)) > 1
    settled += [max(p, key=p.__getitem__) for p in (judged.smoothed(ticks) for ticks in range(SETTLED - 1, -1, -1))]
    found += tracker.rest()
    expected = []
    for k in range(n):
        told.switch(settled[k])
        one = told.step(Q[k], Qd[k], Y[k], missing="drop")
        expected += [one] * (one is not None)
    expected += told.rest()
    assert len(found) == len(expected) == n
    switches = 0
    for k in range(n):
        assert found[k].contacts == settled[k]
        assert (found[k].switch is not None) == (k > 0 and settled[k] != settled[k - 1])
        switches += found[k].switch is not None
        if not n - LAG <= k < n - LAG + SETTLED:  # these `told` has returned before it had seen the end
            check_same(found[k], expected[k])
    assert switches
    with pytest.raises(InputError, match="`reset` the tracker"):
        tracker.step(Q[0], Qd[0], Y[0])


@pytest.mark.parametrize("every_backend", ["numpy", 4], indirect=True)
def test_ticks_write_what_steps_return_and_weights_count(every_backend):
    _, (_, Q, Qd, Y) = run_of(25, TILTS[0], 5)
    tracker = late(every_backend)
    usual = tracker.steps.tick.system.weights
    heavier = {name: 3.0 for name in tracker.weight_names if name.startswith("gyro")}
    assert heavier
    tracker.reset()
    steps = [tracker.step(Q[k], Qd[k], Y[k], weights=heavier if k >= 12 else None) for k in range(25)]
    tracker.reset()
    tracker.inputs.weights[:] = usual
    for k, found in enumerate(steps):
        tracker.inputs.q[:], tracker.inputs.qd[:], tracker.inputs.y[:] = Q[k], Qd[k], Y[k]
        if k == 12:
            tracker.inputs.weights[[tracker.weight_names.index(name) for name in heavier]] = 3.0
        assert tracker.tick().ok == (found is not None)
        if found is None:
            assert np.isnan(tracker.outputs.fx).all()
        else:
            np.testing.assert_allclose(tracker.outputs.fx, found["fx"], rtol=1e-9, atol=1e-9)
    tracker.reset()
    tracker.inputs.y[0] = np.nan
    assert not tracker.tick().ok
    tracker.inputs.weights[:] = usual


@pytest.mark.long
def test_forces_of_a_walk_are_nearer_than_those_of_a_filter():
    """A biped walks in MuJoCo; its recogniser is a third nearer to the forces of the ground ten ticks late."""
    record = walk("biped")
    qd, y = readings(record, np.zeros((2, 6)))
    plan, ticks = nd.plan(record.tree, sensors("biped"), outputs=["fx"]), range(300, 700)
    feet, hypotheses = [record.tree.names.index(name) for name in record.feet], nd.Hypotheses(acceleration=3.0)
    off = []
    for lag in (0, 10):
        tracker = nd.Tracker(plan, 1e-3, lag=lag, hypotheses=hypotheses)
        found = [one for k in ticks if (one := tracker.step(record.q[k], qd[k], y[k])) is not None]
        found += tracker.rest() if lag else []
        forces = np.array([one["fx"][feet, 3:] for one in found])
        off.append(np.sqrt(np.mean((forces - record.fx[ticks][:, :, 3:]) ** 2)))
    assert off[1] < 0.75 * off[0] < 2.0  # N


def test_what_cannot_be_is_said(tmp_path):
    with pytest.raises(InputError, match="lag is 2, and the hypotheses settle a contact state 3 ticks late"):
        nd.Tracker(stepping(), DT, lag=2, hypotheses=nd.Hypotheses(lag=3), backend="numpy")
    with pytest.raises(InputError, match="wait=False"):
        nd.Tracker(stepping(), DT, lag=2, hypotheses=nd.Hypotheses(), wait=False)
    made = late("numpy")
    with pytest.raises(PlanError, match="recognises contacts or has a lag"):
        made.export(tmp_path / "it")
    with pytest.raises(InputError, match="without a lag"):
        nd.tools.ContactLocalizer(made, {})
    made.save(tmp_path / "it.plan")
    again = nd.Tracker.load(tmp_path / "it.plan", backend="numpy")
    assert (again.lag, again.steps.lag) == (LAG, SETTLED)
