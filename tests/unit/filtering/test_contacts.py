"""Contacts recognised: densities of readings by closed forms, and robots that walk in MuJoCo."""

from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import nori_dyn as nd
from nori_dyn.errors import InputError, PlanError, UnknownReadingError, UnplannedStateError
from nori_dyn.filtering.hypotheses import AS_GOOD_AS_EXACT
from nori_dyn.filtering.markov import mixed
from nori_dyn.filtering.square_root import SquareRootInformation
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.synthetic import autotree
from tests.recognising import Recogniser, recogniser_of, steps_of
from tests.systems import UNLOADED, braked, sensor_set
from tests.walking import DT, LEGS, SIDES, Walk, walk

BASE_NOISE = [0.01] * 3 + [0.05] * 3
SPEED_NOISE, TORQUE_NOISE, FT_NOISE = 0.02, {"quadruped": 0.1, "biped": 0.5}, [0.05] * 3 + [0.5] * 3
ACCELEROMETER_NOISE = 0.1
BRUSH = [0.1] * 3 + [1.0] * 3
"""By how much a foot may brush the ground that does not count as one that stands: half a hundredth of the weight."""
TOUCH = 0.1
"""Force over mass of a touch that counts as contact [m/s^2]: about a hundredth of the weight, as in `walking`."""
OFFSET_SIGMA = [2.0] * 3 + [20.0] * 3
STATES = {
    "quadruped": [tuple(LEGS), *combinations(LEGS, 3), ("LF", "RH"), ("RF", "LH")],
    "biped": [("l", "r"), ("l",), ("r",), ()],
}


def sensors(name: str) -> SensorSet:
    """What a robot that walks reads: torques, an IMU, speeds; force-torque sensors in the ankles of a biped."""
    record = walk(name)
    joints = list(record.tree.joint_names[1:])
    feet = list(record.feet)
    measurements: list[dict[str, Any]] = [
        {"type": "accelerometer", "links": "base", "sigma": ACCELEROMETER_NOISE},
        {"type": "joint_torque", "joints": joints, "sigma": TORQUE_NOISE[name]},
        {"type": "joint_torque", "joints": "root", "value": 0},
        {"type": "joint_acceleration", "joints": "root", "value": 0, "sigma": 30},
        {"type": "joint_acceleration", "joints": joints, "value": 0, "sigma": 100},
        {"type": "external_wrench", "links": {"except": feet}, "value": 0},
    ]
    memory: dict[str, Any] = {
        "base": {"of": "qd:root", "rate": "qdd", "noise": BASE_NOISE, "walk": 0.01},
        "joints": {"of": [f"qd:{joint}" for joint in joints], "rate": "qdd", "noise": SPEED_NOISE, "walk": 0.01},
    }
    if name == "biped":
        offset = {"sigma": OFFSET_SIGMA}
        ankles = [f"{side}_ankle_x" for side in SIDES]
        measurements.append({"type": "force_torque", "joints": ankles, "sigma": FT_NOISE, "offset": offset})
        memory["offsets"] = {"of": "offset"}
    contacts = {}
    for foot in feet:
        wrench = {"type": "external_wrench", "links": foot}
        closed: list[dict[str, Any]] = []
        if name == "quadruped":
            tip = {"links": foot, "frame": foot.replace("foot", "tip")}
            closed.append({"type": "external_wrench", **tip, "components": ["mx", "my", "mz"], "value": 0})
            closed.append({"type": "rigid_contact", **tip, "components": ["ax", "ay", "az"], "sigma": 3})
        brushed = {} if name == "quadruped" else {"sigma": BRUSH}
        contacts[foot.removesuffix("_foot")] = {"closed": closed, "open": [wrench | {"value": 0} | brushed]}
    return sensor_set(*measurements, name=name, contacts=contacts, memory=memory)


@lru_cache(maxsize=4)
def recogniser(name: str, reach: int | None = None) -> Recogniser:
    options: dict[str, Any] = {"acceleration": TOUCH, "lag": 5, "backend": "numpy", "reach": reach}
    return recogniser_of(walk(name).tree, sensors(name), STATES[name], DT, ["fx"], **options)


def readings(record: Walk, offsets: np.ndarray | None, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Speeds (N, nv) and readings (N, ny) with noise."""
    rng, N, name = np.random.default_rng(seed), record.n, record.tree.name
    spread = np.array([*BASE_NOISE, *[SPEED_NOISE] * (record.tree.nv - 6)])
    qd = record.qd + rng.normal(size=record.qd.shape) * spread
    y = [record.accelerometer + ACCELEROMETER_NOISE * rng.normal(size=(N, 3))]
    y.append(record.tau[:, 6:] + TORQUE_NOISE[name] * rng.normal(size=(N, record.tree.nv - 6)))
    if offsets is not None:
        noise = rng.normal(size=record.force_torque.shape) * FT_NOISE
        y.append((record.force_torque + noise + offsets).reshape(N, -1))
    return qd, np.hstack(y)


def run(name: str, parts: list[range], offsets: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """The ranks of the true states, and how near switches the ticks are, over parts of a record."""
    record, of = walk(name), recogniser(name)
    of.reset()
    qd, y = readings(record, offsets)
    contacts = np.array(of.contact_names)
    last, ranks, true, clear = None, [], [], ~record.near_switches(0.010)
    for part in parts:
        for k in part:
            of.step(record.q[k], qd[k], y[k], dt=DT if last is None else (k - last) * DT)
            last = k
            truth = of.states.index(tuple(contacts[record.contact[k]]))
            ranks.append(int((of.probabilities > of.probabilities[truth]).sum()))
            true.append(truth)
    ticks = np.concatenate([np.array(part) for part in parts])
    return {"rank": np.array(ranks), "clear": clear[ticks], "true": np.array(true)}


@pytest.mark.long
def test_a_quadrupeds_feet_are_recognised():
    found = run("quadruped", [range(300, 700)])
    assert len(set(found["true"][found["clear"]].tolist())) >= 3
    assert (found["rank"][found["clear"]] == 0).mean() >= 0.99
    assert (found["rank"][found["clear"]] <= 1).all()


def test_a_bipeds_feet_are_recognised_and_offsets_of_its_sensors_learned():
    offsets = np.random.default_rng(5).normal(size=(2, 6)) * OFFSET_SIGMA
    found = run("biped", [range(850, 1150), range(2450, 2750)], offsets)
    assert set(found["true"]) == {0, 1, 2}
    assert (found["rank"][found["clear"]] == 0).mean() >= 0.99
    assert (found["rank"][found["clear"]] <= 1).all()
    of = recogniser("biped")
    places = [k for k, name in enumerate(of.memory_names) if name.startswith("offset")]
    error = of.state.mean[places] - offsets.ravel()
    assert (np.abs(error) < 3 * of.state.deviations[places]).all()
    assert (of.state.deviations[places] < np.tile(OFFSET_SIGMA, 2) / 100).all()


def test_switches_are_told_and_remembered():
    record, of = walk("biped"), recogniser("biped")
    of.reset(probabilities={("l", "r"): 1.0})
    qd, y = readings(record, np.zeros((2, 6)))
    told = []
    for k in range(850, 970):
        found = of.step(record.q[k], qd[k], y[k])
        if found.switch is not None:
            told.append(found.switch)
            assert found.contacts == found.switch.after
    assert told == list(of.switches)
    assert [switch.after for switch in told] == [("l",)]
    assert abs(told[-1].time + 0.850 - 0.952) < 0.010
    assert sum(found.probabilities.values()) == pytest.approx(1)
    assert found.probability_of("l") == pytest.approx(1)
    assert found.probability_of("r") < 1e-6
    assert max(of.smoothed(5), key=of.smoothed(5).__getitem__) == ("l",)
    i = record.tree.names.index("l_foot")
    np.testing.assert_allclose(found["fx"][i], record.fx[k, 0], atol=3)
    np.testing.assert_allclose(found.mixture("fx"), found["fx"], atol=1e-3)


WHEEL_NOISE = {"tau": 0.3, "qdd": 0.2, "qd": 0.1}


def wheel(**options: Any) -> Recogniser:
    """A wheel about a vertical axis that a brake may hold."""
    states = options.pop("states", [("brake",), ()])
    options = {"backend": "numpy"} | options
    return recogniser_of(autotree(1), braked(**WHEEL_NOISE), states, 0.01, ["fx"], **options)


@pytest.mark.parametrize("torque", [0.0, 0.5, 1.5, 5.0])
def test_probabilities_by_bayes_rule(torque):
    """With the brake off tau = I qdd; with it on tau = I qdd - push, and both are free: densities by SciPy."""
    push, acceleration = 200.0, 200.0
    of = wheel(acceleration=acceleration)
    of.step(np.zeros(1), np.zeros(1), [torque, 0.1])
    inertia = float(autotree(1).I[0, 2, 2])
    noise = np.diag([WHEEL_NOISE["tau"] ** 2, WHEEL_NOISE["qdd"] ** 2])
    moving = acceleration**2 * np.outer([inertia, 1.0], [inertia, 1.0])
    pushed = push**2 * np.outer([1.0, 0.0], [1.0, 0.0])
    at = [torque, 0.1]
    closed = multivariate_normal.logpdf(at, cov=noise + moving + pushed)
    open_ = multivariate_normal.logpdf(at, cov=noise + moving)
    found = np.log(of.probabilities)
    assert found[0] - found[1] == pytest.approx(closed - open_, abs=0.01)


def test_deviations_are_those_of_the_state():
    """The push is tau less what moves the wheel, so that its variance is that of both."""
    inertia = float(autotree(1).I[0, 2, 2])
    found = wheel().step(np.zeros(1), np.zeros(1), [50.0, 0.0])
    assert found.contacts == ("brake",)
    spread = np.hypot(WHEEL_NOISE["tau"], inertia * WHEEL_NOISE["qdd"])
    np.testing.assert_allclose(found.tracked.deviations["fx"][0, 2], spread, rtol=1e-6)
    assert found.tracked.memory.deviations == pytest.approx([WHEEL_NOISE["qd"]])


def test_what_is_as_good_as_exact_is_exact():
    of = wheel()
    found = of.step(np.zeros(1), np.zeros(1), [0.05, 0.0])
    assert found.contacts == ()
    np.testing.assert_allclose(found["fx"], 0, atol=AS_GOOD_AS_EXACT)


def test_mixtures_have_the_mean_and_covariance_of_their_parts():
    rng = np.random.default_rng(2)
    weights = np.array([0.2, 0.5, 0.3])
    means, roots = rng.normal(size=(3, 4)), rng.normal(size=(3, 4, 4))
    covariances = [root @ root.T + np.eye(4) for root in roots]
    parts = [SquareRootInformation.of_covariance(m, P) for m, P in zip(means, covariances, strict=True)]
    found = mixed(zip(weights.tolist(), parts, strict=True))
    mean = weights @ means
    spread = sum(w * (P + np.outer(m - mean, m - mean)) for w, P, m in zip(weights, covariances, means, strict=True))
    np.testing.assert_allclose(found.mean(), mean, atol=1e-12)
    np.testing.assert_allclose(found.covariance(), spread, atol=1e-12)
    np.testing.assert_array_equal(found.R, np.triu(found.R))


def test_states_far_from_the_likely_one_are_not_judged():
    record = walk("biped")
    qd, y = readings(record, np.zeros((2, 6)))
    k = int(np.flatnonzero((record.contact == [True, False]).all(axis=1))[20])
    for reach in (None, 1):
        of = recogniser("biped", reach)
        of.reset(probabilities={("l",): 1.0})
        for tick in (k, k + 1):
            of.step(record.q[tick], qd[tick], y[tick])
        assert of.probabilities[of.states.index(("l",))] > 0.99
        is_judged = [steps_of(of).hypothesis_step.posterior(h) is not None for h in range(len(of.states))]
        assert is_judged == [True, True, reach is None, True]


def test_bad_input_is_refused():
    for options in ({"rate": 0.0}, {"acceleration": -1.0}, {"reach": 0}, {"lag": 1.5}):
        with pytest.raises(InputError, match=next(iter(options))):
            wheel(**options)
    of = wheel()
    with pytest.raises(UnknownReadingError, match="tau:joint2"):
        of.step(np.zeros(1), np.zeros(1), {"tau:joint2": 1.0})
    with pytest.raises(InputError, match="y has shape"):
        of.step(np.zeros(1), np.zeros(1), [1.0])
    with pytest.raises(InputError, match="qdd:joint1"):
        of.step(np.zeros(1), np.zeros(1), {"tau:joint1": 1.0})
    with pytest.raises(InputError, match="dt"):
        of.step(np.zeros(1), np.zeros(1), [1.0, 0.0], dt=0.0)
    with pytest.raises(InputError, match="looks back at most 0 ticks"):
        of.smoothed(1)
    with pytest.raises(InputError, match="some above it"):
        of.reset(probabilities={("brake",): -1.0})
    with pytest.raises(UnplannedStateError):
        wheel(states=[()]).reset(probabilities={("brake",): 1.0})


def test_exact_rows_that_say_the_same_twice_are_refused():
    content = steps_of(wheel()).tick.system.sensors.sensors.to_dict()
    content["contacts"]["brake"]["open"] = [UNLOADED, UNLOADED | {"components": ["mz"], "name": "again"}]
    with pytest.raises(PlanError, match="say the same twice"):
        recogniser_of(autotree(1), SensorSet.from_dict(content), [("brake",), ()], 0.01, ["fx"], backend="numpy")


def test_recorded_ticks_are_recognised_as_one_after_the_other():
    """And a smoother over the contacts that were recognised is that over the true ones, where they are the same."""
    record, of = walk("biped"), recogniser("biped")
    qd, y = readings(record, np.zeros((2, 6)))
    ticks = slice(930, 990)
    of.reset()
    each = [(of.step(record.q[k], qd[k], y[k]), of.state) for k in range(930, 990)]
    probabilities, switches = of.probabilities.copy(), len(of.switches)
    found = of.over(None, record.q[ticks], qd[ticks], y[ticks])
    assert (len(found), len(of.switches), of.probabilities.tolist()) == (len(each), switches, probabilities.tolist())
    assert found.contacts is not None
    for k, (one, state) in enumerate(each):
        np.testing.assert_allclose(found.contacts.probabilities[k], list(one.probabilities.values()), atol=1e-12)
        assert tuple(np.array(of.contact_names)[found.contacts.closed[k]]) == one.contacts
        assert found.contacts["l"][k] == pytest.approx(one.probability_of("l"))
        np.testing.assert_allclose(found["fx"][k], one["fx"], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.deviations["fx"][k], one.deviations["fx"], rtol=1e-7)
        np.testing.assert_allclose(found.memory.mean[k], state.mean, rtol=1e-9, atol=1e-9)
        assert found.nis[k] == pytest.approx(one.nis)
    assert of.consistency.nis == pytest.approx(found.consistency.nis)
    with pytest.raises(InputError, match="no plans of single contact states"):
        of.over(None, record.q[ticks], qd[ticks], y[ticks], causal=False)
    nowhere = y[ticks].copy()
    nowhere[5, :2] = np.nan
    dropped = of.over(None, record.q[ticks], qd[ticks], nowhere, missing="drop")
    assert dropped.degrees[5] < found.degrees[5]


def test_ticks_are_smoothed_over_the_contacts_that_are_recognised():
    """By all readings a switch is seen when it is, and estimates are those of a smoother that is told as much."""
    plan = nd.plan(autotree(1), steps_of(wheel()).tick.system.sensors.sensors, outputs=["fx", "qdd"])
    rng, N = np.random.default_rng(0), 60
    held = np.arange(N) // 20 == 1
    qdd = 0.1 * rng.normal(size=N)
    y = np.column_stack([1.5 * held + 0.3 * rng.normal(size=N), qdd])
    still = np.zeros((N, 1))
    tracker = nd.Tracker(plan, 0.01, hypotheses=nd.Hypotheses(rate=2.0, acceleration=1.0), backend="numpy")
    found, later = (tracker.over(None, still, still, y, causal=causal) for causal in (True, False))
    wrong = [int((one.contacts.closed[:, 0] != held).sum()) for one in (found, later)]
    assert wrong[1] < wrong[0]
    told = nd.Tracker(plan, 0.01, backend="numpy").over(None, still, still, y, later.contacts.closed, causal=False)
    np.testing.assert_array_equal(later["fx"], told["fx"])
    np.testing.assert_array_equal(later.memory.mean, told.memory.mean)
    assert not later.is_causal
    np.testing.assert_allclose(later.contacts.probabilities[-1], found.contacts.probabilities[-1])
    with pytest.raises(InputError, match="weights"):
        tracker.over(None, still, still, y, causal=False, weights=np.ones(len(tracker.weight_names)))
