"""Distances of links from one another and from the floor: by coal, and their derivatives by differences."""

from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.descriptions.surfaces import solids
from nori_dyn.identification.moving_joints import MovingJoints
from nori_dyn.identification.surroundings import REACH, Clearance
from tests.oracles import poses

coal = pytest.importorskip("coal")
pytest.importorskip("mujoco")

SHAPES = {
    "upper": '<cylinder radius="0.05" length="0.4"/>',
    "fore": '<mesh filename="box.obj" scale="0.04 0.03 0.2"/>',
    "hand": '<capsule radius="0.04" length="0.1"/>',
    "finger": '<sphere radius="0.03"/>',
}
CUBE = "".join(f"v {x} {y} {z}\n" for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)) + "".join(
    f"f {face}\n" for face in ("1 2 4 3", "5 7 8 6", "1 5 6 2", "3 4 8 7", "1 3 7 5", "2 6 8 4")
)
"""Of edges 2, which the mesh of a link scales."""
AXES = ("0 1 0", "1 0 0", "0 1 0", "1 0 0")


@pytest.fixture(scope="module")
def arm(tmp_path_factory) -> Path:
    """A chain of four links, each 0.4 m above the other, on a world without shapes."""
    links = ['<link name="world"/>']
    for k, ((name, geometry), axis) in enumerate(zip(SHAPES.items(), AXES, strict=True)):
        links.append(
            f'<link name="{name}"><inertial><mass value="1"/><origin xyz="0 0 0.2"/>'
            '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'
            f'<collision><origin xyz="0.01 0 0.2" rpy="0 0.1 0"/><geometry>{geometry}</geometry></collision></link>'
            f'<joint name="j{k}" type="revolute"><parent link="{["world", *SHAPES][k]}"/><child link="{name}"/>'
            f'<origin xyz="0 0 {0.4 if k else 1.0}"/><axis xyz="{axis}"/><limit lower="-3" upper="3" effort="50" '
            'velocity="2"/></joint>'
        )
    path = tmp_path_factory.mktemp("arm") / "arm.urdf"
    (path.parent / "box.obj").write_text(CUBE)
    path.write_text(f'<robot name="arm">{"".join(links)}</robot>')
    return path


def clearance_of(path: Path, **options) -> Clearance:
    tree = nd.load_urdf(path)
    joints = MovingJoints(tree, tuple(range(tree.n_links)), np.full(tree.nq, 0.1))
    found = Clearance.of(joints, solids(path, tree)[0], options.get("floor"), (), options.get("apart", 0.01))
    assert found is not None
    return found


def geometry(name: str):
    sizes = {"upper": coal.Cylinder(0.05, 0.4), "fore": coal.Box(0.08, 0.06, 0.4), "hand": coal.Capsule(0.04, 0.1)}
    return sizes.get(name, coal.Sphere(0.03))


def by_coal(tree: nd.KinematicTree, q: np.ndarray, height: float = 0.1) -> dict[frozenset[str], float]:
    """Distances of links, and from a floor."""
    R, o = poses(tree, q)
    turn = np.array([[np.cos(0.1), 0, np.sin(0.1)], [0, 1, 0], [-np.sin(0.1), 0, np.cos(0.1)]])
    placed = [
        (name, geometry(name), coal.Transform3s(R[i] @ turn, o[i] + R[i] @ [0.01, 0, 0.2]))
        for i, name in enumerate(tree.names)
    ]
    floor = coal.Halfspace(np.array([0.0, 0.0, 1.0]), height)
    found = {}
    for k, (name, shape, place) in enumerate(placed):
        for other, another, there in placed[k + 2 :]:
            request, result = coal.DistanceRequest(), coal.DistanceResult()
            found[frozenset((name, other))] = coal.distance(shape, place, another, there, request, result)
        request, result = coal.DistanceRequest(), coal.DistanceResult()
        found[frozenset((name, "the floor"))] = coal.distance(shape, place, floor, coal.Transform3s(), request, result)
    return found


def test_distances_are_those_of_coal(arm):
    clearance = clearance_of(arm, floor=0.1)
    tree, seen = clearance.joints.tree, 0
    names = [frozenset(clearance.names[k] for k in pair) for pair in clearance.pairs]
    assert set(names) == set(by_coal(tree, np.zeros(4)))
    Q = tree.random_configurations(300, 0)
    near = clearance.nearest(Q, 0.3)
    for sample, pair, distance in zip(near.sample, near.pair, near.distance, strict=True):
        expected = by_coal(tree, Q[sample])[names[pair]]
        if distance > 0:
            assert distance == pytest.approx(expected, abs=1e-5)
            seen += 1
        else:
            assert expected < 1e-5
    assert seen > 100
    for k, q in enumerate(Q):
        less = {names[p] for p in near.pair[near.sample == k]}
        assert less >= {name for name, distance in by_coal(tree, q).items() if distance < 0.299}


def test_derivatives_are_those_of_differences(arm):
    clearance = clearance_of(arm, floor=0.1)
    Q, step = clearance.joints.tree.random_configurations(200, 1), 1e-5
    zero = np.zeros(Q.shape)
    ratios, pulled = clearance.of_motion(Q, zero, zero)
    assert (ratios > 0).sum() > 30
    factors = np.random.default_rng(0).normal(size=ratios.shape)
    found = pulled(factors)
    assert not found[1:].any()
    for k in range(4):
        up, down = Q.copy(), Q.copy()
        up[:, k] += step
        down[:, k] -= step
        slope = (clearance.of_motion(up, zero, zero)[0] - clearance.of_motion(down, zero, zero)[0]) / (2 * step)
        expected = (factors * slope).sum(axis=1)
        is_smooth = (np.abs(slope) < 2 / REACH).all(axis=1) & ~((ratios > 0) & (ratios < 1e-3)).any(axis=1)
        assert np.median(np.abs(found[0][is_smooth, k] - expected[is_smooth])) < 1e-5
        assert np.mean(np.abs(found[0][:, k] - expected) < 1e-2 * (1 + np.abs(expected))) > 0.9


@pytest.mark.long
def test_an_exciting_motion_keeps_apart(arm):
    """Held against coal at four times as many samples; without shapes it goes through the floor."""
    tree, floor = nd.load_urdf(arm), 0.9
    options = {"duration": 3.0, "harmonics": 2, "starts": 1, "progress": False, "torque": np.inf, "speed": 4.0}
    free = nd.exciting_motion(tree, ["inertias"], **options)
    kept = nd.exciting_motion(tree, ["inertias"], shapes=arm, floor=floor, apart=0.02, **options)
    t = np.linspace(0, 3, 321)
    of_free, of_kept = (min(min(by_coal(tree, q, floor).values()) for q in each.at(t)[0]) for each in (free, kept))
    assert of_free < 0
    assert 0.0199 < of_kept < 0.1
    distance, between = kept.clearance
    assert distance == pytest.approx(of_kept, abs=1e-3)
    assert between.endswith("the floor")
    assert kept.value > kept.of_random.max()
    assert free.clearance is None
    assert f"{between} come as near as" in str(kept)
    assert "Not known: what the robot could hit" in str(free)
