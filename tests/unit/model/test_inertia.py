"""Inertias that no distribution of mass has: which they are, and the nearest that one has, judged by other ways."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from nori_dyn.errors import ModelError, NoriWarning
from nori_dyn.model.assembly import JointData, Transform, assemble
from nori_dyn.model.inertia import LinkData, check_inertia, nearest_physical
from nori_dyn.model.joints import Revolute
from tests.tolerances import PEER, ROUNDING, assert_close

ODD = {
    "one too large": np.diag([1.0, 1.0, 3.0]),
    "one negative": np.diag([-0.02135, 0.0521, 0.09895]),  # the body of romeo_laas_small
    "two negative": np.diag([-1.0, -0.1, 2.0]),
    "all negative": np.diag([-1.0, -2.0, -3.0]),
    "next to none": np.diag([0.003469, 0.004294, 4.766]),  # the ankles of iCubNancy01
}


def turned(I, seed):
    R = Rotation.random(rng=np.random.default_rng(seed)).as_matrix()
    return R @ I @ R.T


def pseudo_inertia(mass, I_com):
    """The pseudo-inertia (4, 4) about the centre of mass, as Wensing, Kim and Slotine (2018) write it."""
    J = np.zeros((4, 4))
    J[:3, :3] = np.trace(I_com) / 2 * np.eye(3) - I_com
    J[3, 3] = mass
    return J


def inertia_of_points(masses, points):
    """The rotational inertia (3, 3) about the origin, and the centre of mass (3,), of point masses."""
    I = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, points, strict=True))
    return I, masses @ points / masses.sum()


def test_what_is_no_inertia_is_refused_and_what_no_distribution_of_mass_has_is_told():
    still, eye = np.zeros(3), np.eye(3)
    for mass, com, I_com, message in (
        (-0.1, still, eye, "its mass is -0.1 kg"),
        (math.nan, still, eye, "not finite"),
        (1.0, np.array([0, math.inf, 0]), eye, "not finite"),
        (1.0, still, np.full((3, 3), math.nan), "not finite"),
        (1.0, still, eye + np.eye(3, k=1), "not symmetric"),
    ):
        with pytest.raises(ModelError, match=f"link 'arm': .*{message}"):
            check_inertia("arm", mass, com, I_com)
    assert check_inertia("arm", 0.0, still, np.zeros((3, 3)))
    point = np.array([[0, 0, 2.4e-35], [0, 0, 0], [2.4e-35, 0, 0]])  # the rounding of a point mass is not indefinite
    for I_com in (np.diag([1.0, 1.0, 2.0]), np.zeros((3, 3)), point):
        assert check_inertia("arm", 1.0, still, I_com)
    for I_com in (*ODD.values(), np.diag([1.0, 1.0, 2.1]), np.diag([1.0, 1.0, -1e-6]), -eye):
        assert not check_inertia("arm", 1.0, still, I_com)


@pytest.mark.parametrize("case", ODD)
def test_point_masses_have_the_nearest_and_none_is_nearer(case):
    """Moreau: x is the projection of y if x and x - y are in the (self-dual) cone and at right angles."""
    mass, given = 1.7, turned(ODD[case], seed=1)
    nearest = nearest_physical(given)
    assert check_inertia("arm", mass, np.zeros(3), nearest)
    moments, axes = np.linalg.eigh(pseudo_inertia(mass, nearest)[:3, :3])
    ends = np.sqrt(3 * np.maximum(moments, 0) / mass) * axes
    I, com = inertia_of_points(np.full(6, mass / 6), np.concatenate([ends.T, -ends.T]))
    assert_close(I, nearest, PEER)
    assert_close(com, np.zeros(3), PEER)
    x, y = pseudo_inertia(1.0, nearest), pseudo_inertia(1.0, given)
    size = np.abs(y).max()
    assert np.linalg.eigvalsh(x)[0] > -ROUNDING.value * size
    assert np.linalg.eigvalsh(x - y)[0] > -ROUNDING.value * size
    assert abs(np.sum(x * (x - y))) < ROUNDING.value * size**2
    assert np.linalg.norm(x - y) > 1e-3 * size
    # It turns with the body, and is nearest to itself.
    assert_close(nearest, turned(nearest_physical(ODD[case]), seed=1), ROUNDING)
    assert_close(nearest_physical(nearest), nearest, ROUNDING)


@given(st.integers(0, 2**32 - 1), st.integers(3, 8))
def test_what_points_have_is_nearest_to_itself(seed, n):
    rng = np.random.default_rng(seed)
    masses, points = rng.uniform(0.1, 1, size=n), rng.normal(size=(n, 3))
    points -= masses @ points / masses.sum()
    I, _ = inertia_of_points(masses, points)
    assert check_inertia("arm", masses.sum(), np.zeros(3), I)
    assert_close(nearest_physical(I), I, ROUNDING)


# In a tree


def rod(I_com, tip=None):
    """The links and joints of a rod on a wall, and of what is fixed to its end."""
    links = [LinkData("wall"), LinkData("rod", 1.0, np.array([0, 0, 0.1]), I_com)]
    at = Transform(np.eye(3), np.array([0.0, 0.0, 1.0]))
    joints = [JointData("hinge", "wall", "rod", Transform.identity(), Revolute((0.0, 1.0, 0.0)))]
    if tip is not None:
        links.append(LinkData("tip", 0.5, np.zeros(3), tip))
        joints.append(JointData("weld", "rod", "tip", at, None))
    return links, joints


def test_odd_links_are_told_of():
    links, joints = rod(ODD["one too large"], ODD["one too large"])
    listed = r"'rod' \(1, 1, 3 kg m\^2\), 'tip' \(1, 1, 3 kg m\^2\): none may be negative, or larger"
    with pytest.warns(NoriWarning, match=listed) as caught:
        tree = assemble("rod", links, joints)
    assert (len(caught), tree.n_links) == (1, 1)
    with pytest.raises(ModelError, match=listed):
        assemble("rod", links, joints, inertias="refuse")
    # A negative moment of a small part does not hurt what carries it, that of a moving link does.
    below = "the inertia of 'rod', with all that is fixed to it, is below zero about some axis"
    for robot, message in (
        (rod(np.eye(3), np.diag([-1e-6, 1e-6, 1e-6])), "'tip'.*the equations of motion still hold"),
        (rod(ODD["two negative"]), below),
    ):
        with pytest.warns(NoriWarning, match=message):
            assemble("rod", *robot)
    # The nearest is taken link by link, without a warning.
    links, joints = rod(ODD["two negative"], ODD["one too large"])
    tree = assemble("rod", links, joints, inertias="nearest")
    mended = [dataclasses.replace(link, I_com=nearest_physical(link.I_com)) for link in links]
    assert_close(tree.I, assemble("rod", mended, joints).I, ROUNDING)
    (note,) = (note for note in tree.notes if "nearest" in note)
    assert "'rod' (-1, -0.1, 2 to " in note
    assert "'tip' (1, 1, 3 to 1.5, 1.5, 3)" in note
