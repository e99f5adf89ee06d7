"""Exciting motions, judged by Pinocchio: torques keep the limits, regressors tell more than of random motions."""

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg as la

import nori_dyn as nd
from nori_dyn.identification.motion_search import RANDOM
from tests.peers import pin
from tests.robots import ROBOTS, Pinocchio, load, pinocchio_model

FINGERS = ("panda_finger_joint1", "panda_finger_joint2")


def model_of(name):
    """Pinocchio's model of an arm, without fingers."""
    model = pinocchio_model(ROBOTS[name])
    fingers = [model.getJointId(joint) for joint in FINGERS if model.existJointName(joint)]
    return pin.buildReducedModel(model, fingers, pin.neutral(model)) if fingers else model


def by_pinocchio(tree, model, motion, t):
    """Torques (N, nv) of a motion, and the rows of its inertial parameters and friction (N nv, n)."""
    peer = Pinocchio(tree, model)
    torques, rows = [], []
    for q, qd, qdd in zip(*motion(t), strict=True):
        torques.append(peer.rnea(q, qd, qdd))
        W = peer.joint_forces(q, pin.computeJointTorqueRegressor(model, peer.data, *peer.state(q, qd, qdd)))
        signs = qd / np.sqrt(qd**2 + 0.01**2)
        rows.append(np.hstack([W, np.diag(qd), np.diag(signs)]))
    return np.array(torques), np.array(rows)


def base_columns(rows):
    """Columns that are independent, by pivoted QR."""
    flat = rows.reshape(-1, rows.shape[2])
    size = np.linalg.norm(flat, axis=0)
    (used,) = np.nonzero(size > 1e-9 * size.max())
    R, order = la.qr(flat[:, used] / size[used], mode="r", pivoting=True)
    return np.sort(used[order[: int((np.abs(np.diag(R)) > 1e-8).sum())]])


@pytest.mark.long
@pytest.mark.parametrize("name", ["ur5", "panda"])
def test_variances_are_smaller_than_after_random_motions(name):
    tree = load(name, locked=FINGERS if name == "panda" else ())
    model = model_of(name)
    motion = nd.exciting_motion(tree, duration=8.0, harmonics=4, starts=1, progress=False)
    t = np.linspace(0, 8, 400, endpoint=False)
    torques, rows = by_pinocchio(tree, model, motion.at, t)
    assert (np.abs(torques) <= motion.limits.torque * (1 + 1e-9)).all()
    np.testing.assert_allclose(torques, motion.torques(t), atol=1e-6 * np.abs(torques).max())
    sigma = np.array([motion.sigmas[f"tau:{joint}"] for joint in tree.joint_names])
    others = [by_pinocchio(tree, model, one, t)[1] for one in random_motions(motion, 8)]
    base = base_columns(np.vstack(others))
    assert len(base) == len(motion.parameters)

    def variances(rows):
        W = (rows[:, :, base] / sigma[:, None]).reshape(-1, len(base))
        return np.diag(np.linalg.inv(W.T @ W))

    best = min((variances(each) for each in others), key=lambda v: np.log(v).sum())
    assert np.log(variances(rows)).mean() < np.log(best).mean() - 2 * np.log(1.2)
    assert (variances(rows) < best).mean() > 0.8


def random_motions(motion, n):
    """Random motions of the same series that fill the limits of position, speed and acceleration."""
    series, limits = motion.trajectory.series, motion.limits
    bases = series.basis(series.times(RANDOM))
    found = []
    for seed in range(n):
        rng = np.random.default_rng(seed)
        coefficients = rng.normal(size=motion.trajectory.coefficients.shape)
        coefficients[:, 0] = 0.0
        q, qd, qdd = (np.abs(basis @ coefficients.T).max(axis=0) for basis in bases)
        coefficients /= np.max([q / limits.room, qd / limits.speed, qdd / limits.acceleration], axis=0)[:, None]
        coefficients[:, 0] = limits.middle

        def at(t, coefficients=coefficients):
            return tuple(basis @ coefficients.T for basis in series.basis(t))

        found.append(at)
    return found


@pytest.mark.long
def test_a_ur5_keeps_its_links_apart_by_coal():
    """Convex hulls of its meshes, at four times as many samples as are checked."""
    tree, model = load("ur5"), model_of("ur5")
    packages = str(Path(ROBOTS["ur5"]).parents[4])
    shapes = pin.buildGeomFromUrdf(model, str(ROBOTS["ur5"]), pin.GeometryType.COLLISION, package_dirs=packages)
    for each in shapes.geometryObjects:
        if hasattr(each.geometry, "buildConvexHull"):  # a mesh, which need not be convex itself
            each.geometry.buildConvexHull(True, "Qt")
            each.geometry = each.geometry.convex
    options = {"duration": 6.0, "harmonics": 3, "starts": 1, "acceleration": 5.0, "progress": False}
    motion = nd.exciting_motion(tree, ["inertias"], **options, shapes=ROBOTS["ur5"])
    joined = {*(frozenset(pair) for pair in pairwise(("base_link", *tree.names)))}
    links = [model.frames[each.parentFrame].name for each in shapes.geometryObjects]
    names = ["wrist_3_link" if link == "ee_link" else link for link in links]
    for i, j in combinations(range(len(names)), 2):
        if names[i] != names[j] and frozenset((names[i], names[j])) not in joined:
            shapes.addCollisionPair(pin.CollisionPair(i, j))
    assert motion.unknown == ("the floor",)
    peer, data, zero, least = Pinocchio(tree, model), pin.GeometryData(shapes), np.zeros(tree.nv), np.inf
    for q in motion.at(np.linspace(0, 6, 4801))[0]:
        pin.computeDistances(model, peer.data, shapes, data, peer.state(q, zero, zero)[0])
        least = min(least, *(result.min_distance for result in data.distanceResults))
    assert 0.0099 < least < 0.1
    assert least == pytest.approx(motion.clearance[0], abs=1e-3)
