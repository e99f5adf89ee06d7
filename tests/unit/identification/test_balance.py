"""Balance: cones against linear programs, and the wrench of the ground by Pinocchio."""

import numpy as np
import pytest

from nori_dyn.identification.moving_joints import MovingJoints
from nori_dyn.identification.surroundings import SHARE, Balance, level_axes, sole
from tests.peers import pin
from tests.robots import Pinocchio, load
from tests.standing import forces_of_contacts, robot
from tests.tolerances import PEER, assert_close

AXES = np.array([[0.0, 0.8, -0.6], [-1.0, 0.0, 0.0], [0.0, 0.6, 0.8]])
UP = AXES[2]


def soles(seed: int) -> list[np.ndarray]:
    """Two rectangles at different heights across a direction, or three points."""
    rng = np.random.default_rng(seed)
    if seed % 3 == 2:
        return [p[None] for p in rng.uniform(-1, 1, (3, 3))]
    corners = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) * [0.1, 0.05]
    return [corners @ AXES[:2] + place for place in rng.uniform(-0.3, 0.3, (2, 3))]


def heavy(seed: int) -> Balance:
    """A floating robot whose weight is along that direction, on such soles."""
    tree = robot().replace(gravity=tuple(-9.81 * UP))
    still = tree.random_configuration(seed)
    found = Balance.of(MovingJoints(tree, (1, 2, 3), still), soles(seed), 0.6)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(6))
def test_faces_are_those_of_what_forces_of_contacts_add_up_to(seed):
    balance, rng, n_within = heavy(seed), np.random.default_rng(seed), 0
    axes = level_axes(robot().replace(gravity=tuple(-9.81 * UP)))
    weight = np.concatenate([np.cross(np.mean([each.mean(axis=0) for each in soles(seed)], axis=0), UP), UP])
    within = [each.mean(axis=0) + SHARE * (each - each.mean(axis=0)) for each in soles(seed)]
    for size in np.repeat([0.02, 0.1, 0.3], 40):
        w = weight + size * rng.normal(size=6)
        is_possible = forces_of_contacts(w, np.concatenate(within), axes, SHARE * 0.6, 4) is not None
        assert (balance.faces @ w).max() <= 0 if is_possible else (balance.faces @ w).max() > 0
        n_within += is_possible
    assert 10 < n_within < 110


def test_points_in_a_line_hold_no_robot():
    tree = robot()
    joints = MovingJoints(tree, (1,), tree.neutral_configuration())
    assert Balance.of(joints, [np.array([[x, 0.0, 0.0]]) for x in (0.0, 1.0)], 0.5) is None


def test_the_sole_is_the_flat_of_a_foot():
    rng = np.random.default_rng(0)
    shape = np.vstack([rng.uniform([-0.1, -0.04, 0.02], [0.1, 0.04, 0.2], (200, 3)), [[0.1, 0.04, 0.0]]])
    flat = np.array([[x, y, 0.0] for x in (-0.1, 0.1) for y in (-0.04, 0.04)])
    found = sole(np.vstack([shape, flat]), np.array([0.0, 0.0, 1.0]))
    assert_close(found[np.lexsort(found.T)], flat[np.lexsort(flat.T)], PEER)
    tip = sole(np.array([[0.1, 0.2, 0.0], [0.1, 0.3, 0.1]]), np.array([0.0, 0.0, 1.0]))  # of a foot on its edge
    assert_close(tip, np.tile([0.1, 0.2, 0.0], (4, 1)), PEER)


def test_the_wrench_of_the_ground_is_pinocchios_rate_of_momentum():
    tree = load("solo12", "floating")
    peer, rng = Pinocchio.of("solo12", "floating", tree), np.random.default_rng(0)
    balance = Balance.of(MovingJoints(tree, (1, 2), tree.neutral_configuration()), [0.1 * np.eye(3)], 0.5)
    for _ in range(5):
        q, (qd, qdd) = tree.random_configuration(rng), rng.normal(size=(2, tree.nv))
        pin.computeCentroidalMomentumTimeVariation(peer.model, peer.data, *peer.state(q, qd, qdd))
        force = peer.data.dhg.linear - pin.computeTotalMass(peer.model) * peer.model.gravity.linear
        couple = peer.data.dhg.angular + np.cross(peer.data.com[0], force)
        assert_close(balance.wrench.value(q, qd, qdd), np.concatenate([couple, force]), PEER)
