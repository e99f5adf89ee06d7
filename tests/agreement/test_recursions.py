"""The classical algorithms on real robots, against Pinocchio's, and the inertia matrix against MuJoCo's too."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from nori_dyn.errors import SingularSystemError
from nori_dyn.recursions.aba import aba, hybrid_dynamics
from nori_dyn.recursions.coriolis import coriolis
from nori_dyn.recursions.crba import crba, inertia_forward_dynamics
from nori_dyn.recursions.jacobian import jacobian, jacobian_rate
from nori_dyn.recursions.minverse import minverse
from nori_dyn.recursions.rnea import bias_force, coriolis_force, gravity_force, inertial_force, rnea
from tests.agreement.test_mujoco import MODELS, model_of
from tests.agreement.test_pinocchio import EVERY, ILL_CONDITIONED, MASSLESS, robot
from tests.peers import mujoco, pin
from tests.robots import (
    ROBOTS,
    mujoco_joint,
    mujoco_state,
    pinocchio_model,
    pinocchio_wrenches,
    to_pinocchio,
    velocity_map,
)
from tests.systems import random_states
from tests.tolerances import ILL_SOLVED, SOLVED, assert_close

N_STATES = 100


class Peer:
    """Random states of a robot with the batch axis last, and Pinocchio's answers at them, made when asked for."""

    def __init__(self, name: str, base: str) -> None:
        self.name = name
        self.tree = robot(name, base)
        self.model = pinocchio_model(ROBOTS[name], base)
        self.data = self.model.createData()
        assert "planar" not in {joint.kind for joint in self.tree.joints}
        self.P = velocity_map(self.tree, self.model, self.tree.neutral_configuration())
        truth = random_states(self.tree, N_STATES, seed=len(name))
        self.states = [to_pinocchio(self.tree, self.model, q, qd) for q, qd in zip(truth.q, truth.qd, strict=True)]
        self.wrenches = [pinocchio_wrenches(self.tree, self.model, fx) for fx in truth.fx]
        self.q, self.qd, self.qdd, _, self.fx = (np.moveaxis(x, 0, -1) for x in truth)
        rates = (self.P @ self.qdd).T
        found = [
            (
                pin.rnea(self.model, self.data, q, v, rate, wrenches),
                pin.rnea(self.model, self.data, q, v, rate),
                pin.computeGeneralizedGravity(self.model, self.data, q),
                pin.nonLinearEffects(self.model, self.data, q, v),
            )
            for (q, v), rate, wrenches in zip(self.states, rates, self.wrenches, strict=True)
        ]
        self.tau, self.tau_free, self.gravity, self.bias = (
            self.P.T @ np.array(forces).T for forces in zip(*found, strict=True)
        )

    @property
    def tolerance(self):
        return ILL_SOLVED if self.name in ILL_CONDITIONED else SOLVED

    def forward(self, tau):
        """Return qdd (nv, N) by Pinocchio's aba."""
        torques = np.linalg.solve(self.P.T, tau).T
        cases = zip(self.states, torques, self.wrenches, strict=True)
        rates = [pin.aba(self.model, self.data, q, v, torque, fx) for (q, v), torque, fx in cases]
        return np.linalg.solve(self.P, np.array(rates).T)

    def form(self, matrices):
        """Return P^T M P (nv, nv, N) of Pinocchio's matrices, one a state."""
        return np.moveaxis(self.P.T @ np.array(matrices) @ self.P, 0, -1)

    def H(self):
        return self.form([_symmetric(pin.crba(self.model, self.data, q)) for q, _ in self.states])

    def H_inverse(self):
        P_inverse = np.linalg.inv(self.P)
        found = [_symmetric(pin.computeMinverse(self.model, self.data, q)) for q, _ in self.states]
        return np.moveaxis(P_inverse @ np.array(found) @ P_inverse.T, 0, -1)

    def C(self):
        return self.form([pin.computeCoriolisMatrix(self.model, self.data, q, v).copy() for q, v in self.states])


def _symmetric(M):
    """Return a copy of a matrix of which Pinocchio promises the upper triangle only."""
    return np.triu(M) + np.triu(M, 1).T


@lru_cache(maxsize=4)
def peer_of(name: str, base: str) -> Peer:
    return Peer(name, base)


@pytest.fixture(scope="module", params=EVERY, ids="-".join)
def peer(request):
    return peer_of(*request.param)


def forward_dynamics_exists(peer):
    if peer.name in MASSLESS:
        pytest.skip(f"{peer.name} has links without mass: see test_massless_links_are_named")


def weightless(tree):
    return [tree.joint_names[i] for i in range(tree.n_links) if not tree.I[list(tree.subtree(i))].any()]


def test_inverse_dynamics(peer):
    assert_close(rnea(peer.tree, peer.q, peer.qd, peer.qdd, peer.fx), peer.tau, SOLVED)
    assert_close(rnea(peer.tree, peer.q, peer.qd, peer.qdd), peer.tau_free, SOLVED)


def test_parts_of_inverse_dynamics(peer):
    tree, q, qd = peer.tree, peer.q, peer.qd
    assert_close(gravity_force(tree, q), peer.gravity, SOLVED)
    assert_close(bias_force(tree, q, qd), peer.bias, SOLVED)
    assert_close(coriolis_force(tree, q, qd), peer.bias - peer.gravity, SOLVED)
    assert_close(inertial_force(tree, q, peer.qdd), peer.tau_free - peer.bias, SOLVED)


@pytest.mark.parametrize("algorithm", [aba, inertia_forward_dynamics])
def test_forward_dynamics(peer, algorithm):
    forward_dynamics_exists(peer)
    tau = peer.tau * np.random.default_rng(7).uniform(0.9, 1.1, size=peer.tau.shape)
    assert_close(algorithm(peer.tree, peer.q, peer.qd, tau, peer.fx), peer.forward(tau), peer.tolerance)


def test_hybrid_dynamics_of_a_random_half(peer):
    tree = peer.tree
    names = np.random.default_rng(3).permutation(tree.joint_names).tolist()
    led = {*names[: (len(names) + 1) // 2], *weightless(tree)}
    given = np.zeros(tree.nv, dtype=bool)
    for name in led:
        given[tree.v_slices[tree.joint(name)]] = True
    tau = np.where(given[:, None], 1e3, peer.tau)
    qdd = np.where(given[:, None], peer.qdd, 1e3)
    found = hybrid_dynamics(tree, peer.q, peer.qd, tau, qdd, led, peer.fx)
    assert_close(found.tau, peer.tau, peer.tolerance)
    assert_close(found.qdd, peer.qdd, peer.tolerance)


def test_inertia_matrix(peer):
    assert_close(crba(peer.tree, peer.q), peer.H(), SOLVED)


def test_inverse_of_the_inertia_matrix(peer):
    forward_dynamics_exists(peer)
    assert_close(minverse(peer.tree, peer.q), peer.H_inverse(), peer.tolerance)


def test_jacobians_of_links(peer):
    """Velocities and accelerations of links as Pinocchio has them, linear first there."""
    tree, model, data = peer.tree, peer.model, peer.data
    turned = [3, 4, 5, 0, 1, 2]
    for k in range(5):
        q, v = peer.states[k]
        pin.computeJointJacobiansTimeVariation(model, data, q, v)
        for name in (tree.names[0], tree.names[tree.n_links // 2], tree.names[-1]):
            if not model.existFrame(name, pin.BODY):
                continue
            frame = model.getFrameId(name, pin.BODY)
            J = pin.getFrameJacobian(model, data, frame, pin.LOCAL)[turned] @ peer.P
            rate = pin.getFrameJacobianTimeVariation(model, data, frame, pin.LOCAL)[turned] @ peer.P
            qd = peer.qd[:, k]
            assert_close(jacobian(tree, peer.q[:, k], name), J, SOLVED)
            assert_close(jacobian_rate(tree, peer.q[:, k], qd, name) @ qd, rate @ qd, SOLVED)


def test_coriolis_matrix(peer):
    found = coriolis(peer.tree, peer.q, peer.qd)
    expected = peer.C()
    assert_close(found.C, expected, SOLVED)
    assert_close(found.M, peer.H(), SOLVED)
    assert_close(found.Mdot, expected + np.swapaxes(expected, 0, 1), SOLVED)


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", MASSLESS)
def test_massless_links_are_named(name, base):
    peer = peer_of(name, base)
    tree, names = peer.tree, weightless(peer.tree)
    assert names
    q, qd, tau = peer.q[:, 0], peer.qd[:, 0], peer.tau[:, 0]
    for find in (lambda: aba(tree, q, qd, tau), lambda: minverse(tree, q)):
        with pytest.raises(SingularSystemError, match="moves no inertia") as raised:
            find()
        assert any(f"joint '{joint}'" in str(raised.value) for joint in names)
        assert set(raised.value.undetermined) <= {f"qdd:{joint}" for joint in names}


@pytest.fixture(scope="module", params=MODELS)
def mujoco_peer(request, tmp_path_factory):
    """Return a tree, random configurations (nq, N), and MuJoCo's inertia matrices (nv, nv, N) in the tree's speeds."""
    tree, model = model_of(request.param, tmp_path_factory.mktemp("mjcf"))
    truth, data = random_states(tree, N_STATES, seed=tree.n_links), mujoco.MjData(model)
    H = []
    for q, qd in zip(truth.q, truth.qd, strict=True):
        data.qpos[:] = mujoco_state(tree, model, q, qd, qd)[0]
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        for row, unit in zip(M, np.eye(model.nv), strict=True):  # mj_fullM has other arguments in every version
            mujoco.mj_mulM(model, data, row, unit)
        T = mujoco_velocities(tree, model, q)
        H.append(T.T @ M @ T)
    return tree, truth.q.T, np.moveaxis(np.array(H), 0, -1)


def mujoco_velocities(tree, model, q):
    """Return T (model.nv, nv) with qvel of MuJoCo = T qd: the velocity of a free joint is in world axes there."""
    T = np.zeros((model.nv, tree.nv))
    for i, joint in enumerate(tree.joints):
        at, s = model.jnt_dofadr[mujoco_joint(tree, model, i)], tree.v_slices[i]
        if joint.kind == "free":
            T[at : at + 3, s.start + 3 : s.stop] = joint.transform(q[tree.q_slices[i]]).E.T
            T[at + 3 : at + 6, s.start : s.start + 3] = np.eye(3)
        else:
            T[at : at + joint.nv, s] = np.eye(joint.nv)
    return T


def test_inertia_matrix_and_its_inverse_equal_mujoco(mujoco_peer):
    tree, q, H = mujoco_peer
    assert_close(crba(tree, q), H, SOLVED)
    assert_close(minverse(tree, q), np.moveaxis(np.linalg.inv(np.moveaxis(H, -1, 0)), 0, -1), SOLVED)
