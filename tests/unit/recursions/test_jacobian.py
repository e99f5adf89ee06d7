"""Jacobians of frames: velocities and accelerations of frames, the derivative, and the matrices that they sum up to."""

from __future__ import annotations

import numpy as np
import pytest

from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import InputError, UnknownModelNameError
from nori_dyn.model.kinematics import velocities
from nori_dyn.model.tree import WORLD, Frame
from nori_dyn.program.functions import compiled
from nori_dyn.recursions.coriolis import FACTORISATIONS, coriolis
from nori_dyn.recursions.crba import crba
from nori_dyn.recursions.jacobian import jacobian, jacobian_rate
from nori_dyn.recursions.rnea import inertial_force
from tests.oracles import rodrigues
from tests.tolerances import DIFFERENCES, EXACT, RECURSION, ROUNDING, assert_close
from tests.trees import TREES
from tests.unit.recursions.test_coriolis import motion_cross, rate
from tests.unit.recursions.test_rnea import motions

N = 8


@pytest.fixture(params=TREES)
def case(request):
    """Return a tree with a frame away from its links, and its motions."""
    tree, truth = TREES[request.param], motions(request.param)[0]
    tool = Frame(
        tree.n_links - 1, Transform(rodrigues(np.array([0.6, 0.0, 0.8]), np.array(0.7)), np.array([0.1, 0.2, 0.3]))
    )
    return tree.replace(frames={**tree.frames, "the tool": tool}), truth.q[:, :N], truth.qd[:, :N], truth.qdd[:, :N]


def test_it_maps_joint_velocities_to_those_of_frames(case):
    tree, q, qd, _ = case
    for name in (*tree.names, "the tool"):
        frame = tree.frame(name)
        J = jacobian(tree, q, name)
        for k in range(N):
            v = frame.X.apply_motion(velocities(tree, q[:, k], qd[:, k]).v[frame.link])
            assert_close(J[..., k] @ qd[:, k], v, RECURSION)


def test_its_derivative_is_that_along_the_motion(case):
    tree, q, qd, _ = case
    for name in (tree.names[0], tree.names[-1], "the tool"):
        differences = rate(tree, lambda x, name=name: jacobian(tree, x, name), q, qd)
        assert_close(jacobian_rate(tree, q, qd, name), differences, DIFFERENCES)


def test_its_transpose_takes_wrenches_to_joints(case):
    """A body of unit inertia that accelerates: the joints carry J^T of the wrench that accelerates it."""
    tree, q, _, qdd = case
    total = sum(
        np.einsum("ijN,ik,klN,lN->jN", J, I, J, qdd)
        for J, I in zip([jacobian(tree, q, name) for name in tree.names], tree.I, strict=True)
    )
    assert_close(total, inertial_force(tree, q, qdd), RECURSION)


def test_the_inertia_matrix_is_the_sum_over_bodies(case):
    """Echeandia and Wensing (29)."""
    tree, q, _, _ = case
    for k in range(N):
        J = [jacobian(tree, q[:, k], name) for name in tree.names]
        assert_close(sum(Jk.T @ I @ Jk for Jk, I in zip(J, tree.I, strict=True)), crba(tree, q[:, k]), RECURSION)


@pytest.mark.parametrize("factorisation", FACTORISATIONS)
def test_the_coriolis_matrix_is_the_sum_over_bodies(case, factorisation):
    """Echeandia and Wensing (30) and (31): J-dot is J-ring + (v x) J."""
    tree, q, qd, _ = case
    for k in range(N):
        C = np.zeros((tree.nv, tree.nv))
        for name, I in zip(tree.names, tree.I, strict=True):
            J, ring = jacobian(tree, q[:, k], name), jacobian_rate(tree, q[:, k], qd[:, k], name)
            v = J @ qd[:, k]
            C += J.T @ (FACTORISATIONS[factorisation](v, I) @ J + I @ (ring + motion_cross(v) @ J))
        assert_close(coriolis(tree, q[:, k], qd[:, k], factorisation).C, C, RECURSION)


def test_a_batch_is_each_one(case):
    tree, q, qd, _ = case
    J, rates = jacobian(tree, q, "the tool"), jacobian_rate(tree, q, qd, "the tool")
    for k in range(N):
        assert_close(J[..., k], jacobian(tree, q[:, k], "the tool"), ROUNDING)
        assert_close(rates[..., k], jacobian_rate(tree, q[:, k], qd[:, k], "the tool"), ROUNDING)


def test_it_can_be_compiled():
    tree, truth = TREES["mixed_8"], motions("mixed_8")[0]

    def of_last(tree, q, qd):
        return jacobian(tree, q, tree.names[-1]), jacobian_rate(tree, q, qd, tree.names[-1])

    program = compiled(of_last, tree, backend="numpy")
    q, qd = truth.q[:, 0], truth.qd[:, 0]
    for found, expected in zip(program(q, qd), of_last(tree, q, qd), strict=True):
        assert_close(found, expected, RECURSION)


def test_frames_that_do_not_move_have_none():
    tree = TREES["mixed_8"]
    tree = tree.replace(frames={**tree.frames, "the floor": Frame(WORLD, Transform.identity())})
    q = tree.neutral_configuration()
    assert_close(jacobian(tree, q, "the floor"), np.zeros((6, tree.nv)), EXACT)
    assert_close(jacobian_rate(tree, q, None, "the floor"), np.zeros((6, tree.nv)), EXACT)


def test_an_unknown_frame_is_named():
    tree = TREES["one_body"]
    with pytest.raises(UnknownModelNameError, match=f"'elbow'.*{tree.names[0]}"):
        jacobian(tree, tree.neutral_configuration(), "elbow")
    with pytest.raises(InputError, match="q"):
        jacobian(tree, np.zeros(9), tree.names[0])
