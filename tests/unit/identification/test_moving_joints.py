"""Joints that follow: closed at each sample, velocities and accelerations by differences, and their derivatives."""

from functools import cache

import numpy as np
import pytest

from nori_dyn.components import Coupling
from nori_dyn.identification.moving_joints import DependentJoints
from nori_dyn.model.closure import closed, gap_rate, gaps
from nori_dyn.model.kinematics import positions
from nori_dyn.model.synthetic import autotree
from nori_dyn.model.tree import KinematicTree
from tests import closed_robots, mechanisms

STEP = 1e-5


def coupled_arm() -> KinematicTree:
    coupling = Coupling(name="cam", joint="joint3", of={"joint1": [0.5, 0.3], "joint2": -1.0})
    return autotree(4, skew=1.0).replace(components=(coupling,))


ROBOTS = {
    "four_bar": (lambda: closed_robots.four_bar("hinge"), ["crank_joint"]),
    "five_bar": (mechanisms.five_bar, ["l_crank", "r_crank"]),
    "delta": (mechanisms.delta, ["arm0", "arm1", "arm2"]),
    "coupled_arm": (coupled_arm, ["joint1", "joint2", "joint4"]),
}


def following(tree: KinematicTree, driven: list[str]) -> DependentJoints:
    rest = closed(tree, tree.random_configuration(0) if tree.name == "four_bar" else mechanisms.at_rest(tree))
    single = [i for i, joint in enumerate(tree.joints) if joint.nv == 1]
    motors = {tree.v_slices[tree.joint(name)].start for name in driven}
    found = DependentJoints.of(tree, single, motors, rest)
    assert found is not None
    assert set(found.independent) == motors
    return found


@cache
def of_robot(name: str) -> DependentJoints:
    make, driven = ROBOTS[name]
    return following(make(), driven)


def motions(of: DependentJoints, n: int = 20) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Motions of the independent joints, all else at rest."""
    rng, own = np.random.default_rng(1), list(of.independent)
    size = 0.02 if of.tree.name == "five_bar" else 0.15  # its rods are nearly stretched at rest
    q, (qd, qdd) = np.tile(of.rest, (n, 1)), np.zeros((2, n, of.tree.nv))
    places = [of.tree.q_slices[i].start for k in own for i, s in enumerate(of.tree.v_slices) if s.start == k]
    q[:, places] += size * rng.uniform(-1, 1, (n, len(own)))
    qd[:, own], qdd[:, own] = rng.normal(size=(2, n, len(own)))
    return q, qd, qdd


def moved(of: DependentJoints, motion: tuple[np.ndarray, ...], along: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """The whole motion where that of independent joints is changed along some others, forwards and backwards."""
    q, qd, qdd = motion
    there, back = (
        of.whole(
            of.tree.integrate(q.T, sign * STEP * along[0].T).T,
            qd + sign * STEP * along[1],
            qdd + sign * STEP * along[2],
        )
        for sign in (1, -1)
    )
    places = np.array([of.tree.difference(x, y) for x, y in zip(back[0], there[0], strict=True)])
    return places / (2 * STEP), *((y - x) / (2 * STEP) for x, y in zip(back[1:], there[1:], strict=True))


@pytest.mark.parametrize("name", ROBOTS)
def test_they_are_closed_and_their_rates_are_those_of_differences(name):
    of = of_robot(name)
    motion = motions(of)
    Q, Qd, Qdd = of.whole(*motion)
    at = positions(of.tree, Q.T)
    assert np.abs(gaps(at)).max() < 1e-12
    assert np.abs(np.einsum("rvn,nv->rn", gap_rate(at), Qd)).max() < 1e-11
    speed, acceleration, _ = moved(of, motion, (motion[1], motion[2], 0 * motion[2]))
    np.testing.assert_allclose(speed, Qd, atol=1e-7 * np.abs(Qd).max())
    np.testing.assert_allclose(acceleration, Qdd, atol=1e-6 * np.abs(Qdd).max())


@pytest.mark.parametrize("name", ROBOTS)
def test_derivatives_are_those_of_differences(name):
    of = of_robot(name)
    motion = motions(of)
    whole = of.whole(*motion)
    by = np.random.default_rng(2).normal(size=(3, len(whole[0]), len(of.moved)))
    found = of.pullback(*whole, by)
    for k in range(3):
        for j, freedom in enumerate(of.independent):
            along = np.zeros((3, *whole[1].shape))
            along[k][:, freedom] = 1.0
            changes = moved(of, motion, along)
            expected = sum(
                (of_each * change[:, of.moved]).sum(axis=1) for of_each, change in zip(by, changes, strict=True)
            )
            np.testing.assert_allclose(found[k][:, j], expected, atol=1e-6 * np.abs(expected).max())


def test_where_it_cannot_be_closed_it_is_no_number():
    of = of_robot("five_bar")
    tree = of.tree
    q, qd, qdd = motions(of, 3)
    q[1, tree.q_slices[tree.joint("l_crank")]] -= 0.8  # the rods do not reach
    q[1, tree.q_slices[tree.joint("r_crank")]] += 0.8
    Q, Qd, Qdd = of.whole(q, qd, qdd)
    for part in (Q, Qd, Qdd):
        assert np.isnan(part[1]).all()
        assert np.isfinite(part[[0, 2]]).all()
