"""Closed configurations: what Newton's method finds, and what it refuses."""

from itertools import product

import numpy as np
import pytest

from nori_dyn.components import Coupling, Loop
from nori_dyn.errors import InputError, NotClosedError, UnknownModelNameError
from nori_dyn.model.closure import closed
from nori_dyn.model.joints import Revolute
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.model.tree import Frame, KinematicTree
from tests.oracles import poses
from tests.tolerances import SOLVED, assert_close


def ring(constrains: str = "pose") -> KinematicTree:
    """A chain of nine links whose last one is held to the world."""
    tree = random_tree(9, seed=5, kinds=("revolute",), chain=1.0)
    X = random_tree(2, seed=6).X_tree
    loop = Loop.model_validate({"name": "ring", "frames": ["tip", "wall"], "constrains": constrains})
    return tree.replace(frames={"tip": Frame(8, X[0]), "wall": Frame(-1, X[1])}, components=(loop,))


def pose_of(tree: KinematicTree, q: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The rotation to the world's axes, and the position, of a frame."""
    frame = tree.frame(name)
    if frame.on_world:
        return frame.X.E.T, frame.X.r
    R, o = poses(tree, q)
    return R[frame.link] @ frame.X.E.T, o[frame.link] + R[frame.link] @ frame.X.r


def test_frames_meet():
    for constrains, seed in product(("pose", "point", "hinge"), range(3)):
        tree = ring(constrains)
        q = closed(tree, np.random.default_rng(seed).normal(size=9))
        (R, p), (R_wall, p_wall) = pose_of(tree, q, "tip"), pose_of(tree, q, "wall")
        assert_close(p, p_wall, SOLVED)
        if constrains == "pose":
            assert_close(R, R_wall, SOLVED)
        if constrains == "hinge":
            assert_close(R[:, 2], R_wall[:, 2], SOLVED)


def test_velocities_keep_it_closed():
    tree = ring()
    q, qd = closed(tree, tree.random_configuration(0), np.ones(9))
    assert_close(closed(tree, q), q, SOLVED)  # a closed configuration is left as it is
    t = 1e-5
    _, before = pose_of(tree, tree.integrate(q, qd, -t), "tip")
    _, after = pose_of(tree, tree.integrate(q, qd, t), "tip")
    assert np.abs(after - before).max() / (2 * t) < 1e-8
    tree = ring("point")
    q = tree.random_configuration(0) + 0.01
    held = closed(tree, q, free=["joint2", "joint5", "joint7", "joint8"])
    assert [k for k in range(9) if held[k] != q[k]] == [1, 4, 6, 7]


def test_random_configurations_are_closed_and_within_limits():
    limited = tuple(Revolute((0.0, 0.0, 1.0), (-1.0, 1.0)) for _ in range(3))
    belt = Coupling(name="belt", joint="joint3", of={"joint1": 0.5, "joint2": [0.0, 0.3]})
    tree = autotree(3).replace(joints=limited, components=(belt,))
    Q = tree.random_configurations(50, 1)
    assert_close(Q[:, 2], 0.5 * Q[:, 0] + 0.3 * Q[:, 1] ** 2, SOLVED)
    assert np.abs(Q).max() <= 1.0
    assert len(np.unique(np.round(Q, 6), axis=0)) == 50


def test_half_a_turn_is_not_closed():
    """A rotation by half a turn has the sine of none."""
    tree = random_tree(1, seed=1, kinds=("revolute",))
    X = tree.X_tree[0]
    loop = Loop(name="weld", frames=["link1", "wall"], constrains="pose")
    axis = np.array(tree.joints[0].axis)  # type: ignore[attr-defined]
    half = tree.joints[0].transform(np.array([np.pi]))
    assert np.allclose(half.E @ axis, axis)
    tree = tree.replace(frames={"wall": Frame(-1, X)}, components=(loop,))
    assert abs(closed(tree, np.array([1.0]))[0]) < 1e-9
    with pytest.raises(NotClosedError, match=r"stays open by 3\.14"):
        closed(tree, np.array([np.pi]), free=[])


def test_what_cannot_be_closed_is_told():
    tree = ring()
    with pytest.raises(NotClosedError, match=r"'loop:ring' stays open by .* at least"):
        closed(tree, np.zeros(9), free=["joint1"])
    with pytest.raises(UnknownModelNameError, match="joint10"):
        closed(tree, np.zeros(9), free=["joint10"])
    with pytest.raises(InputError, match="q has shape"):
        closed(tree, np.zeros(8))
