"""Estimates of samples one by one against a solver given the same; what is left out; causal derivatives."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError, PlanError
from nori_dyn.estimation.run_options import RunOptions
from nori_dyn.live.differentiation import COLLECTED, AdaptiveFilter, live_derivative
from nori_dyn.live.engine import Engine, prepared
from nori_dyn.live.state import State
from nori_dyn.logs.formats.source import Stream
from nori_dyn.logs.mapping.binding import bind
from nori_dyn.logs.mapping.record import SampleRecord
from tests.systems import ACCELERATIONS, SPEED, TORQUES, UNLOADED, WRENCHES, braked, sensor_set

N = 3


def joints(kind):
    return [f"{kind}:joint{k + 1}" for k in range(N)]


def made(plans, columns, closed=None, differentiate=None, lag=0, **options):
    """An engine and its state for a stream with columns of the usual names."""
    solving = prepared(plans, RunOptions(closed=closed, **options), lag)
    record = SampleRecord.of(solving.systems, solving.contacts)
    stream = Stream("/robot", ("t", *columns), clock="t")
    heard = dict.fromkeys(stream.columns, stream)
    binding = bind(heard, None, record)
    return Engine(solving, binding, differentiate, heard), State(binding)


def ticked(engine, state, t, numbers):
    bound = state.tracks["/robot"].bound
    values = np.array([{"t": t, **numbers}[column] for column in bound.columns])
    due = state.take("/robot", values, t)
    return None if due is None else engine.tick(state, due)


@pytest.fixture(scope="module")
def arm():
    return nd.autotree(N)


@pytest.fixture(scope="module")
def inverse(arm):
    return nd.plan(nd.System(arm, "inverse_dynamics"), outputs=["tau"])


def motion(rng):
    return {
        name: float(x) for kind in ("q", "qd", "qdd") for name, x in zip(joints(kind), rng.normal(size=N), strict=True)
    }


def test_accelerations_are_made_of_velocities_but_not_in_a_gap(arm, inverse):
    engine, state = made(inverse, [*joints("q"), *joints("qd")], differentiate="auto")
    acceleration, jerk = np.array([1.0, -2.0, 0.5]), np.array([3.0, 1.0, -1.0])
    for k in range(60):
        t = 0.01 * k
        qd = acceleration * t + jerk * t**2 / 2
        q = acceleration * t**2 / 2 + jerk * t**3 / 6
        tick = ticked(engine, state, 5 + t, dict(zip(joints("q") + joints("qd"), [*q, *qd], strict=True)))
        assert (tick is None) == (k <= COLLECTED)  # the first tells no time between samples
    expected = nd.rnea(arm, q, qd, acceleration + jerk * t)
    np.testing.assert_allclose(tick.estimate.tau, expected, rtol=1e-6, atol=1e-8)
    assert engine.made == tuple(joints("qdd"))
    assert engine.account.skipped == {"velocities are collected to differentiate them": COLLECTED + 1}
    engine, state = made(inverse, [*joints("q"), *joints("qd")], differentiate="auto")
    still = dict.fromkeys([*joints("q"), *joints("qd")], 0.0)
    times = [*(0.01 * np.arange(1, 40)), *(0.01 * np.arange(42, 50)), *(0.01 * np.arange(80, 110))]
    found = [ticked(engine, state, t, still) is not None for t in times]
    n = COLLECTED + 1
    assert found == [False] * n + [True] * (47 - n) + [False] * COLLECTED + [True] * (30 - COLLECTED)


def test_deflections_of_joints_before_they_slide_are_made_of_positions(arm, inverse):
    law = {"distance": 1e-3, "creep": 0.5}
    rubbing = arm.replace(components=[nd.components.Friction(joints="all", coulomb=2.0, presliding=law)])
    plan = nd.plan(nd.System(rubbing, "inverse_dynamics"), outputs=["tau", "deflection"])
    engine, state = made(plan, [name for kind in ("q", "qd", "qdd") for name in joints(kind)])
    z, rng = np.zeros(N), np.random.default_rng(0)
    numbers = {**motion(rng), **{name: 0.0 for kind in ("qd", "qdd") for name in joints(kind)}}
    for k in range(20):
        moved = rng.uniform(-8e-4, 8e-4, N) * (k > 0)
        numbers |= {name: numbers[name] + step for name, step in zip(joints("q"), moved, strict=True)}
        z = np.clip(np.exp(-0.01 / 0.5) * z + moved / 1e-3, -1.0, 1.0)
        tick = ticked(engine, state, 5 + 0.01 * k, numbers)
        np.testing.assert_allclose(tick.estimate["deflection"], z, atol=1e-9)
    assert np.abs(z).max() > 0.1


def test_what_no_stream_tells_is_named(inverse):
    with pytest.raises(InputError, match="--differentiate"):
        made(inverse, [*joints("q"), *joints("qd")])
    with pytest.raises(InputError, match=r"'q:joint3'.*Its columns are t, q \(3 columns\)"):
        made(inverse, ["q:joint1", "q:joint2", "q:joint_three", *joints("qd"), *joints("qdd")])


def test_numbers_that_are_not_known_leave_the_sample_out(inverse):
    engine, state = made(inverse, [*joints("q"), *joints("qd"), *joints("qdd")])
    numbers = motion(np.random.default_rng(0))
    assert ticked(engine, state, 1.0, numbers | {"qd:joint2": np.nan, "qdd:joint3": np.nan}) is None
    assert engine.why == "q or qd is not known: qd:joint2"
    assert ticked(engine, state, 2.0, numbers | {"qdd:joint3": np.nan}) is None
    assert engine.why == "a reading is missing: qdd:joint3"
    assert ticked(engine, state, 3.0, numbers) is not None
    assert ticked(engine, state, 3.1, numbers | {"qdd:joint3": np.nan}) is not None  # as it was a moment ago
    assert engine.account.skipped == {"q or qd is not known": 1, "a reading is missing": 1}


@pytest.fixture(scope="module")
def weighted(arm):
    torques = TORQUES | {"sigma": 0.1, "range": [-500, 500]}
    sensors = sensor_set(ACCELERATIONS | {"sigma": 0.1}, torques, UNLOADED)
    return nd.plan(nd.System(arm, sensors), outputs=["tau"])


ALL = [*joints("q"), *joints("qd"), *joints("qdd"), *joints("tau")]


def consistent(arm, rng):
    numbers = motion(rng)
    q, qd, qdd = (np.array([numbers[name] for name in joints(kind)]) for kind in ("q", "qd", "qdd"))
    return numbers | dict(zip(joints("tau"), nd.rnea(arm, q, qd, qdd), strict=True))


def test_sensors_that_are_silent_or_saturated_are_left_out_where_they_have_a_sigma(arm, weighted):
    engine, state = made(weighted, ALL)
    numbers = consistent(arm, np.random.default_rng(1))
    whole = ticked(engine, state, 1.0, numbers)
    np.testing.assert_allclose(whole.estimate.tau, [numbers[name] for name in joints("tau")], rtol=1e-9)
    for k, lost in enumerate(({"tau:joint1": np.nan}, {"tau:joint1": 501.0})):
        engine, state = made(weighted, ALL)
        tick = ticked(engine, state, 2.0 + k, numbers | lost)
        np.testing.assert_allclose(tick.estimate.tau, whole.estimate.tau, rtol=1e-9)
        assert engine.account.sensors == {"tau:joint1": 1}
        assert engine.account.skipped == {}


@pytest.fixture(scope="module")
def touch():
    contacts = {"tip": {"closed": [WRENCHES], "open": [UNLOADED]}}
    sensors = sensor_set(ACCELERATIONS, name="touch", contacts=contacts)
    return nd.plan(nd.autotree(1), sensors, outputs=["tau"])


WRENCH = {f"fx:link1.{c}": x for c, x in zip(("mx", "my", "mz", "fx", "fy", "fz"), (0, 0, 0.5, 0, 0, 0), strict=True)}
STILL = {"q:joint1": 0.0, "qd:joint1": 0.0, "qdd:joint1": 1.0}


def test_contacts_switch_plans_or_are_given_for_good(touch):
    engine, state = made(touch, [*STILL, *WRENCH, "contact:tip"])
    closed = ticked(engine, state, 1.0, STILL | WRENCH | {"contact:tip": 1.0})
    assert closed.estimate.tau == pytest.approx([-1 / 6], abs=1e-2)
    opened = ticked(engine, state, 2.0, STILL | dict.fromkeys(WRENCH, np.nan) | {"contact:tip": 0.0})
    assert opened.estimate.tau == pytest.approx([1 / 3], abs=1e-2)
    assert ticked(engine, state, 3.0, STILL | WRENCH | {"contact:tip": 0.5}) is None
    assert engine.account.skipped == {"a contact is neither open nor closed": 1}
    engine, state = made(touch, [*STILL], closed=())
    assert ticked(engine, state, 1.0, STILL).estimate.tau == pytest.approx([1 / 3], abs=1e-2)
    with pytest.raises(InputError, match=r"'fx:link1\.mx'"):
        made(touch, [*STILL], closed=("tip",))
    with pytest.raises(InputError, match="one contact state"):
        prepared(touch, RunOptions(monitor=True))


def observer() -> nd.Plan:
    """A plan of a joint that something pushes: its velocity and the push persist."""
    torque = TORQUES | {"sigma": 0.1, "offset": {"sigma": 10}}
    memory = {"speed": SPEED, "push": {"of": "offset", "walk": 1.0}}
    return nd.plan(nd.autotree(1), sensor_set(torque, UNLOADED, name="observer", memory=memory), outputs=["qdd"])


MOVING = ["q:joint1", "qd:joint1", "tau:joint1"]
TIMES = [1.0, 1.01, 1.02, 1.03, 1.045, 1.5, 1.51, 1.52, 1.53, 1.54, 1.55, 1.56, 1.57, 2.9, 2.91]
"""With gaps: the second, from 1.57 on, is one once the usual time between samples is known."""


def moving(rng):
    return dict(zip(MOVING, rng.normal(size=3) * [1.0, 0.1, 2.0], strict=True))


@pytest.mark.parametrize("lag", [0, 3])
def test_a_plan_with_memory_runs_as_a_tracker(lag):
    plan, rng = observer(), np.random.default_rng(0)
    engine, state = made(plan, MOVING, lag=lag)
    one = nd.Tracker(plan, 1.0, lag)
    last = None
    for k, t in enumerate(TIMES):
        numbers = moving(rng)
        if np.isfinite(state.period):
            one.dt = state.period
        tick = ticked(engine, state, t, numbers)
        expected = one.step([numbers[MOVING[0]]], [numbers[MOVING[1]]], [numbers[MOVING[2]]], last and t - last)
        last = t
        assert (tick is None) == (expected is None) == (k < lag)
        if tick is not None:
            assert tick.t == TIMES[k - lag]
            np.testing.assert_array_equal(tick.estimate.qdd, expected["qdd"])
            np.testing.assert_array_equal(tick.judged.memory.mean, expected.memory.mean)
    assert one.dt < 0.1
    assert ticked(engine, state, 0.5, moving(rng)) is None or not lag  # time has begun anew
    assert engine._estimate.tracker.n_ticks == 1


def test_contacts_are_recognised_in_a_stream():
    plan = nd.plan(nd.autotree(1), braked(0.1, 0.1, 0.01), outputs=["fx"])
    columns = [*MOVING, "qdd:joint1"]
    engine, state = made(plan, columns, hypotheses=nd.Hypotheses())
    still = dict.fromkeys(columns, 0.0)
    free = ticked(engine, state, 1.0, still)
    held = ticked(engine, state, 1.001, still | {"tau:joint1": 3.0})
    assert (free.judged.contacts, held.judged.contacts) == ((), ("brake",))
    assert held.judged.probability_of("brake") > 0.9
    assert held.estimate["fx"][0, 2] == pytest.approx(-3.0, abs=0.1)
    engine, state = made(plan, columns, lag=2, hypotheses=nd.Hypotheses(lag=0))
    torques = 0.0, 3.0, 3.0, 3.0
    late = [ticked(engine, state, 1 + 0.001 * k, still | {"tau:joint1": tau}) for k, tau in enumerate(torques)]
    assert [one is None for one in late] == [True, True, False, False]
    assert [(one.t, one.judged.contacts) for one in late[2:]] == [(1.0, ()), (1.001, ("brake",))]
    with pytest.raises(InputError, match="judges its readings by itself"):
        prepared(plan, RunOptions(monitor=True))
    with pytest.raises(PlanError, match="memory"):
        prepared(nd.plan(nd.System(nd.autotree(1), "inverse_dynamics")), RunOptions(), lag=1)


def test_it_begins_anew_where_time_goes_back_or_has_no_step():
    derivative = AdaptiveFilter(1)
    for begin in (5.0, 1.0):
        told = [derivative.add(begin + 0.1 * k, np.ones(1), 0.1) for k in range(COLLECTED + 1)]
        assert all(each is None for each in told[:-1])
        assert told[-1] == pytest.approx(0.0, abs=1e-9)
    assert AdaptiveFilter(1).add(0.0, np.ones(1), 0.0) is None


def test_ways_that_cannot_be_are_refused():
    for said, why in ((51, "looks ahead"), ("smoother", "looks ahead"), ("median", "is not known")):
        with pytest.raises(InputError, match=why):
            live_derivative(said, 1)
    assert live_derivative(None, 1) is None
    assert isinstance(live_derivative("auto", 1), AdaptiveFilter)


def adapted(t, velocities, period):
    """What the adaptive filter says of velocities (N, n); nan where it says nothing."""
    derivative, found = AdaptiveFilter(velocities.shape[1]), np.full(velocities.shape, np.nan)
    for k in range(len(t)):
        told = derivative.add(t[k], velocities[k], period)
        if told is not None:
            found[k] = told
    return found


def test_the_adaptive_filter_comes_near_the_one_that_knows_the_noise_of_the_whole_log():
    rng = np.random.default_rng(0)
    t, w, dt = 0.002 * np.arange(4000), np.array([2.0, 10.0]), 0.002
    at = np.outer(np.maximum(t - 2.0, 0.0), w)  # nothing moves at first
    qd, qdd = np.sin(at), w * np.cos(at) * (t >= 2.0)[:, None]
    read = qd + rng.normal(0, [1e-3, 1e-2], qd.shape)

    def off(accelerations):
        return np.sqrt(np.mean((accelerations - qdd)[2000:] ** 2, axis=0))

    found = adapted(t, read, dt)
    assert np.isnan(found[:COLLECTED]).all()
    assert np.isfinite(found[COLLECTED:]).all()
    known = nd.tools.joint_motion(t[1000:], None, read[1000:], causal=True).qdd
    assert (off(found) < 1.25 * off(np.concatenate([found[:1000], known]))).all()


def test_the_adaptive_filter_begins_anew_after_a_gap_and_bears_uneven_times():
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.uniform(0.5e-3, 1.5e-3, 3000))
    t[2000:] += 1.0
    found = adapted(t, np.sin(3 * t)[:, None] + rng.normal(0, 1e-4, (3000, 1)), 1e-3)[:, 0]
    told = np.isfinite(found)
    assert not told[2000 : 2000 + COLLECTED].any()
    assert told[COLLECTED:2000].all()
    assert told[2000 + COLLECTED :].all()
    late = np.abs(found - 3 * np.cos(3 * t))
    assert np.sqrt(np.mean(late[1000:2000] ** 2)) < 0.2
    assert np.sqrt(np.mean(late[2200:] ** 2)) < 0.2
    constant = adapted(1e-3 * np.arange(100), np.ones((100, 2)), 1e-3)
    np.testing.assert_allclose(constant[COLLECTED:], 0.0, atol=1e-9)
