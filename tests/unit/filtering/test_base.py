"""A robot that stands and sways: attitude, velocity and bias from encoders and an IMU, against the motion itself."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

import nori_dyn as nd
from nori_dyn.errors import InputError
from nori_dyn.export.trackers import c_filter
from nori_dyn.filtering.base_estimate import BaseEstimate
from nori_dyn.filtering.base_reference import AxesTurn, Bridge, ReferenceTrack
from nori_dyn.filtering.smoother import ContactPasses, Cut, Stretch
from nori_dyn.filtering.square_root import Posterior, SquareRootInformation
from nori_dyn.measurements.floating_base import SIZE, SIZE_SIGMA
from tests.compilers import needs_compiler
from tests.exported import Exported, listed
from tests.standing import BIAS, GRAVITY, SIGMA, Sway, robot, sensors, sway
from tests.unit.filtering.recorded import by_least_squares_of, columns

DT = 0.002
TILTS = (np.zeros(3), np.array([1.05, 0.0, 0.0]), np.array([0.3, -0.8, 0.5]))
"""Attitudes about which it sways, of which nothing is told: the second is tilted by 60 degrees."""


@cache
def plan() -> nd.Plan:
    return nd.plan(nd.System(robot(), sensors()), outputs=["fx"])


FEET, STATES = ("l_foot", "r_foot"), (("l_foot", "r_foot"), ("l_foot",), ("r_foot",))


@cache
def stepping(slip: float | None = None) -> nd.Plan:
    """Plans of the same box, of which a foot is in the air, or slips by so many m/s, and nobody says so."""
    content, contacts = sensors().to_dict(), {}
    rows = content["measurements"]
    for foot in FEET:
        wrench, still = closed = [row for row in rows if row.get("links") == foot]
        loose = [wrench | {"sigma": [1] * 3 + [3] * 3}] if slip is None else [wrench, still | {"sigma": slip}]
        contacts[foot] = {"closed": closed, "open": loose}
    content["measurements"] = [row for row in rows if row.get("links") not in FEET]
    of = nd.SensorSet.from_dict(content | {"name": "stepping box", "contacts": contacts})
    return nd.plan(robot(), of, outputs=["fx"], states=list(STATES))


def read(motion: Sway, k: int, rng: np.random.Generator | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q and qd, whose entries of the root are no numbers, and the readings."""
    noise = (lambda name, n: SIGMA[name] * rng.normal(size=n)) if rng else (lambda name, n: np.zeros(n))
    y = [motion.acc[k] + noise("acc", 3), motion.w[k] + BIAS + noise("gyro", 3), noise("standing", 6)]
    return np.append(np.full(7, np.nan), motion.q[k]), np.append(np.full(6, np.nan), motion.qd[k]), np.concatenate(y)


def tick(tracker: nd.Tracker, motion: Sway, k: int, rng: np.random.Generator, dt: float = DT) -> None:
    """Go on by a tick of a motion, without an estimate of what nobody looks at."""
    for array, values in zip(vars(tracker.inputs).values(), read(motion, k, rng), strict=False):
        array[:] = values
    assert tracker.tick(dt).ok


def elsewhere(motion: Sway, more: float) -> Sway:
    """A motion where gravity is larger by some m/s^2."""
    down = np.array([0.0, 0.0, -1.0])
    return motion._replace(acc=motion.acc - more * motion.R.transpose(0, 2, 1) @ down, gravity=GRAVITY + more * down)


def error(base: BaseEstimate, motion: Sway, k: int) -> np.ndarray:
    """By how much velocity, gravity and angular velocity are off (9,)."""
    true = motion.v[k], motion.R[k].T @ motion.gravity, motion.w[k]
    return np.concatenate([base.velocity, base.gravity, base.angular_velocity]) - np.concatenate(true)


@needs_compiler
def test_attitude_velocity_and_position_are_found():
    tracker, n = nd.Tracker(plan(), DT), 600
    motion, rng = sway(DT * np.arange(n), TILTS[1], 3), np.random.default_rng(3)
    found = []
    for k in range(n):
        tracked = tracker.step(*read(motion, k, rng))
        found.append(tracker.base)
    last = found[-1]
    assert np.linalg.norm(last.velocity - motion.v[-1]) < 0.01
    assert last.tilt_deviation < np.radians(0.1)
    true = Rotation.from_matrix(motion.R)
    turned = Rotation.from_quat([one.rotation for one in found[100:]]) * true[100:].inv()
    yaw = turned.as_rotvec()
    assert np.abs(yaw[:, :2]).max() < np.radians(1.0)  # what differs is yaw, which nobody tells
    assert np.ptp(yaw[:, 2]) < np.radians(1.5)
    path = [one.position - found[100].position for one in found[100:]]
    moved = Rotation.from_rotvec([0, 0, yaw[:, 2].mean()]).inv().apply(path)
    assert np.abs(moved - (motion.p[100:] - motion.p[100])).max() < 0.02
    np.testing.assert_allclose(tracked.memory["offset:gyro:box"], BIAS, atol=0.01)
    np.testing.assert_allclose(last.q[3:], last.rotation)
    np.testing.assert_allclose(last.qd, [*last.angular_velocity, *last.velocity])


@needs_compiler
@pytest.mark.parametrize("change", [2, 40])
def test_native_code_goes_on_from_numpy_with_its_reference(change):
    """As a tracker does that did not wait for the compiler: at a tilt, before and after the axes were turned."""
    motion, rng = sway(DT * np.arange(60), TILTS[1], 2), np.random.default_rng(2)
    whole, first = (nd.Tracker(plan(), DT, backend="numpy") for _ in range(2))
    steps = first.steps
    for k in range(60):
        given = read(motion, k, rng)
        whole.step(*given)
        if k == change:
            other = steps.on("native")
            other.go_on_from(steps, DT)
            first._run_on(other)
        first.step(*given)
    for name in ("rotation", "velocity", "gravity", "angular_velocity", "position"):
        np.testing.assert_allclose(*(getattr(one.base, name) for one in (whole, first)), rtol=1e-6, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize("missing", ["ticks", "readings"])
def test_errors_are_as_large_as_told_before_and_after_a_gap(missing):
    """Normalised errors of 24 runs, from any attitude, within the region that 95 in 100 such means are in.

    12 ticks are left out, or their readings are nan; no other tick is refused. Gravity is not the same everywhere.
    """
    tracker, found = nd.Tracker(plan(), DT), {k: [] for k in (30, 99, 112, 134)}
    for seed in range(24):
        rng, motion = np.random.default_rng(seed), sway(DT * np.arange(135), TILTS[seed % 3], seed)
        motion = elsewhere(motion, SIZE_SIGMA * rng.normal())
        tracker.reset()
        for k in range(135):
            if k in range(100, 112):
                if missing == "readings":
                    tracker.inputs.y[:] = np.nan
                    assert not tracker.tick().ok
                continue
            tick(tracker, motion, k, rng, 13 * DT if missing == "ticks" and k == 112 else DT)
            if k in found:
                e, base = error(tracker.base, motion, k), tracker.base
                found[k].append(e @ np.linalg.solve(base.covariance, e))
            assert k < 112 or tracker.base.tilt_deviation < 0.1
    for k, each in found.items():
        low, high = chi2.ppf([0.025, 0.975], 9 * len(each)) / len(each)
        assert (low if k < 112 else 0.0) < np.mean(each) < high


@needs_compiler
def test_a_slow_curve_does_not_tilt_it():
    """At 1 m/s the pull in a curve of 0.06 rad/s is 0.35 degrees of tilt, and noise of the gyroscope hides it."""
    content, tree, found = sensors().to_dict(), robot(), []
    for entry in content["measurements"]:
        if entry["type"] == "gyroscope":
            entry["sigma"] = 0.05
        if entry["type"] == "external_wrench" and entry.get("sigma"):
            entry["sigma"] = 1e4
    tracker = nd.Tracker(nd.plan(nd.System(tree, nd.SensorSet.from_dict(content)), outputs=["qdd"]), 0.01)
    q, w, v = np.array([0.0] * 6 + [1.0, 0.1, -0.1, 0.6, -0.1, 0.1, 0.6]), np.array([0.0, 0.0, 0.06]), np.eye(3)[0]
    J = np.concatenate([nd.jacobian(tree, q, f"{side}_foot")[3:] for side in "lr"])
    qd = -np.linalg.solve(J[:, 6:], J[:, :6] @ np.concatenate([w, v]))
    sigma = np.repeat([SIGMA["acc"], 0.05, SIGMA["standing"]], [3, 3, 6])
    for seed in range(12):
        rng = np.random.default_rng(seed)
        down, offset = GRAVITY * (1 + SIZE_SIGMA / 9.81 * rng.normal()), 0.05 * rng.normal(size=3)
        tracker.reset()
        tracker.inputs.q[7:], tracker.inputs.qd[6:] = q[7:], qd
        true = np.concatenate([np.cross(w, v) - down, w + offset, np.zeros(6)])
        for _ in range(600):
            tracker.inputs.y[:] = true + sigma * rng.normal(size=12)
            assert tracker.tick().ok
        e = tracker.state.mean - np.concatenate([v, down, w, offset])
        found.append(e @ np.linalg.solve(tracker.state.covariance, e))
    low, high = chi2.ppf([0.025, 0.975], 12 * len(found)) / len(found)
    assert low < np.mean(found) < high


@needs_compiler
def test_a_slow_turn_about_the_vertical_is_followed():
    """The axes of the reference do not follow what is no more than noise; yaw and position do."""
    tracker, dt, n = nd.Tracker(plan(), 0.01), 0.01, 600
    motion, rng = sway(dt * np.arange(n), size=0.0, turning=0.02), np.random.default_rng(0)
    yaw = []
    for k in range(n):
        tracker.step(*read(motion, k, rng))
        yaw.append(Rotation.from_quat(tracker.base.rotation).as_rotvec()[2])
    assert abs(yaw[-1] - yaw[200] - 0.02 * 0.01 * (n - 201)) < 0.02
    assert tracker.steps.reference.yaw > 0.04


def test_sensors_that_suffice_are_told():
    report = nd.observability(nd.System(robot(), sensors()), n=1)
    assert report.is_observable
    text = " ".join(str(report).split())
    assert "base:velocity, base:gravity (x, y), base:angular_velocity, offset:gyro:box: over 2 instants" in text
    assert "base:gravity (z): at one instant" in text


def run_of(n: int, tilt: np.ndarray, seed: int, dt: float = DT) -> tuple[Sway, tuple[np.ndarray, ...]]:
    """A motion, and its times, q, qd and readings."""
    motion, rng = sway(dt * np.arange(n), tilt, seed), np.random.default_rng(seed)
    ticks = [read(motion, k, rng) for k in range(n)]
    return motion, (dt * np.arange(n), *(np.array(each) for each in zip(*ticks, strict=True)))


def numbers(base: BaseEstimate) -> np.ndarray:
    return np.concatenate([base.position, base.rotation, base.mean, base.covariance.ravel()])


@pytest.mark.parametrize("every_backend", ["numpy", 2, 8], indirect=True)
def test_recorded_ticks_say_what_steps_say(every_backend, monkeypatch):
    """From a tilt of 60 degrees, over the edge of a stretch; and with a lag what a smoother says by then."""
    n, lag, stretch = 120, 8, 101
    monkeypatch.setattr("nori_dyn.filtering.tracker.Cut", partial(Cut, size=stretch))
    _, run = run_of(n, TILTS[1], 4)
    tracker, late = (nd.Tracker(plan(), DT, lag=each, backend=every_backend) for each in (0, lag))
    whole = tracker.over(*run)
    steps = [tracker.step(*(each[k] for each in run[1:])) for k in range(n)]
    for k in (0, 1, 30, stretch - 1, stretch, n - 1):
        one, at = steps[k], whole.base.at(slice(k, k + 1))
        np.testing.assert_allclose(whole["fx"][k], one["fx"], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(numbers(at.at(0)), numbers(one.base), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(whole.memory.mean[k], one.memory.mean, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(whole.memory.deviations[k], one.memory.deviations, rtol=1e-5)
    n_turns = 0
    for last in range(60):
        found = late.step(*(each[last] for each in run[1:]))
        n_turns += late.steps.reference.change is not None
        if last in (lag, 30, 59):
            smoothed = tracker.over(*(each[: last + 1] for each in run), causal=False)
            for one, k in ((found, last - lag), (late.present, last), *([(late.rest()[4], 56)] if last == 59 else [])):
                np.testing.assert_allclose(one["fx"], smoothed["fx"][k], rtol=1e-5, atol=1e-5)
                np.testing.assert_allclose(one.base.mean, smoothed.base.mean[k], rtol=1e-5, atol=1e-6)
                np.testing.assert_allclose(one.base.covariance, smoothed.base.covariance[k], rtol=1e-4, atol=1e-8)
    assert n_turns > 5


@pytest.mark.parametrize("every_backend", ["numpy", 4], indirect=True)
def test_smoother_is_least_squares_over_ticks_between_which_axes_turn(every_backend):
    n, dt, system = 9, 0.02, plan().system
    _, (T, Q, Qd, Y) = run_of(n, TILTS[1], 5, dt)
    tracker = nd.Tracker(plan(), dt, backend=every_backend)
    found = tracker.over(T, Q, Qd, Y, causal=False, singular="nan")
    programs = tracker.steps.programs
    passes, tree = ContactPasses(programs, dt, programs.first.beginning()), system.tree
    Q[:, :7], Qd[:, :6] = tree.neutral_configuration()[:7], 0.0
    whole = Stretch(0, T, np.diff(T, prepend=0), np.zeros(n, dtype=int), Q, Qd, Y)
    referred, track = passes._referred(whole, passes._beginning)
    assert len(track.changes) >= 1
    turns = {tick: turn.matrix for tick, turn in track.changes.items()}
    weights = np.tile(system.weights, (n, 1))
    weights[:, system.weight_names.index(SIZE)] = track.weights
    assert np.count_nonzero(track.weights) == 1
    mean, covariance = by_least_squares_of([system] * n, T, referred.q, referred.qd, Y, weights=weights, turns=turns)
    own = [k for name in ("velocity", "gravity", "angular_velocity") for k in columns(system, f"base:{name}")]
    for k in range(n):
        R = Rotation.from_quat(referred.q[k, 3:7]).as_matrix()
        to_base = block_diag(R.T, R.T, np.eye(3))
        np.testing.assert_allclose(found.base.mean[k], to_base @ mean[k][own], rtol=1e-5, atol=1e-6)
        P = to_base @ covariance[k][np.ix_(own, own)] @ to_base.T
        np.testing.assert_allclose(found.base.covariance[k], P, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(found["fx"][k].ravel(), mean[k][columns(system, "fx")], rtol=1e-5, atol=1e-4)


@needs_compiler
def test_smoothed_base_is_nearer_the_truth_and_as_sure_as_told():
    n, errors, scaled, tracker = 150, np.zeros(2), list[float](), nd.Tracker(plan(), DT)
    for seed in range(12):
        motion, run = run_of(n, TILTS[seed % 3], seed)
        for which, causal in enumerate((True, False)):
            base = tracker.over(*run, causal=causal).base
            off = np.array([error(base.at(k), motion, k) for k in range(n)])
            errors[which] += np.square(off).sum(axis=0) @ np.repeat([1.0, 0.1, 1.0], 3)
            if not causal:
                scaled += [off[k] @ np.linalg.solve(base.covariance[k], off[k]) for k in (20, 120)]
                moved = base.position[-1] - base.position[20]
                yaw = (Rotation.from_matrix(motion.R[20]) * Rotation.from_quat(base.rotation[20]).inv()).as_rotvec()
                assert np.abs(yaw[:2]).max() < 0.02
                off_by = Rotation.from_rotvec([0, 0, yaw[2]]).apply(moved) - (motion.p[-1] - motion.p[20])
                assert np.abs(off_by).max() < 0.01
    assert errors[1] < 0.5 * errors[0]
    low, high = chi2.ppf([0.025, 0.975], 9 * len(scaled)) / len(scaled)
    assert low < np.mean(scaled) < high


def test_what_is_known_goes_on_in_another_tracker():
    """The state that is passed on is along the axes of the base, whatever the reference was."""
    _, run = run_of(60, TILTS[2], 7)
    whole, first, second = (nd.Tracker(plan(), DT, backend="numpy") for _ in range(3))
    for k in range(60):
        given = [each[k] for each in run[1:]]
        kept = whole.step(*given)
        if k < 30:
            first.step(*given)
        elif k == 30:
            second.reset(first.predicted())
        if k >= 30:
            found = second.step(*given)
    np.testing.assert_allclose(found["fx"], kept["fx"], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.base.mean, kept.base.mean, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(second.state.mean, whole.state.mean, rtol=1e-4, atol=1e-4)


def test_contacts_are_recognised_in_recorded_ticks_too():
    """Both feet stand, and nobody says so: as tick by tick, and by all readings in the states that were likeliest."""
    tracker = nd.Tracker(stepping(), DT, hypotheses=nd.Hypotheses(), backend="numpy")
    motion, (T, Q, Qd, Y) = run_of(50, TILTS[1], 3)
    assert tracker.measurement_names == plan().system.measurement_names
    found, smoothed = (tracker.over(T, Q, Qd, Y, causal=causal) for causal in (True, False))
    for k in range(50):
        tracked = tracker.step(Q[k], Qd[k], Y[k])
        np.testing.assert_allclose(found.base.mean[k], tracked.base.mean, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(found["fx"][k], tracked["fx"], rtol=1e-6, atol=1e-8)
    assert found.contacts["l_foot"][20:].min() > 0.99
    assert np.abs(error(found.base.at(49), motion, 49)).max() < 0.1
    assert np.abs(error(smoothed.base.at(5), motion, 5)).max() < 0.1


def hypotheses_of(tracker: nd.Tracker) -> dict[int, Posterior]:
    found = {h: tracker.steps.hypothesis_step.posterior(h) for h in range(len(tracker.states))}
    return {h: after for h, after in found.items() if after is not None}


@pytest.mark.parametrize("every_backend", ["numpy", 4], indirect=True)
def test_each_hypothesis_is_least_squares_over_ticks_between_which_axes_turn(every_backend):
    """Of contacts that do not switch, so that no state has a part in another's prior."""
    n, dt = 9, 0.02
    _, (T, Q, Qd, Y) = run_of(n, TILTS[1], 5, dt)
    Y[1:, 6] += 0.03  # a foot slips a bit
    tracker = nd.Tracker(stepping(0.02), dt, hypotheses=nd.Hypotheses(rate=1e-9), backend=every_backend)
    assert tracker.measurement_names == plan().system.measurement_names
    track = ReferenceTrack(tracker.steps.reference, Q, Qd)
    for k in range(n):
        tracker.step(Q[k], Qd[k], Y[k])
        track.take(k)
    turns = {tick: turn.matrix for tick, turn in track.changes.items()}
    assert len(turns) >= 1
    assert tracker.probabilities.min() > 1e-6
    for h, state in enumerate(tracker.states):
        system = stepping(0.02)[state].system
        weights = np.tile(system.weights, (n, 1))
        weights[:, system.weight_names.index(SIZE)] = track.weights
        columns_of_y = [tracker.measurement_names.index(name) for name in system.measurement_names]
        of = [system] * n, T, track.q, track.qd, Y[:, columns_of_y]
        mean, covariance = by_least_squares_of(*of, weights=weights, turns=turns)
        own = [k for name in tracker.memory_names for k in columns(system, name.split(".")[0])]
        own = list(dict.fromkeys(own))
        of, k = hypotheses_of(tracker)[h], len(own)
        after = SquareRootInformation(of.R[-k:, -k:], of.z[-k:])
        np.testing.assert_allclose(after.mean(), mean[-1][own], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(after.covariance(), covariance[-1][np.ix_(own, own)], rtol=1e-4, atol=1e-7)


@needs_compiler
def test_hypotheses_are_the_same_natively_and_by_numpy():
    """From a tilt of 60 degrees, through a gap, with readings that are no numbers, and from what is known on."""
    trackers = [nd.Tracker(stepping(), DT, hypotheses=nd.Hypotheses(), backend=each) for each in ("native", "numpy")]
    motion, rng = sway(DT * np.arange(90), TILTS[1], 1), np.random.default_rng(1)
    changes = set[type]()
    for k in range(90):
        q, qd, y = read(motion, k, rng)
        y[6 + (k > 45) * 3] += 0.3 * (30 < k < 60)
        y[: k == 70] = np.nan
        known = trackers[0].predicted()
        for tracker in trackers:
            if k == 80:  # in the axes of the base, which are turned then
                tracker.reset(known)
            for array, values in zip(vars(tracker.inputs).values(), (q, qd, y), strict=False):
                array[:] = values
            assert tracker.tick(0.03 if k == 50 else DT).ok == (k != 70)
        native, numpy = (hypotheses_of(tracker) for tracker in trackers)
        assert list(native) == list(numpy)
        np.testing.assert_allclose(*(tracker.probabilities for tracker in trackers), atol=1e-6)
        changes.add(type(trackers[0].steps.reference.change))
        assert k != 80 or isinstance(trackers[0].steps.reference.change, AxesTurn)
        for h in native if k > 20 and k != 70 else ():
            scale = np.nanmax(np.abs(numpy[h].u), initial=1.0)
            np.testing.assert_allclose(native[h].u, numpy[h].u, rtol=1e-6, atol=1e-7 * scale)
            np.testing.assert_allclose(native[h].nis, numpy[h].nis, rtol=1e-5, atol=1e-6)
    assert changes == {AxesTurn, Bridge, type(None)}


EXPORTED = {
    "told": lambda: nd.Tracker(plan(), DT),
    "recognised": lambda: nd.Tracker(stepping(), DT, hypotheses=nd.Hypotheses()),
    "late": lambda: nd.Tracker(plan(), DT, lag=4),
}


@needs_compiler
@pytest.mark.parametrize("how", EXPORTED)
def test_exported_c_says_the_same(how, tmp_path):
    """From a tilt of 60 degrees, through a gap, and with readings that are no numbers."""
    n, motion_of = 400, np.arange(400) * DT
    motion_of[300:] += 0.1
    motion, rng = sway(motion_of, TILTS[1], 2), np.random.default_rng(2)
    tracker = EXPORTED[how]()
    built = Exported.made(c_filter(tracker, "standing box"), tmp_path)
    found, inputs, outputs = built.new("filter"), built.new("inputs"), built.new("outputs")
    built.call("init", inputs)
    built.call("filter_init", found)
    mean, deviations = np.zeros((2, len(tracker.memory_names)))
    for k in range(n):
        q, qd, y = read(motion, k, rng)
        dt = DT if k == 0 else float(motion_of[k] - motion_of[k - 1])
        if k == 200:
            y[0] = np.nan
        for name, values in (("q", q), ("qd", qd), ("y", y)):
            setattr(inputs, name, values.tolist())
        status = built.call("step", found, inputs, dt, outputs)
        if k in (200, 200 + tracker.lag):
            tracker.inputs.q[:], tracker.inputs.qd[:], tracker.inputs.y[:] = q, qd, y
            assert (status == 0) == tracker.tick(dt).ok == (k != 200 + tracker.lag)
            continue
        tracked = tracker.step(q, qd, y, dt)
        assert (status == 0) == (tracked is not None)
        if tracked is not None and k in (4, 5, 9, 15, 30, 199, 201, 203, 205, 299, 300, 302, 304, 330, 399):
            base = tracked.base
            own = np.concatenate([base.position, base.rotation, base.velocity, base.gravity, base.angular_velocity])
            np.testing.assert_allclose(listed(outputs, "base"), own, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(listed(outputs, "memory"), tracked.memory.mean, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(outputs.nis, tracked.nis, rtol=1e-4, atol=1e-8)
            built.call("memory", found, *(built.ffi.from_buffer("double[]", each) for each in (mean, deviations)))
            np.testing.assert_allclose(deviations, tracker.state.deviations, rtol=1e-5)
            if tracker.recognises:
                np.testing.assert_allclose(listed(outputs, "probabilities"), tracker.probabilities, atol=1e-7)


def test_what_has_no_base_says_so():
    tracker = nd.Tracker(plan(), DT, backend="numpy", lag=2)
    with pytest.raises(InputError, match="there was no tick yet"):
        _ = tracker.base
    fixed = nd.plan(nd.System(nd.autotree(2), "momentum_observer"), outputs=["qdd"])
    given = np.zeros(2), np.zeros(2), np.zeros(fixed.system.ny)
    with pytest.raises(InputError, match="the base is no memory here"):
        _ = nd.Tracker(fixed, DT, backend="numpy").step(*given).base
