"""The centre of mass and the centroidal momentum, against Pinocchio and differences; the zero-moment point."""

from __future__ import annotations

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError, ModelError
from nori_dyn.recursions import centroidal, momentum_rate, rnea, zmp
from tests.in_pinocchio import FLIP, in_pinocchio
from tests.oracles import derivative, masses, poses
from tests.peers import pin
from tests.robots import load
from tests.tolerances import DIFFERENCES, PEER, RECURSION, ROUNDING, assert_close
from tests.trees import FLOATING, TREES, random_state
from tests.unit.recursions.test_coriolis import STEP

MOVING = {name: tree for name, tree in TREES.items() if name != "fixed_joints"}  # of which parts are the world's
ROBOTS = MOVING | FLOATING


def robots(names=("anymal", "talos_full", "panda")):
    yield from ROBOTS.values()
    yield from (load(name, "fixed" if name == "panda" else "floating") for name in names)


def test_it_is_that_of_pinocchio():
    for tree in robots():
        q, qd, qdd, _ = random_state(tree, 1)
        found = centroidal(tree, q, qd)
        model, _, q_order, v_order = in_pinocchio(tree)
        data, theirs = model.createData(), np.zeros((6, tree.nv))
        pin.ccrba(model, data, q[q_order], qd[v_order])
        theirs[:, v_order] = np.asarray(data.Ag).reshape(6, -1)[FLIP]
        assert_close(found.A, theirs, PEER)
        assert_close(found.h, np.concatenate([data.hg.angular, data.hg.linear]), PEER)
        pin.centerOfMass(model, data, q[q_order], qd[v_order])
        assert_close(found.com, data.com[0], PEER)
        assert_close(found.com_velocity, data.vcom[0], PEER)
        jacobian = np.zeros((3, tree.nv))
        jacobian[:, v_order] = np.asarray(pin.jacobianCenterOfMass(model, data, q[q_order])).reshape(3, -1)
        assert_close(found.A[3:] / sum(body.mass for body in masses(tree)), jacobian, PEER)
        if not {"planar", "cylindrical"} & {joint.kind for joint in tree.joints}:  # composites: not in its rate
            rate = pin.computeCentroidalMomentumTimeVariation(model, data, q[q_order], qd[v_order], qdd[v_order])
            assert_close(found.A @ qdd + found.bias, np.concatenate([rate.angular, rate.linear]), PEER)


def test_the_bias_is_the_rate_of_the_momentum_without_accelerations():
    for tree in robots(("anymal",)):
        q, qd, *_ = random_state(tree, 2)
        found = derivative(lambda t, tree=tree, q=q, qd=qd: centroidal(tree, tree.integrate(q, qd, t), qd).h, STEP)
        assert_close(centroidal(tree, q, qd).bias, found, DIFFERENCES)


def test_external_wrenches_and_weight_are_the_rate_of_the_momentum():
    """For the accelerations of a floating robot with what its joints give and with wrenches on all links."""
    for tree in FLOATING.values():
        q, qd, tau, fx = random_state(tree, 3)
        tree = tree.replace(gravity=(1.0, -2.0, -9.0))
        free = next(i for i, joint in enumerate(tree.joints) if joint.kind == "free")
        tau[tree.v_slices[free]] = 0
        qdd = nd.aba(tree, q, qd, tau, fx)
        found = centroidal(tree, q, qd)
        assert_close(momentum_rate(tree, q, fx), found.A @ qdd + found.bias, RECURSION)


def test_far_from_the_origin_it_is_the_same():
    tree = FLOATING["arms"]
    q, qd, _, fx = random_state(tree, 4)
    there = q + np.concatenate([[1e6, -1e6, 1e6], np.zeros(tree.nq - 3)])
    near, far = centroidal(tree, q, qd), centroidal(tree, there, qd)
    for name in ("com_velocity", "A", "h", "bias"):
        assert_close(getattr(far, name), getattr(near, name), ROUNDING)
    assert_close(momentum_rate(tree, there, fx), momentum_rate(tree, q, fx), ROUNDING)


@pytest.mark.parametrize("height", [0.0, -0.3])
def test_about_the_zero_moment_point_wrenches_have_a_couple_about_the_vertical_alone(height):
    for tree in FLOATING.values():
        tree = tree.replace(gravity=(0.5, -1.0, -9.0))
        up = -np.array(tree.gravity) / np.linalg.norm(tree.gravity)
        q, _, _, fx = random_state(tree, 5)
        point = zmp(tree, q, fx, height)
        assert_close(up @ point, height, RECURSION)
        couple = np.zeros(3)
        for R, p, wrench in zip(*poses(tree, q), fx, strict=True):
            couple += R @ wrench[:3] + np.cross(p - point, R @ wrench[3:])
        assert_close(np.cross(couple, up) / np.abs(fx).max(), np.zeros(3), RECURSION)


def test_of_a_robot_at_rest_it_is_below_the_centre_of_mass():
    tree = load("anymal", "floating")
    q = tree.random_configuration(6)
    q[3:7] = [0, 0, 0, 1]
    fx = np.zeros((tree.n_links, 6))
    fx[0] = rnea(tree, q, np.zeros(tree.nv), np.zeros(tree.nv))[:6]  # what holds it by its base
    assert_close(zmp(tree, q, fx, 0.2), [*centroidal(tree, q, None).com[:2], 0.2], RECURSION)
    assert not np.isfinite(zmp(tree, q, 0 * fx)).any()


def test_what_it_is_not_for_is_refused():
    tree = FLOATING["arms"]
    q, fx = tree.neutral_configuration(), np.zeros((tree.n_links, 6))
    with pytest.raises(ModelError, match="has no mass"):
        centroidal(tree.replace(I=0 * tree.I), q, None)
    with pytest.raises(ModelError, match="has no gravity"):
        zmp(tree.replace(gravity=(0.0, 0.0, 0.0)), q, fx)
    with pytest.raises(InputError, match="the height is nan"):
        zmp(tree, q, fx, float("nan"))
    arm = nd.autotree(2)
    for function in (zmp, momentum_rate):
        with pytest.raises(ModelError, match=r"is held to the world by joint 'joint1'.*base='floating'"):
            function(arm, np.zeros(2), np.zeros((2, 6)))
