"""Jacobians of frames: velocities and accelerations of frames, the derivative, and the matrices that they sum up to."""

import numpy as np
import pytest

from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import UnknownModelNameError
from nori_dyn.model.kinematics import velocities
from nori_dyn.model.tree import WORLD, Frame
from nori_dyn.program.functions import compiled
from nori_dyn.recursions.coriolis import FACTORISATIONS, coriolis
from nori_dyn.recursions.crba import crba
from nori_dyn.recursions.jacobian import jacobian, jacobian_rate
from nori_dyn.recursions.rnea import inertial_force
from tests.oracles import rodrigues
from tests.tolerances import DIFFERENCES, EXACT, RECURSION, assert_close
from tests.trees import TREES
from tests.unit.recursions.test_coriolis import motion_cross, rate
from tests.unit.recursions.test_rnea import motions

N = 4


@pytest.fixture(params=TREES)
def case(request):
    """Return a tree with a frame away from its links, and its motions."""
    tree, truth = TREES[request.param], motions(request.param)[0]
    tool = Frame(
        tree.n_links - 1, Transform(rodrigues(np.array([0.6, 0.0, 0.8]), np.array(0.7)), np.array([0.1, 0.2, 0.3]))
    )
    return tree.replace(frames={**tree.frames, "the tool": tool}), truth.q[:, :N], truth.qd[:, :N], truth.qdd[:, :N]


def test_it_maps_joint_velocities_to_those_of_frames_and_its_derivative_is_that_along_the_motion(case):
    tree, q, qd, _ = case
    for name in (*tree.names, "the tool"):
        frame, J = tree.frame(name), jacobian(tree, q, name)
        differences = rate(tree, lambda x, name=name: jacobian(tree, x, name), q, qd)
        assert_close(jacobian_rate(tree, q, qd, name), differences, DIFFERENCES)
        for k in range(N):
            v = frame.X.apply_motion(velocities(tree, q[:, k], qd[:, k]).v[frame.link])
            assert_close(J[..., k] @ qd[:, k], v, RECURSION)


def test_matrices_are_sums_over_bodies(case):
    """Echeandia and Wensing (29) to (31): J-dot is J-ring + (v x) J.

    By J^T the joints carry the wrench that accelerates each body.
    """
    tree, q, qd, qdd = case
    for k in range(N):
        M, C = np.zeros((tree.nv, tree.nv)), dict.fromkeys(FACTORISATIONS, 0)
        for name, I in zip(tree.names, tree.I, strict=True):
            J, ring = jacobian(tree, q[:, k], name), jacobian_rate(tree, q[:, k], qd[:, k], name)
            v = J @ qd[:, k]
            M += J.T @ I @ J
            for factorisation, factor in FACTORISATIONS.items():
                C[factorisation] += J.T @ (factor(v, I) @ J + I @ (ring + motion_cross(v) @ J))
        assert_close(M, crba(tree, q[:, k]), RECURSION)
        assert_close(M @ qdd[:, k], inertial_force(tree, q[:, k], qdd[:, k]), RECURSION)
        for factorisation, expected in C.items():
            assert_close(coriolis(tree, q[:, k], qd[:, k], factorisation).C, expected, RECURSION)


def test_it_can_be_compiled():
    tree, truth = TREES["mixed_8"], motions("mixed_8")[0]

    def of_last(tree, q, qd):
        return jacobian(tree, q, tree.names[-1]), jacobian_rate(tree, q, qd, tree.names[-1])

    program = compiled(of_last, tree, backend="numpy")
    q, qd = truth.q[:, 0], truth.qd[:, 0]
    for found, expected in zip(program(q, qd), of_last(tree, q, qd), strict=True):
        assert_close(found, expected, RECURSION)


def test_frames_that_do_not_move_have_none_and_an_unknown_one_is_named():
    tree = TREES["mixed_8"].replace(frames={"the floor": Frame(WORLD, Transform.identity())})
    q = tree.neutral_configuration()
    assert_close(jacobian(tree, q, "the floor"), np.zeros((6, tree.nv)), EXACT)
    assert_close(jacobian_rate(tree, q, None, "the floor"), np.zeros((6, tree.nv)), EXACT)
    with pytest.raises(UnknownModelNameError, match=f"'elbow'.*{tree.names[0]}"):
        jacobian(tree, q, "elbow")
