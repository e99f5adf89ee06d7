"""Configurations at which a condition holds: it does, within the limits, and it is said where it cannot."""

import math

import numpy as np
import pytest

from nori_dyn.errors import InputError, NoConfigurationError, UnknownModelNameError, UnknownPoseError
from nori_dyn.model.joints import Free, Planar, Revolute
from nori_dyn.model.kinematics import positions
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.model.tree import KinematicTree, NamedFrame
from nori_dyn.observe.poses import POSES, _PoseProblem, configurations_where
from tests.robots import load
from tests.trees import TREES

SOLES = ("left_sole_link", "right_sole_link")


def frame_at(tree: KinematicTree, q: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The axes (3, 3), in columns, and the position (3,) of a frame in world coordinates."""
    frame = tree.frame(name)
    X = frame.X @ positions(tree, q).X_0[frame.link]
    return X.E.T, X.r


@pytest.fixture(scope="module")
def talos() -> KinematicTree:
    return load("talos_reduced", "floating")


@pytest.mark.parametrize("condition", [name for name, pose in POSES.items() if pose.residual])
def test_conditions_hold_within_the_limits(talos, condition):
    Q = configurations_where(talos, condition, SOLES, n=4, seed=2)
    assert Q.shape == (4, talos.nq)
    assert len(np.unique(Q.round(6), axis=0)) == 4
    for q in Q:
        (R, p), (S, r) = (frame_at(talos, q, name) for name in SOLES)
        n = R[:, 2]
        assert np.linalg.norm(np.cross(n, S[:, 2])) < 1e-9
        if condition != "parallel":
            assert abs(n @ (r - p)) < 1e-9
        if condition in ("flat", "double_support"):
            np.testing.assert_allclose(n, [0, 0, 1], atol=1e-9)
        if condition == "double_support":
            neutral = [frame_at(talos, talos.neutral_configuration(), name)[1] for name in SOLES]
            assert abs(p[2]) < 1e-9
            assert np.linalg.norm(r - p) == pytest.approx(np.linalg.norm(neutral[0] - neutral[1]))
        assert np.linalg.norm(q[3:7]) == pytest.approx(1, abs=1e-12)
        for joint, part in zip(talos.joints, talos.q_slices, strict=True):
            low, high = getattr(joint, "limits", (-math.inf, math.inf))
            assert (q[part] >= low).all()
            assert (q[part] <= high).all()


def test_a_given_distance_and_other_normals(talos):
    (q,) = configurations_where(talos, "double_support", SOLES, n=1, distance=0.35)
    (_, p), (_, r) = (frame_at(talos, q, name) for name in SOLES)
    assert np.linalg.norm(r - p) == pytest.approx(0.35)
    tree = autotree(6, skew=1.0)
    (q,) = configurations_where(tree, "parallel", ("link2", "link6"), n=1, normals=[(0, 0, 2), (1, 0, 0)])
    (R, _), (S, _) = (frame_at(tree, q, name) for name in ("link2", "link6"))
    assert np.linalg.norm(np.cross(R[:, 2], S[:, 0])) < 1e-9


def test_the_same_seed_gives_the_same_configurations():
    tree = autotree(5, skew=1.0)
    first, second = (configurations_where(tree, "coplanar", ("link1", "link5"), n=2, seed=7) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert configurations_where(tree, "parallel", ("link1", "link5"), n=0).shape == (0, 5)


def test_conditions_on_the_joints():
    for name, tree in TREES.items():
        for q in configurations_where(tree, "at_zero", n=3):
            for joint, part in zip(tree.joints, tree.q_slices, strict=True):
                assert joint.kind == "free" or np.array_equal(q[part], joint.neutral()), name
        assert configurations_where(tree, "at_limits", n=3).shape == (3, tree.nq), name


def test_every_joint_at_a_limit():
    tree = autotree(4).replace(joints=(Revolute(limits=(-1.0, 2.0)), Revolute(), Revolute(limits=(0.0, 1.0)), Planar()))
    Q = configurations_where(tree, "at_limits", n=20)
    assert set(Q[:, 0]) == {-1.0, 2.0}
    assert set(Q[:, 2]) == {0.0, 1.0}


def test_frames_on_the_world_and_frames_that_nothing_moves():
    tree = TREES["two_roots"]
    assert configurations_where(tree, "parallel", ("wall", "tool"), n=1).shape == (1, tree.nq)
    fixed = autotree(2)
    with pytest.raises(NoConfigurationError):
        configurations_where(fixed.replace(joints=(Revolute(limits=(0, 0)),) * 2), "flat", ("link1", "link2"), n=1,
                             normals=[(1, 0, 0), (1, 0, 0)])  # fmt: skip


def test_what_cannot_be_is_said():
    tree = autotree(3, skew=0.5)
    with pytest.raises(NoConfigurationError, match=r"no configuration was found with link1, link2 with parallel") as e:
        configurations_where(tree, "parallel", ("link1", "link2"))
    assert e.value.condition == "parallel"
    assert 0.1 < e.value.residual < math.sin(0.5)


def test_wrong_use():
    for arguments, error, message in (
        (("paralell", ("link1", "link2")), UnknownPoseError, "Did you mean 'parallel'"),
        (("parallel", ("link1",)), InputError, "2 or more frames"),
        (("parallel", ("link1", "link1")), InputError, "2 or more frames"),
        (("parallel", "link1"), InputError, "2 or more frames"),
        (("parallel", ("link1", "link9")), UnknownModelNameError, "link9"),
        (("parallel", ("link1", "link2"), 1, 0, [(0, 0, 1)]), InputError, "normals"),
        (("parallel", ("link1", "link2"), 1, 0, [(0, 0, 1), (0, 0, 0)]), InputError, "normals"),
    ):
        with pytest.raises(error, match=message):
            configurations_where(autotree(3), *arguments)


def test_poses_of_frames_are_those_of_the_kinematics():
    tree = random_tree(9, 5)
    tree = tree.replace(joints=(Free(), *tree.joints[1:]))
    names = (tree.names[3], tree.names[-1])
    rng = np.random.default_rng(0)
    Q = np.array([tree.random_configuration(rng) for _ in range(4)])
    normals = rng.normal(size=(2, 3))
    named = [NamedFrame(name, tree.frame(name)) for name in names]
    at = _PoseProblem.of(tree, "parallel", named, normals, None).poses(Q.T)
    for k, q in enumerate(Q):
        for i, name in enumerate(names):
            R, p = frame_at(tree, q, name)
            np.testing.assert_allclose(at.origins[i, :, k], p, atol=1e-12)
            np.testing.assert_allclose(at.normals[i, :, k], R @ normals[i] / np.linalg.norm(normals[i]), atol=1e-12)


def test_wrenches_in_world_coordinates_do_the_same_work():
    tree = random_tree(4, 3)
    X = positions(tree, tree.random_configuration(1)).X_0[3]
    rng = np.random.default_rng(2)
    W, m = rng.normal(size=(6, 2)), rng.normal(size=6)
    np.testing.assert_allclose(m @ X.force_to_parent(W), X.apply_motion(m) @ W, atol=1e-12)
