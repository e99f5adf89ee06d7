"""The classical algorithms on real robots, against Pinocchio's, and the inertia matrix against MuJoCo's too."""

import numpy as np
import pytest

from nori_dyn.errors import SingularSystemError
from nori_dyn.recursions.aba import aba, hybrid_dynamics
from nori_dyn.recursions.coriolis import coriolis
from nori_dyn.recursions.crba import crba, inertia_forward_dynamics
from nori_dyn.recursions.jacobian import jacobian, jacobian_rate
from nori_dyn.recursions.minverse import minverse
from nori_dyn.recursions.rnea import bias_force, coriolis_force, gravity_force, inertial_force, rnea
from tests.agreement import test_pinocchio as pinocchio
from tests.agreement.test_pinocchio import ILL_CONDITIONED, MASSLESS, cases, driven, led, robot
from tests.peers import pin
from tests.robots import to_pinocchio, velocity_map
from tests.tolerances import ILL_SOLVED, SOLVED, assert_close


class Peer(pinocchio.Peer):
    """Random states of a robot with the batch axis last, and Pinocchio's answers at them, made when asked for."""

    def __init__(self, name: str, base: str) -> None:
        super().__init__(name, robot(name, base), base)
        self.name, self.base = name, base
        assert "planar" not in {joint.kind for joint in self.tree.joints}
        self.P = velocity_map(self.tree, self.model, self.tree.neutral_configuration())
        self.truth = led(name, base)[0]
        self.q, self.qd, self.qdd, self.tau, self.fx = (np.moveaxis(x, 0, -1) for x in self.truth)
        states = zip(self.truth.q, self.truth.qd, strict=True)
        self.states = [to_pinocchio(self.tree, self.model, q, qd) for q, qd in states]

    @property
    def tolerance(self):
        return ILL_SOLVED if self.name in ILL_CONDITIONED else SOLVED

    def free(self, **changes):
        """Return tau (nv, N) without external wrenches, some inputs changed."""
        return self.inverse(self.truth._replace(fx=0 * self.truth.fx, **changes))[0].T

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


FEW = (("panda", "fixed"), ("kinova", "floating"), ("anymal", "floating"))
of_every_robot = pytest.mark.parametrize(("name", "base"), cases(FEW), scope="module")


@pytest.fixture(scope="module")
def peer(name, base):
    return Peer(name, base)


def weightless(tree):
    return [tree.joint_names[i] for i in range(tree.n_links) if not tree.I[list(tree.subtree(i))].any()]


@of_every_robot
def test_inverse_dynamics_and_its_parts(peer):
    tree, q, qd = peer.tree, peer.q, peer.qd
    still = 0 * peer.truth.qd
    tau, bias, gravity = peer.free(), peer.free(qdd=still), peer.free(qd=still, qdd=still)
    assert_close(rnea(tree, q, qd, peer.qdd, peer.fx), peer.tau, SOLVED)
    assert_close(rnea(tree, q, qd, peer.qdd), tau, SOLVED)
    assert_close(gravity_force(tree, q), gravity, SOLVED)
    assert_close(bias_force(tree, q, qd), bias, SOLVED)
    assert_close(coriolis_force(tree, q, qd), bias - gravity, SOLVED)
    assert_close(inertial_force(tree, q, peer.qdd), tau - bias, SOLVED)


@of_every_robot
def test_forward_dynamics_and_the_inverse_of_the_inertia_matrix(peer):
    if peer.name in MASSLESS:
        pytest.skip(f"{peer.name} has links without mass: see test_massless_links_are_named")
    truth = driven(peer.name, peer.base)[0]
    for algorithm in (aba, inertia_forward_dynamics):
        assert_close(algorithm(peer.tree, peer.q, peer.qd, truth.tau.T, peer.fx), truth.qdd.T, peer.tolerance)
    assert_close(minverse(peer.tree, peer.q), peer.H_inverse(), peer.tolerance)


@of_every_robot
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


@of_every_robot
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


@of_every_robot
def test_inertia_and_coriolis_matrices(peer):
    found = coriolis(peer.tree, peer.q, peer.qd)
    expected, H = peer.C(), peer.H()
    assert_close(crba(peer.tree, peer.q), H, SOLVED)
    assert_close(found.C, expected, SOLVED)
    assert_close(found.M, H, SOLVED)
    assert_close(found.Mdot, expected + np.swapaxes(expected, 0, 1), SOLVED)


@pytest.mark.parametrize("name", MASSLESS)
def test_massless_links_are_named(name):
    peer = Peer(name, "fixed")
    tree, names = peer.tree, weightless(peer.tree)
    assert names
    q, qd, tau = peer.q[:, 0], peer.qd[:, 0], peer.tau[:, 0]
    for find in (lambda: aba(tree, q, qd, tau), lambda: minverse(tree, q)):
        with pytest.raises(SingularSystemError, match="moves no inertia") as raised:
            find()
        assert any(f"joint '{joint}'" in str(raised.value) for joint in names)
        assert set(raised.value.undetermined) <= {f"qdd:{joint}" for joint in names}
