"""Exciting motions of humanoids on both feet, judged by Pinocchio: forces within friction cones at the soles."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import nori_dyn as nd
from nori_dyn.identification import motion_search
from tests.peers import pin
from tests.robots import ROBOTS, Pinocchio, load
from tests.standing import forces_of_contacts

FRICTION = 0.5
OPEN = "whether contacts slip or tip over"

STANDING = {
    "talos_reduced": (
        ("left_sole_link", "right_sole_link"),
        {f"leg_{side}_{k}_joint": q for side in ("left", "right") for k, q in ((3, -0.4), (4, 0.8), (5, -0.4))},
        ("torso_1_joint", "torso_2_joint"),
    ),
    "iCubGenova04": (
        ("l_sole", "r_sole"),
        {f"{s}_{name}": q for s in "lr" for name, q in (("hip_pitch", 0.4), ("knee", -0.8), ("ankle_pitch", -0.4))},
        ("torso_pitch", "torso_roll"),
    ),
}
"""Soles, bent knees, and joints that move beside those of the legs."""


def corners(name: str, sole: str) -> np.ndarray:
    """Where the lowest millimetres of the collision shapes at a sole are (n, 3), in the frame of its joint."""
    path = ROBOTS[name]
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    folders = [str(folder) for folder in path.parents]
    shapes = pin.buildGeomFromUrdf(model, str(path), pin.GeometryType.COLLISION, package_dirs=folders)
    frame = model.frames[model.getFrameId(sole)]
    points = []
    for each in shapes.geometryObjects:
        if each.parentJoint == frame.parentJoint:
            vertices = each.geometry.vertices()
            points.append(vertices @ each.placement.rotation.T + each.placement.translation)
    return np.vstack(points)


def flat(points: np.ndarray) -> np.ndarray:
    """The hull of the lowest five millimetres of a foot."""
    low = points[points[:, 2] < points[:, 2].min() + 0.005]
    return low[ConvexHull(low[:, :2]).vertices]


@pytest.mark.long
@pytest.mark.parametrize("name", STANDING)
def test_a_humanoid_stands_in_balance(name, monkeypatch):
    soles, bent, others = STANDING[name]
    tree = load(name, "floating")
    at = tree.neutral_configuration()
    for joint, q in bent.items():
        at[tree.q_slices[tree.joint(joint)]] = q
    legs = [joint for joint in tree.joint_names if joint.startswith(tuple({each[:6] for each in bent}))]
    monkeypatch.setattr(motion_search, "RANDOM", 20)
    monkeypatch.setattr(motion_search, "STEPS", 20)
    options = {"joints": [*legs, *others], "at": at, "contacts": soles, "shapes": ROBOTS[name], "starts": 1}
    masses = [f"m:{link}" for link in tree.names]
    peer, t = Pinocchio.of(name, "floating", tree), np.linspace(0, 3, 301)
    feet = [(peer.model.frames[peer.model.getFrameId(sole)].parentJoint, corners(name, sole)) for sole in soles]

    def tips(motion) -> list[bool]:
        """At which samples no forces within friction cones at the soles are those of the motion."""
        found, first = [], None
        for q, qd, qdd in zip(*motion.at(t), strict=True):
            pin.computeCentroidalMomentumTimeVariation(peer.model, peer.data, *peer.state(q, qd, qdd))
            force = peer.data.dhg.linear - pin.computeTotalMass(peer.model) * peer.model.gravity.linear
            couple = peer.data.dhg.angular + np.cross(peer.data.com[0], force)
            placed = [c @ peer.data.oMi[i].rotation.T + peer.data.oMi[i].translation for i, c in feet]
            first = placed if first is None else first
            np.testing.assert_allclose(np.vstack(placed), np.vstack(first), atol=1e-6)  # they stand still
            w = np.concatenate([couple, force]) / force[2]
            found.append(forces_of_contacts(w, np.vstack([flat(p) for p in first]), np.eye(3), FRICTION, 8) is None)
        return found

    kept = nd.exciting_motion(tree, masses, 3.0, 2, **options, progress=False)
    assert not any(tips(kept))
    assert 0.9 < kept.balance < 1.0
    assert OPEN not in kept.unknown
    free = nd.exciting_motion(tree, masses, 3.0, 2, **options, progress=False, ground_friction=None)
    assert any(tips(free))
    assert OPEN in free.unknown
    assert kept.value > kept.of_random.max()
