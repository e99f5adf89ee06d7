"""Filters as users call them: what they refuse, what is missing, gaps, states in and out, and the same again."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import (
    InputError,
    NoriError,
    SingularSystemError,
    UnknownNameError,
    UnplannedStateError,
    WrongKindError,
)
from nori_dyn.estimation.plan import plan_set
from nori_dyn.estimation.tracker import Filter
from nori_dyn.filtering.instants import GAP, ContactPrograms
from nori_dyn.filtering.knowledge import MemoryState
from nori_dyn.filtering.steps import ContactSteps
from nori_dyn.filtering.tracker import TrackerBase
from tests.systems import ACCELERATIONS, SPEED, UNLOADED
from tests.unit.filtering.recorded import remembering

pytestmark = pytest.mark.usefixtures("compiled_as_shipped")

DT = 0.01
TORQUES = {"type": "joint_torque", "joints": "all", "sigma": 0.1, "offset": {"sigma": 10}}
PUSH = {"of": "offset", "walk": 5.0}
BACKENDS = ("numpy", "native")


def system(*entries, joints=2, memory=None, **more):
    memory = {"speed": SPEED, "push": PUSH} if memory is None else memory
    return nd.System(nd.autotree(joints), remembering(*(entries or (TORQUES, UNLOADED)), memory=memory, **more))


def observer(backend="numpy", **options):
    return Filter(nd.plan(system(**options), outputs=["qdd"]), DT, backend)


@pytest.fixture(scope="module", params=BACKENDS)
def made(request):
    return observer(request.param)


@pytest.fixture
def running(made):
    made.reset()
    return made


def state(k=0):
    rng = np.random.default_rng(k)
    return rng.normal(size=2), rng.normal(size=2), rng.normal(size=2)


def run(running, ticks, start=0):
    return [running.step(*state(k)) for k in range(start, start + ticks)]


def test_times_that_are_none_are_refused():
    plan = nd.plan(system(), outputs=["qdd"])
    for dt in (0, 0.0, -DT, np.nan, np.inf, True, "0.01", None):
        with pytest.raises(InputError, match="positive number of seconds"):
            Filter(plan, dt, "numpy")


TIMES = 0, -DT, np.nan, np.inf, -np.inf, True, "0.01", [DT]
REFUSED = [
    *(({"dt": dt}, "positive number of seconds") for dt in TIMES),
    ({"q": np.zeros(3)}, "q has shape"),
    ({"qd": np.zeros((1, 2))}, "qd has shape"),
    ({"y": np.zeros(1)}, "y has shape"),
    ({"y": {"tau:joint1": 1.0}}, "y lacks"),
    ({"y": {"tau:joint1": 1.0, "tau:joint2": 1.0, "tau:joint3": 1.0}}, "joint3"),
    ({"y": ["a", "b"]}, "y"),
    ({"q": np.array([np.nan, 0.0])}, "q"),
    ({"qd": np.array([0.0, np.inf])}, "qd"),
    ({"y": np.array([0.0, np.nan])}, "tau:joint2"),
    ({"weights": {"tau:joint1": -1.0}}, "below zero"),
    ({"weights": {"nothing": 1.0}}, "nothing"),
    ({"weights": np.ones(2)}, "weights has shape"),
    ({"missing": "guess"}, "guess"),
]


def test_what_is_no_tick_is_refused_and_changes_nothing(running):
    before = run(running, 3)[-1].memory
    q, qd, y = state(3)
    for change, said in REFUSED:
        with pytest.raises(NoriError, match=said):
            running.step(**{"q": q, "qd": qd, "y": y, **change})
        assert np.array_equal(running.state.mean, before.mean)
        assert np.array_equal(running.state.covariance, before.covariance)
        assert running.state.time == before.time
        assert running.consistency.ticks == 3


def test_what_no_reading_tells_is_named_and_what_is_known_goes_on(running):
    run(running, 5)
    before = running.state
    q, qd, y = state(5)
    with pytest.raises(SingularSystemError, match="qdd:joint2 not determined"):
        running.step(q, qd, np.array([y[0], np.nan]), missing="drop")
    lacking = running.state
    assert lacking.time == pytest.approx(before.time + DT)
    assert np.all(lacking.deviations[:2] < 1e-3)  # by the velocities, which were read
    assert lacking.deviations[3] > before.deviations[3]
    after = running.step(*state(6)).memory
    ticks = [state(k) for k in range(7)]
    Q, Qd, Y = (np.array(part, dtype=float) for part in zip(*ticks, strict=True))
    Y[5, 1] = np.nan
    whole = running.over(None, Q, Qd, Y, missing="drop", singular="nan")
    np.testing.assert_allclose(after.mean, whole.memory.mean[-1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(after.deviations, whole.memory.deviations[-1], rtol=1e-9)


def test_a_tick_that_fails_has_a_status_and_outputs_that_are_none(running):
    run(running, 3)
    running.inputs.q[:], running.inputs.qd[:], running.inputs.y[:] = state(3)
    assert running.tick().ok
    running.inputs.y[1] = np.nan
    status = running.tick()
    assert not status.ok
    assert "not finite" in status.cause
    assert np.isnan(running.outputs.qdd).all()
    running.inputs.y[1] = 0.0
    assert running.tick().ok
    assert np.isfinite(running.outputs.qdd).all()


def test_what_is_no_plan_is_refused():
    with pytest.raises(WrongKindError):
        Filter(system(), DT)


NOISY_TORQUES = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
UNPUSHED = {"type": "external_wrench", "links": "link1", "value": 0}


@pytest.mark.parametrize(
    ("entries", "options", "message"),
    [
        ([], {"memory": {}}, "nothing persists by sensors 'arm': a filter needs `memory`"),
        ([ACCELERATIONS, UNPUSHED], {"memory": {"push": {"of": "fx:link2", "sigma": 1.0}}}, "some with a sigma"),
        (
            [ACCELERATIONS, NOISY_TORQUES, UNLOADED],
            {"memory": {"push": {"of": "fx:link2", "walk": 1.0}}},
            "tell what persists .*fx:link2.* by themselves",
        ),
        ([], {"dynamics": {"sigma": 0.1}}, "has a sigma: a filter needs equations of motion that hold exactly"),
        ([], {"memory": {"speed": {**SPEED, "rate": "qd"}}}, "cannot be its own rate"),
    ],
)
def test_what_cannot_be_filtered_is_told(entries, options, message):
    with pytest.raises(NoriError, match=message):
        Filter(nd.plan(system(*entries, **options), outputs=["tau"]), DT, "numpy")


def pushed(sigma):
    """The system of a push on a link, of which the torques of two joints tell two numbers."""
    known = {} if sigma is None else {"sigma": sigma}
    return system(ACCELERATIONS, NOISY_TORQUES, UNPUSHED, memory={"push": {"of": "fx:link2", "walk": 1.0, **known}})


@pytest.mark.parametrize("backend", BACKENDS)
def test_memory_that_nothing_sees_stays_at_what_is_known_at_first(backend):
    seeing = Filter(nd.plan(pushed(20.0), outputs=["tau"]), DT, backend)
    y = np.array([0.1, 0.2, 1.0, 2.0])
    for _ in range(200):
        found = seeing.step(np.zeros(2), np.zeros(2), y)
    deviations = found.memory.deviations
    assert np.isfinite(deviations).all()
    assert deviations.max() == pytest.approx(np.sqrt(20.0**2 + 1.99), rel=1e-9)
    assert deviations.min() < 1.0


def test_memory_that_nothing_sees_is_refused_where_nothing_is_known():
    with pytest.raises(SingularSystemError, match=r"nothing is known at first of fx:link2.*Never determined: "):
        nd.plan(pushed(None), outputs=["tau"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gap_forgets_what_has_a_rate_and_widens_the_rest(backend):
    one, other = observer(backend), observer(backend)
    before = [run(each, 50)[-1].memory for each in (one, other)]
    np.testing.assert_array_equal(before[0].mean, before[1].mean)
    time = 4 * GAP * DT
    long = one.step(*state(50), dt=time)
    # What is known at the next tick: speeds not at all, pushes with their walk.
    speeds, pushes = [0, 1], [2, 3]
    covariance = np.full((4, 4), 0.0)
    covariance[speeds, speeds] = np.inf
    known = before[1].covariance[np.ix_(pushes, pushes)]
    covariance[np.ix_(pushes, pushes)] = known + 25.0 * time * np.eye(2)
    other.reset(MemoryState(before[1].names, before[1].units, before[1].mean, covariance, before[1].time + time))
    anew = other.step(*state(50))
    np.testing.assert_allclose(long.memory.mean, anew.memory.mean, rtol=1e-9)
    np.testing.assert_allclose(long.memory.covariance, anew.memory.covariance, rtol=1e-9)
    assert long.memory.time == pytest.approx(anew.memory.time)
    assert long.degrees == anew.degrees


def test_a_time_just_under_a_gap_is_bridged(running):
    run(running, 50)
    bridged = running.step(*state(50), dt=GAP * DT)
    run_again = bridged.degrees
    running.reset()
    run(running, 50)
    assert running.step(*state(50), dt=GAP * DT * 1.001).degrees == run_again - 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_predicted_is_all_that_the_next_tick_needs(backend):
    one, other = observer(backend), observer(backend)
    for dt in (DT, 3 * DT, 20 * DT):
        one.reset()
        run(one, 20)
        before = one.predicted(dt)
        other.reset(before)
        there, here = one.step(*state(20), dt=dt), other.step(*state(20))
        assert before.time == pytest.approx(there.memory.time)
        np.testing.assert_allclose(here.memory.mean, there.memory.mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(here.memory.covariance, there.memory.covariance, rtol=1e-9)
        assert here.nis == pytest.approx(there.nis, rel=1e-8)


COVARIANCES = [
    np.diag([1.0, 1.0, 1.0, -1.0]),
    np.diag([1.0, 1.0, 1.0, -np.inf]),
    np.zeros((4, 4)),
    np.ones((4, 4)),
    np.full((4, 4), np.nan),
    np.eye(4) + np.triu(np.full((4, 4), 0.1), 1),
    np.eye(3),
    "none",
]


def test_what_is_no_state_is_refused(running):
    found = run(running, 2)[-1].memory
    with pytest.raises(InputError, match="what persists here is"):
        running.reset(MemoryState(("a", *found.names[1:]), found.units, found.mean, found.covariance))
    states = [(found.mean, covariance) for covariance in COVARIANCES]
    states += [(mean, found.covariance) for mean in (np.full(4, np.nan), np.zeros(3), [0.0, np.inf, 0.0, 0.0])]
    for mean, covariance in states:
        with pytest.raises(InputError):
            running.reset(MemoryState(found.names, found.units, mean, covariance))
        np.testing.assert_array_equal(running.state.mean, found.mean)


def test_the_memory_is_found_by_name_and_begins_as_what_is_known_at_first(running):
    found = running.state
    assert found.names == running.memory_names
    assert found.time == 0.0
    np.testing.assert_array_equal(found.deviations, [np.inf, np.inf, 10.0, 10.0])
    np.testing.assert_array_equal(found.mean, np.zeros(4))

    found = run(running, 5)[-1].memory
    assert found["offset:tau:joint1"] == found.mean[2]
    with pytest.raises(UnknownNameError, match="offset:tau:joint2"):
        found["offset:tau:joint3"]


@pytest.fixture(scope="module")
def touching():
    wrench = {"type": "external_wrench", "links": "link2"}
    closed = [{**wrench, "components": ["mx", "my", "mz"], "value": 0}]
    force = {"type": "force_torque", "joints": "joint2", "sigma": 0.5}
    content = remembering(
        *(TORQUES, ACCELERATIONS | {"sigma": 0.5}, force, UNPUSHED),
        contacts={"tip": {"closed": closed, "open": [{**wrench, "value": 0}]}},
        memory={"push": PUSH},
    )
    plans = plan_set(nd.autotree(2, skew=0.3), content, outputs=["qdd"])
    return Filter(plans, DT, "numpy")


def test_contacts_switch_and_what_persists_goes_on(touching):
    touching.reset()
    y = dict.fromkeys(touching.plans[("tip",)].system.measurement_names, 0.1)
    touching.switch("tip")
    assert touching.contacts == ("tip",)
    before = touching.step(np.zeros(2), np.zeros(2), y).memory
    touching.switch([])
    assert touching.contacts == ()
    np.testing.assert_array_equal(touching.state.mean, before.mean)
    after = touching.step(np.zeros(2), np.zeros(2), y).memory
    assert np.all(after.deviations < before.deviations + 5.0 * np.sqrt(DT))


def test_contacts_that_there_are_not_or_without_a_plan_are_refused(touching):
    touching.switch("tip")
    with pytest.raises(NoriError, match="nowhere"):
        touching.switch(["nowhere"])
    assert touching.contacts == ("tip",)
    programs = ContactPrograms({("tip",): touching.plans["tip",]}, ("tip",), "numpy")
    one = TrackerBase(ContactSteps(programs, DT, keeps=False), ("tip",), [("tip",)], DT)
    with pytest.raises(UnplannedStateError):
        one.switch([])
    assert one.contacts == ("tip",)
