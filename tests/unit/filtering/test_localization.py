"""Where a robot is touched: evidence of surfaces by dense algebra, wrenches that jump, and a Panda in MuJoCo."""

import numpy as np
import pytest
from scipy.stats import norm

import nori_dyn as nd
from benchmarks.real.touched_panda import DT, FREE, LOCKED, TOUCHED, sensors, touched
from nori_dyn.errors import InputError, PlanError
from nori_dyn.filtering.hypothesis_steps import HypothesisSteps
from nori_dyn.filtering.judging import NumpyHypothesisStep
from nori_dyn.filtering.localization import PointsOfContact
from nori_dyn.model.surface import Surface, box, sphere
from tests.compilers import needs_compiler
from tests.peers import mujoco

EXACT_ROWS = 1e-5
"""By how much NumPy is off where rows hold exactly by a large weight."""

PUSHES = 1e6
"""A coefficient of friction with which a force only has to push."""


def test_evidence_of_points_is_that_of_dense_algebra():
    surface = Surface.of(box([0.3, 0.2, 0.4]), 0.1)
    points = PointsOfContact(surface, PUSHES)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        R, z = rng.normal(size=(6, 6)), rng.normal(size=6)
        each = []
        for x, n in zip(surface.points, surface.normals, strict=True):
            A = np.vstack([np.cross(x, np.eye(3)).T, np.eye(3)])
            force, (chi_square,), *_ = np.linalg.lstsq(R @ A, z)
            S = (R @ A).T @ R @ A
            pushes = norm.cdf(-n @ force / np.sqrt(n @ np.linalg.solve(S, n)))
            each.append(2 * pushes * np.exp(-chi_square / 2) / np.sqrt(np.linalg.det(S)))
        log, at = points.evidence(R, z)
        expected = np.log(np.mean(each) * abs(np.linalg.det(R)))
        assert log == pytest.approx(expected, abs=1e-4)  # the cone is not quite half of all directions
        assert at.point == pytest.approx(np.average(surface.points, axis=0, weights=each), abs=1e-4)


def test_a_force_that_is_known_is_at_the_point_that_its_line_enters():
    surface = Surface.of(sphere(0.1), 0.003)
    x = 0.1 * np.array([0.6, 0.48, 0.64])
    force = -20.0 * x / 0.1
    R = np.diag([1e3] * 3 + [1e2] * 3)
    at = PointsOfContact(surface, 1.0).evidence(R, R @ [*np.cross(x, force), *force])[1]
    assert at.point == pytest.approx(x, abs=0.003)
    assert at.force == pytest.approx(force, abs=0.1)
    assert at.deviation < 0.005
    pulls = PointsOfContact(surface, 1.0).evidence(R, -R @ [*np.cross(x, force), *force])[1]
    assert pulls.point == pytest.approx(-x, abs=0.003)  # it would pull at x, and pushes on the other side


@needs_compiler
def test_what_jumps_where_contacts_close_is_native_as_in_numpy():
    arm = nd.autotree(3, skew=1.0)
    plan = nd.plan(arm, sensors(False), outputs=["fx"])
    both = [nd.Tracker(plan, DT, hypotheses=nd.Hypotheses(), backend=name) for name in ("native", "numpy")]
    rng = np.random.default_rng(0)
    for k in range(12):
        q, qd, y = rng.normal(size=3), rng.normal(0, 0.01, 3), rng.normal(size=len(both[0].measurement_names))
        native, by_numpy = (each.step(q, qd, y + 5.0 * (k > 5)) for each in both)
        for state, p in by_numpy.probabilities.items():
            assert native.probabilities[state] == pytest.approx(p, rel=EXACT_ROWS, abs=1e-9)
        scale = np.abs(by_numpy.memory.mean).max()
        assert native.memory.mean == pytest.approx(by_numpy.memory.mean, abs=EXACT_ROWS * scale)


def test_a_jump_is_added_to_the_covariance_where_a_contact_closes():
    plan = nd.plan(nd.autotree(2, skew=1.0), sensors(False), outputs=["fx"])
    tracker = nd.Tracker(plan, DT, hypotheses=nd.Hypotheses(), backend="numpy")
    steps = tracker.steps
    assert isinstance(steps, HypothesisSteps)
    step, states = steps.hypothesis_step, tracker.states
    assert isinstance(step, NumpyHypothesisStep)
    y = np.zeros(len(tracker.measurement_names))
    for _ in range(3):
        tracker.step([0.1, 0.2], np.zeros(2), y)
    free, link = states.index(()), states.index(("link2",))
    p = np.zeros(len(states))
    p[free] = 0.7
    p[link] = 0.3
    T = np.eye(len(states))
    T[free, link] = 0.5
    step.probabilities[:] = p
    expected = p @ T
    merged = step._mixed([link, free], T, expected, DT)
    alone = {h: step._mixed([h], np.eye(len(states)), np.where(p > 0, p, 1.0), DT)[h] for h in (free, link)}
    shares = {free: 0.35 / expected[link], link: 0.3 / expected[link]}
    mean = sum(share * alone[h].mean() for h, share in shares.items())
    P = sum(
        share * (alone[h].covariance() + np.outer(alone[h].mean() - mean, alone[h].mean() - mean))
        for h, share in shares.items()
    )
    P += shares[free] * np.diag(np.square(steps.tick.jumps))
    assert steps.tick.jumps == (0.0, 0.0, *(30.0,) * 6)
    scale = np.sqrt(np.diag(P))
    assert merged[link].mean() == pytest.approx(mean, abs=1e-6)
    assert merged[link].covariance() / np.outer(scale, scale) == pytest.approx(P / np.outer(scale, scale), abs=1e-6)
    assert merged[free].covariance() == pytest.approx(alone[free].covariance(), rel=1e-9)


@needs_compiler
def test_touches_of_a_panda_in_mujoco_are_localized(tmp_path):
    assert mujoco.MjSpec
    tree = nd.load_robot("panda", locked=LOCKED)
    surfaces = nd.tools.surfaces("panda", tree)
    read = touched(tree, [surfaces[name] for name in tree.names], n=2, seed=3)
    plan = nd.plan(tree, sensors(True), outputs=["fx"])
    localizer = nd.tools.ContactLocalizer(nd.Tracker(plan, DT, hypotheses=nd.Hypotheses(rate=0.5)), surfaces)
    y = np.hstack([read.tau, read.base])
    for touch, (link, point, force) in enumerate(zip(read.links, read.points, read.forces, strict=True)):
        first = touch * (FREE + TOUCHED)
        found = [localizer.step(read.q[k], read.qd[k], y[k]) for k in range(first, first + FREE + TOUCHED)]
        assert found[FREE - 1].link is None
        last = found[-1].contact
        assert last is not None
        assert last.link == tree.names[link]
        assert np.linalg.norm(last.point - point) < 0.03
        assert last.force == pytest.approx(force, abs=3.0)
        assert last.wrench == pytest.approx([*np.cross(point, force), *force], abs=3.0)
        assert sum(found[-1].probabilities.values()) + found[-1].free == pytest.approx(1.0)
    np.savez(tmp_path / "log.npz", t=DT * np.arange(len(y)), q=read.q, qd=read.qd, y=y)
    whole = nd.estimate(tmp_path / "log.npz", plan, contacts=nd.Hypotheses(rate=0.5), surfaces=surfaces)
    assert [event.name for event in whole.history.events] == [f"contact:{tree.names[link]}" for link in read.links]
    for touch, event in enumerate(whole.history.events):
        assert event.begin == pytest.approx(DT * (touch * (FREE + TOUCHED) + FREE), abs=0.01)
        assert np.linalg.norm(event.point[:3] - read.points[touch]) < 0.03
    assert whole.history.contacts.points[-1] == pytest.approx([*last.point, last.deviation], rel=1e-6)
    assert whole.to_pandas()["touch.x"].iloc[-1] == whole.history.contacts.points[-1, 0]


def test_what_cannot_be_localized_is_refused():
    arm = nd.autotree(2, skew=1.0)
    ball = {"link1": Surface.of(sphere(0.1), 0.05)}
    plan = nd.plan(arm, sensors(False), outputs=["fx"])
    with pytest.raises(InputError, match="contacts are given here"):
        nd.tools.ContactLocalizer(nd.Tracker(plan, DT, backend="numpy"), ball)
    tracker = nd.Tracker(plan, DT, hypotheses=nd.Hypotheses(), backend="numpy")
    with pytest.raises(PlanError, match="none of the links that may be touched has a surface: link1, link2"):
        nd.tools.ContactLocalizer(tracker, {})
    with pytest.raises(InputError, match="coefficient of friction is a positive number"):
        nd.tools.ContactLocalizer(tracker, ball, friction=0.0)
