"""The skeleton of a page: its points are those of the kinematics, its arrows the wrenches, wherever a robot walks."""

import base64
import math
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import Frame
from nori_dyn.planning.outputs import resolve_outputs
from nori_dyn.report.recorded import RecordedLog
from nori_dyn.report.skeleton import LARGEST, SIZE, UNKNOWN, bone_ends, skeleton
from tests.standing import robot, sway
from tests.systems import ACCELERATIONS, WRENCHES, sensor_set

N, FOOT = 300, "l_foot"
SIGMA = np.array([1.0, 1.0, 1.0, 2.0, 3.0, 8.0])


def recorded(tree, q, values, outputs, sensors, spread=None) -> RecordedLog:
    system = nd.System(tree, sensors)
    outputs = resolve_outputs(system, outputs)
    return RecordedLog("log", (system,), outputs, 0.01 * np.arange(len(q)), 0.0, q, {}, values, spread=spread or {})


@cache
def swaying(drift: float = 0.0) -> RecordedLog:
    """A box on two legs that sways, and is carried along, with a wrench on one foot."""
    t = 0.01 * np.arange(N)
    motion = sway(t)
    q = np.hstack([motion.p + np.outer(t, [drift, 0, 0]), Rotation.from_matrix(motion.R).as_quat(), motion.q])
    wrench = np.column_stack([0 * t, 0 * t, 0 * t, 10 * np.sin(t), 5 + 0 * t, 100 + 20 * np.cos(3 * t)])
    wrench[7] = np.nan
    entries = (
        ACCELERATIONS | {"value": 0},
        {"type": "external_wrench", "links": {"except": ["l_shank"]}, "value": 0},
        {"type": "external_wrench", "links": FOOT},
    )
    name = f"fx:{FOOT}"
    return recorded(robot(), q, {name: wrench}, [name], sensor_set(*entries), {name: 0 * wrench + SIGMA})


def read_back(drawn) -> dict[str, np.ndarray]:
    """The points, arrows, their ellipsoids, discs and the ground in all frames."""
    numbers = np.frombuffer(base64.b64decode(drawn.numbers), dtype="<i2").reshape(len(drawn.at), -1).astype(float)
    points, rest = np.split(numbers, [3 * drawn.points], axis=1)
    arrows = rest[:, : 12 * len(drawn.arrows)].reshape(len(numbers), len(drawn.arrows), 4, 3)
    shape = len(numbers), drawn.points, 3
    return {"points": points.reshape(shape), "arrows": arrows, "discs": rest[:, 12 * len(drawn.arrows) : -2]}


def test_points_are_where_the_kinematics_say():
    log = swaying()
    drawn, tree = skeleton(log, int), robot()
    assert drawn.at == tuple(range(N))
    points = read_back(drawn)["points"]
    X_0 = positions(tree, log.q.T).X_0
    expected = [np.asarray(X_0[tree.link(name)].r).T for name in ("box", "l_hip", "l_shank", "r_hip", "r_shank")]
    lengths = np.linalg.norm(np.diff(expected, axis=0), axis=2)
    found = [points[:, k] for k in dict.fromkeys(k for bone in drawn.bones for k in bone)]
    between = np.linalg.norm(np.array(found)[:, None] - np.array(found)[None], axis=3)
    metre = between[0, 1].mean() / lengths[0].mean()
    for first, second in ((0, 1), (1, 2), (0, 3), (3, 4)):
        distance = np.linalg.norm(expected[first] - expected[second], axis=1)
        off = np.abs(between - metre * distance).max(axis=2)
        assert off.min() < 2e-3 * SIZE
    assert np.abs(points).max() <= SIZE
    assert np.linalg.norm(points - points.mean(axis=(0, 1)), axis=2).max() > SIZE / 2


def test_a_robot_that_walks_away_stays_in_the_middle_and_the_ground_moves():
    still, away = (read_back(skeleton(swaying(drift), int)) for drift in (0.0, 3.0))
    np.testing.assert_allclose(away["points"], still["points"], atol=2)
    np.testing.assert_allclose(away["arrows"], still["arrows"], atol=2)


def test_arrows_are_the_wrenches_along_axes_of_the_world_with_their_deviations():
    log, tree = swaying(), robot()
    drawn = skeleton(log, int)
    (force,) = drawn.arrows  # moments of nothing are not drawn
    assert (force.label, force.unit) == (f"force on {FOOT}", "N")
    arrows = read_back(drawn)["arrows"][:, 0]
    assert (arrows[7, 0] == UNKNOWN).all()
    known = np.arange(N) != 7
    E = np.moveaxis(np.asarray(positions(tree, log.q.T).X_0[tree.frame(FOOT).link].E, dtype=float), 2, 0)[known]
    values = log.values[f"fx:{FOOT}"][known, 3:]
    step = force.full / SIZE  # what one unit is [N]
    np.testing.assert_allclose(step * arrows[known, 0], np.einsum("nji,nj->ni", E, values), atol=step)
    covariance = np.einsum("nki,nkj->nij", arrows[known, 1:], arrows[known, 1:]) * step**2 / 4
    expected = np.einsum("nji,j,njk->nik", E, SIGMA[3:] ** 2, E)
    np.testing.assert_allclose(covariance, expected, atol=0.02 * SIGMA.max() ** 2)
    words, length = drawn.scale
    assert words == "100 N"
    assert 0 < length < 60


def test_without_wrenches_discs_are_the_torques():
    tree, tau = nd.autotree(3), np.sin(np.multiply.outer(np.arange(N), [0.1, 0.2, 0.3])) * [5.0, 2.0, 1.0]
    sensors = SensorSet.from_dict(nd.sensors("inverse_dynamics").to_dict())
    drawn = skeleton(recorded(tree, np.zeros((N, 3)), {"tau": tau}, ["tau"], sensors), int)
    assert drawn.arrows == ()
    assert drawn.torque == "5.0 N m"
    np.testing.assert_allclose(read_back(drawn)["discs"] / SIZE, np.abs(tau) / np.abs(tau).max(), atol=1e-4)


def test_gravity_points_down_whatever_it_is_along():
    q, tau = np.zeros((N, 2)), {"tau": np.ones((N, 2))}
    seen = []
    for gravity in ((0.0, 0.0, -9.81), (0.0, -9.81, 0.0)):
        tree = nd.autotree(2).replace(gravity=gravity)
        seen.append(read_back(skeleton(recorded(tree, q, tau, ["tau"], nd.sensors("inverse_dynamics")), int)))
    along = [np.ptp(each["points"][0], axis=0) for each in seen]
    np.testing.assert_allclose(along[0], along[1], atol=2)  # the arm lies along x
    assert not np.allclose(along[0][0], 0)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_short_logs_and_those_of_which_little_is_known_are_drawn(n):
    tree, q = robot(), np.tile(robot().neutral_configuration(), (n, 1))
    rows = ACCELERATIONS | {"value": 0}, WRENCHES
    wrench = np.zeros((n, 6))
    wrench[: n // 2 + 1, 5], wrench[n // 2 + 1 :] = 3.0, np.nan
    wrench[0, 5] = 7.0
    for values in (wrench, np.zeros((n, 6)), wrench * np.nan, wrench + np.inf):
        drawn = skeleton(recorded(tree, q, {f"fx:{FOOT}": values}, [f"fx:{FOOT}"], sensor_set(*rows)), int)
        assert len(drawn.at) == n
        assert len(read_back(drawn)["points"]) == n
        assert all(math.isfinite(arrow.full) for arrow in drawn.arrows)


@pytest.mark.parametrize("n", [1, 2, 60, LARGEST, LARGEST + 1])
def test_its_size_is_bounded(n):
    tree = nd.autotree(n)
    log = recorded(tree, np.zeros((50, n)), {"qdd": np.ones((50, n))}, ["qdd"], nd.sensors("forward_dynamics"))
    drawn = skeleton(log, int)
    assert (drawn is None) == (n > LARGEST)
    assert drawn is None or (len(drawn.bones) >= 1 and len(drawn.numbers) < 400_000)


def test_a_last_link_ends_in_its_farthest_frame_or_in_its_centre_of_mass():
    arm, box = nd.autotree(2), robot()
    (end,) = bone_ends(arm, 0)
    assert end == pytest.approx(arm.X_tree[1].r)
    (tip,) = bone_ends(arm, 1)
    assert tip == pytest.approx(arm.I[1, [2, 0, 1], [4, 5, 3]] / arm.I[1, 5, 5])
    places = {
        name: Frame(1, Transform(np.eye(3), np.array([x, 0.0, 0.0]))) for name, x in {"near": 0.1, "far": 2}.items()
    }
    (tip,) = bone_ends(arm.replace(frames=places), 1)
    assert tip == pytest.approx([2, 0, 0])
    assert len(bone_ends(box, box.link("box"))) == 2
