"""Contact states judged in one foreign call: what NumPy says, and what extended precision says where rows are exact."""

from copy import copy
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from nori_dyn.errors import SingularSystemError
from nori_dyn.filtering import free_coordinates
from nori_dyn.filtering.judging import NativeHypothesisStep, NumpyHypothesisStep
from nori_dyn.filtering.square_root import Posterior
from nori_dyn.filtering.tracker import TrackerBase
from nori_dyn.model.synthetic import autotree
from tests.compilers import compile_for, needs_compiler
from tests.recognising import Recogniser, recogniser_of, steps_of
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set
from tests.unit.filtering.test_contacts import DT, OFFSET_SIGMA, STATES, TOUCH, readings, sensors, wheel
from tests.walking import LEGS, walk

pytestmark = needs_compiler

ALL_OF_QUADRUPED = [state for n in range(5) for state in combinations(LEGS, n)]
OF_EXACT_ROWS = 1e-6
"""By how much NumPy is off where rows hold exactly by a large weight: its reflections do not begin with these."""


@cache
def native(name: str, reach: int | None = None, width: int = 8) -> Recogniser:
    states = STATES[name] if name == "biped" else ALL_OF_QUADRUPED
    options: dict[str, Any] = {"acceleration": TOUCH, "lag": 5, "backend": "native", "reach": reach}
    with pytest.MonkeyPatch.context() as patch:
        compile_for(width, patch)
        return recogniser_of(walk(name).tree, sensors(name), states, DT, ["fx"], **options)


def by_numpy(of: Recogniser) -> Recogniser:
    """The tracker with the same rows of each tick, judged by NumPy."""
    steps = copy(steps_of(of))
    steps.values, steps.is_native = steps.values.copy(), False
    steps.hypothesis_step = NumpyHypothesisStep(steps.tick, steps.model, steps.values, steps.hypothesis_step.longest)
    steps.totals, steps.is_gathered = steps.hypothesis_step.totals, True
    steps.state = steps.hypothesis_step.state
    steps._past, steps._past_dt = steps._past.copy(), steps._past_dt.copy()
    return TrackerBase(steps, of.contact_names, of.states, of.dt)


def judged(of: Recogniser) -> dict[int, Posterior]:
    found = {h: steps_of(of).hypothesis_step.posterior(h) for h in range(len(of.states))}
    return {h: after for h, after in found.items() if after is not None}


def check_same(of: Recogniser, other: Recogniser, tolerance: float) -> None:
    """Check that two filters have judged the same states, and know the same."""
    np.testing.assert_allclose(of.probabilities, other.probabilities, atol=tolerance)
    assert of.contacts == other.contacts
    ours, theirs = judged(of), judged(other)
    assert list(ours) == list(theirs)
    for h, after in theirs.items():
        assert (ours[h].degrees, ours[h].undetermined) == (after.degrees, after.undetermined)
        np.testing.assert_allclose(ours[h].nis, after.nis, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(ours[h].log_likelihood, after.log_likelihood, rtol=tolerance, atol=tolerance)
        scale = np.nanmax(np.abs(after.u), initial=1.0)
        np.testing.assert_allclose(ours[h].u, after.u, atol=tolerance * scale)
    state, expected = of.state, other.state
    assert state.time == expected.time
    np.testing.assert_allclose(state.mean, expected.mean, atol=tolerance * np.abs(expected.mean).max())
    np.testing.assert_allclose(state.deviations, expected.deviations, rtol=tolerance)


@pytest.mark.parametrize(
    ("name", "reach", "width"),
    [
        *(("biped", None, 2), ("biped", 1, 4), ("biped", None, 8)),
        *(pytest.param("quadruped", *each, marks=pytest.mark.long) for each in ((1, 4), (None, 8))),
    ],
)
def test_one_foreign_call_says_what_numpy_says(name, reach, width):
    """Over switches, a gap, readings that are missing, other weights, and from the beginning again."""
    record, of, tolerance = walk(name), native(name, reach, width), 1e-9 if name == "biped" else OF_EXACT_ROWS
    other = by_numpy(of)
    assert isinstance(steps_of(of).hypothesis_step, NativeHypothesisStep)
    offsets = np.random.default_rng(5).normal(size=(2, 6)) * OFFSET_SIGMA if name == "biped" else None
    qd, y = readings(record, offsets)
    heavy = 2.0 * steps_of(of).tick.system.weights
    ticks = [*range(940, 985), *range(1030, 1040)]
    for filter_ in (of, other):
        filter_.reset(probabilities={filter_.states[0]: 0.9, filter_.states[1]: 0.1})
    switches = 0
    for at, k in enumerate(ticks):
        if k == 1035:
            state = of.state
            of.reset(state)
            other.reset(state)
        told = y[k].copy()
        told[: at % 3] = np.nan
        dt = {970: 0.004, 1030: 0.03}.get(k)
        options: dict[str, Any] = {"dt": dt, "missing": "drop", "weights": heavy if k % 7 == 0 else None}
        found = of.step(record.q[k], qd[k], told, **options)
        expected = other.step(record.q[k], qd[k], told, **options)
        check_same(of, other, tolerance)
        switches += found.switch is not None
        assert (found.switch is None) == (expected.switch is None)
        largest = np.abs(expected["fx"]).max()
        np.testing.assert_allclose(found["fx"], expected["fx"], atol=1e-6 * largest)
    assert switches
    ours, theirs = of.smoothed(4), other.smoothed(4)
    np.testing.assert_allclose(list(ours.values()), list(theirs.values()), atol=tolerance)
    assert len(judged(of)) < len(of.states) or reach is None


def in_extended_precision(other: Recogniser, h: int) -> tuple[float, float]:
    """chi-square and log likelihood of a state at the first tick, by reflections that begin with large rows."""
    of, judging, tick = steps_of(other).model, steps_of(other).hypothesis_step, steps_of(other).tick
    assert isinstance(judging, NumpyHypothesisStep)
    n_s, rows = tick.sizes[0], of.rows[h]
    measured = tick.measured_of(np.array(tick.rows.outputs))
    weights = of.weights(judging.state[-tick.system.n_weights :])[rows].astype(np.longdouble)
    before, n = steps_of(other).beginning, measured.A.shape[1]
    known = np.column_stack([np.zeros((n - n_s, n_s)), before.R, before.z]).astype(np.longdouble)
    left = np.vstack([known, np.sqrt(weights)[:, None] * np.column_stack([measured.A[rows], -measured.c[rows]])])
    log_determinant = np.log(np.abs(np.diag(known[:, n_s:]))).sum() + np.log(weights).sum() / 2
    degrees = len(left) - n
    for j in range(n):
        left = left[np.argsort(-np.abs(left[:, j]))]
        v = left[:, j].copy()
        norm = np.sqrt(v @ v)
        v[0] += np.copysign(norm, v[0])
        left = (left - np.outer(v, (v @ left) * (2 / (v @ v))))[1:]
        log_determinant -= np.log(norm)
    nis = float(left[:, n] @ left[:, n])
    return nis, float(log_determinant) - (nis + degrees * np.log(2 * np.pi)) / 2


def test_exact_rows_cost_no_digits():
    record, of = walk("quadruped"), native("quadruped")
    other = by_numpy(of)
    qd, y = readings(record, None)
    of.reset()
    for k in range(850, 853):
        of.step(record.q[k], qd[k], y[k])
    state, k = of.state, 853
    for filter_ in (of, other):
        filter_.reset(state)
        filter_.step(record.q[k], qd[k], y[k])
    for h, after in judged(of).items():
        nis, log_likelihood = in_extended_precision(other, h)
        assert after.nis == pytest.approx(nis, rel=1e-11)
        assert after.log_likelihood == pytest.approx(log_likelihood, rel=1e-11)


def test_a_tick_uses_its_arrays_where_they_lie():
    record, of = walk("biped"), native("biped")
    qd, y = readings(record, np.zeros((2, 6)))
    arrays = of.probabilities, *vars(of.outputs).values(), *vars(of.inputs).values()
    found = []
    for way in ("step", "tick"):
        of.reset()
        of.inputs.weights[:] = steps_of(of).tick.system.weights
        for k in range(930, 980):
            if way == "step":
                found.append((of.step(record.q[k], qd[k], y[k])["fx"], of.contacts, of.probabilities.copy()))
                continue
            of.inputs.q[:], of.inputs.qd[:], of.inputs.y[:] = record.q[k], qd[k], y[k]
            assert of.tick().ok
            fx, contacts, probabilities = found[k - 930]
            np.testing.assert_allclose(of.outputs.fx, fx, atol=1e-9)
            np.testing.assert_array_equal(of.probabilities, probabilities)
            assert of.contacts == contacts
    assert len(of.switches) == 1
    now = of.probabilities, *vars(of.outputs).values(), *vars(of.inputs).values()
    assert all(one is other for one, other in zip(now, arrays, strict=True))


def test_a_tick_that_is_not_finite_goes_on_without_readings():
    record, of = walk("biped"), native("biped")
    other = by_numpy(of)
    qd, y = readings(record, np.zeros((2, 6)))
    of.reset()
    for k in range(930, 945):
        for filter_ in (of, other):
            state = steps_of(filter_).hypothesis_step.state
            state[:] = np.concatenate([record.q[k], qd[k], y[k], steps_of(of).tick.system.weights])
            if k in (930, 940):
                state[steps_of(of).tick.system.tree.nq + 3] = np.nan
            status = filter_.tick()
            assert status.ok == (k not in (930, 940))
            assert np.isnan(steps_of(filter_).values).all() == (not status.ok)
            assert status.ok or "not finite" in str(status.cause)
        np.testing.assert_allclose(of.probabilities, other.probabilities, atol=1e-9)
        np.testing.assert_allclose(of.state.mean, other.state.mean, atol=1e-9)
        np.testing.assert_array_equal(np.isinf(of.state.deviations), np.isinf(other.state.deviations))


def arm(memory: dict[str, Any], closed: list[dict[str, Any]]) -> Recogniser:
    """An arm of two joints whose last link may touch; what pushes its first link is nobody's reading."""
    rest = {"type": "joint_acceleration", "joints": "joint1", "sigma": 0.5, "name": "rest"}
    states = [("tip",), (), ("off", "tip"), ("off",)]
    rows = TORQUES | {"sigma": 0.1, "offset": {"sigma": 3}}, ACCELERATIONS | {"sigma": 0.2}
    tip, off = {"closed": closed, "open": [UNLOADED | {"sigma": 0.3}]}, {"closed": [], "open": [rest]}
    sensors = sensor_set(*rows, name="arm", contacts={"tip": tip, "off": off}, memory=memory)
    return recogniser_of(autotree(2), sensors, states, 0.01, ["qdd"], backend="native")


SPEED = {"speed": {"of": "qd", "rate": "qdd", "noise": 0.01}}
OFFSET = {"offset": {"of": "offset", "walk": 0.1}}
NEW_PUSH = {"push": {"of": f"fx:{autotree(2).names[1]}", "walk": 1.0}}
PUSH = {"push": NEW_PUSH["push"] | {"sigma": 5}}


@pytest.mark.parametrize(("memory", "width"), [(SPEED | OFFSET, 2), (OFFSET | PUSH, 4), (OFFSET | NEW_PUSH, 8)])
def test_states_that_leave_something_undetermined_are_judged_alike(memory, width, monkeypatch):
    """What pushes an arm that touches is not determined, and neither is what goes on if nothing was known of it."""
    compile_for(width, monkeypatch)
    of = arm(memory, [UNLOADED | {"components": ["mx", "fz"]}])
    other = by_numpy(of)
    rng = np.random.default_rng(3)
    lost = set()
    for k in range(8):
        q, qd, y = rng.normal(size=2), rng.normal(size=2), rng.normal(size=len(of.measurement_names))
        causes = []
        for filter_ in (of, other):
            try:
                filter_.step(q, qd, y, dt=0.2 if k == 5 else None)
                causes.append("")
            except SingularSystemError as error:
                causes.append(str(error))
        assert causes[0] == causes[1]
        np.testing.assert_allclose(of.probabilities, other.probabilities, atol=1e-9)
        ours, theirs = judged(of), judged(other)
        for h, after in theirs.items():
            assert (ours[h].degrees, ours[h].undetermined) == (after.degrees, after.undetermined)
            lost |= set(after.undetermined)
            np.testing.assert_allclose(ours[h].nis, after.nis, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(ours[h].u, after.u, rtol=1e-7, atol=1e-7)
    assert lost


def test_one_state_is_a_filter():
    of = wheel(states=[()], backend="native")
    other = by_numpy(of)
    for _ in range(3):
        of.step(np.zeros(1), np.zeros(1), [0.1, 0.2])
        other.step(np.zeros(1), np.zeros(1), [0.1, 0.2])
        check_same(of, other, 1e-9)


@pytest.mark.parametrize("name", STATES)
def test_rows_do_not_jump_at_special_poses(name):
    """A robot that stands has joints at zero, where pivots of a bad choice of what is free vanish."""
    of, record = native(name), walk(name)
    assert steps_of(of).tick.coordinates.plan.stability.smallest_pivot > 0.1
    rng, nothing = np.random.default_rng(0), (np.zeros(record.tree.nv), np.zeros(steps_of(of).tick.system.ny))
    q = record.tree.neutral_configuration()
    near = q.copy()
    near[7:] += 1e-7 * rng.normal(size=len(q) - 7)
    for pose, other in (
        (q, near),
        (record.q[0], np.concatenate([record.q[0][:7], record.q[0][7:] + near[7:] - q[7:]])),
    ):
        measured, beside = steps_of(of).tick.measured(pose, *nothing), steps_of(of).tick.measured(other, *nothing)
        np.testing.assert_allclose(measured.A, beside.A, atol=1e-5)
        np.testing.assert_allclose(measured.X, beside.X, atol=1e-5)


@pytest.mark.parametrize("backend", [pytest.param("native", marks=pytest.mark.long), "numpy"])
def test_rows_whose_pivots_vanish_tell_nothing(monkeypatch, backend):
    """A choice of what is free that does not suit a biped with a foot turned up: A is lost there, and is not read."""
    monkeypatch.setattr(free_coordinates, "PREFERRED", 1.0)
    record = walk("biped")
    of = recogniser_of(record.tree, sensors("biped"), STATES["biped"], DT, ["fx"], acceleration=TOUCH, backend=backend)
    turned, steps = record.tree.neutral_configuration(), record.q[500]
    turned[record.tree.q_slices[record.tree.joint_names.index("r_ankle_x")]] = np.pi / 2
    nothing = np.zeros(record.tree.nv), np.zeros(steps_of(of).tick.system.ny)
    assert np.abs(steps_of(of).tick.measured(steps, *nothing).A).max() < 10
    with pytest.raises(SingularSystemError, match="loses its digits"):
        steps_of(of).tick.measured(turned, *nothing)
    many = [np.tile(array, (3, 1)) for array in nothing]
    with pytest.raises(SingularSystemError, match="at state 1 of 3"):
        steps_of(of).tick.measured_each(np.array([steps, turned, turned]), *many)
    of.inputs.q[:] = turned
    status = of.tick()
    assert not status.ok
    assert "nearly have no unique solution" in status.cause
