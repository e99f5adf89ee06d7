"""The recursions and their derivatives on real robots against Pinocchio, state by state."""

from typing import NamedTuple

import numpy as np
import pytest

import nori_dyn as nd
from tests.agreement.test_pinocchio import FEW as THREE
from tests.agreement.test_pinocchio import ILL_CONDITIONED, MASSLESS, N_STATES, cases
from tests.peers import pin
from tests.robots import ROBOTS, Pinocchio, load, pinocchio_model, pinocchio_wrenches, velocity_map
from tests.systems import random_states
from tests.tolerances import ILL_SOLVED, SOLVED, assert_close


class Everything(NamedTuple):
    """What the algorithms say of a state."""

    tau: np.ndarray
    qdd: np.ndarray
    H: np.ndarray
    Minv: np.ndarray
    C: np.ndarray


def everything(tree, q, qd, qdd, tau):
    """All that Pinocchio is asked for as well."""
    return Everything(
        nd.rnea(tree, q, qd, qdd),
        nd.aba(tree, q, qd, tau),
        nd.crba(tree, q),
        nd.minverse(tree, q),
        nd.coriolis(tree, q, qd).C,
    )


def symmetric(M: np.ndarray) -> np.ndarray:
    """A copy of a matrix of which Pinocchio promises the upper triangle only."""
    return np.triu(M) + np.triu(M, 1).T


class Case:
    """A robot, random states with their torques, and Pinocchio; without wrenches from outside unless asked for."""

    def __init__(self, name: str, base: str, n: int = N_STATES, with_fx: bool = False) -> None:
        self.tree = load(name, base, clean=False)  # snapped angles move what is ill-conditioned
        self.model = pinocchio_model(ROBOTS[name], base)
        self.data = self.model.createData()
        truth = random_states(self.tree, n, seed=len(name), wrench=10.0 * with_fx)
        self.q, self.qd, self.qdd, self.fx = truth.q, truth.qd, truth.qdd, truth.fx
        motion = zip(map(Pinocchio(self.tree, self.model).state, self.q, self.qd, self.qdd), self.fx, strict=True)
        self.states = [(*state, pinocchio_wrenches(self.tree, self.model, fx)) for state, fx in motion]
        self.P = velocity_map(self.tree, self.model, self.q[0])  # constant: no joint here is planar
        self.tau = np.array([self.P.T @ pin.rnea(self.model, self.data, *state) for state in self.states])

    def algorithms(self) -> Everything:
        """What Pinocchio says of every state."""
        model, data, P = self.model, self.data, self.P
        inverse = np.linalg.inv(P)
        found = []
        for (q, v, _, fx), tau in zip(self.states, self.tau, strict=True):
            H, Minv = symmetric(pin.crba(model, data, q)), symmetric(pin.computeMinverse(model, data, q))
            qdd = inverse @ pin.aba(model, data, q, v, inverse.T @ tau, fx)
            C = P.T @ pin.computeCoriolisMatrix(model, data, q, v) @ P
            found.append((tau, qdd, P.T @ H @ P, inverse @ Minv @ inverse.T, C))
        return Everything(*map(np.array, zip(*found, strict=True)))

    def derivatives(self) -> tuple[np.ndarray, ...]:
        """Pinocchio's derivatives of rnea by q, qd, qdd, and of aba by q, qd, tau, of every state."""
        model, data, P = self.model, self.data, self.P
        inverse = np.linalg.inv(P)
        found = []
        for (q, v, a, fx), tau in zip(self.states, self.tau, strict=True):
            by_q, by_v, H = (np.array(x) for x in pin.computeRNEADerivatives(model, data, q, v, a, fx))
            ours = [P.T @ x @ P for x in (by_q, by_v, symmetric(H))]
            forward = pin.computeABADerivatives(model, data, q, v, inverse.T @ tau, fx)
            by_q, by_v, Minv = (np.array(x) for x in forward)
            ours += [inverse @ by_q @ P, inverse @ by_v @ P, inverse @ symmetric(Minv) @ inverse.T]
            found.append(ours)
        return tuple(map(np.array, zip(*found, strict=True)))


N = 20


@pytest.mark.parametrize(("name", "base"), cases(THREE))
def test_the_algorithms_are_pinocchios(name, base):
    if name in MASSLESS:
        pytest.skip(f"{name} has links without mass: see test_pinocchio.py")
    case = Case(name, base, N)
    batches = [np.moveaxis(x, 0, -1) for x in (case.q, case.qd, case.qdd, case.tau)]
    expected, tolerance = case.algorithms(), ILL_SOLVED if name in ILL_CONDITIONED else SOLVED
    for ours, reference in zip(everything(case.tree, *batches), expected, strict=True):
        assert_close(np.moveaxis(ours, -1, 0), reference, tolerance)
    assert_close(expected.qdd, case.qdd, tolerance)


@pytest.mark.parametrize(("name", "base"), cases(THREE))
def test_derivatives_are_pinocchios(name, base):
    case = Case(name, base, n=5, with_fx=True)
    expected = case.derivatives()
    q, qd, qdd, tau, fx = (np.moveaxis(x, 0, -1) for x in (case.q, case.qd, case.qdd, case.tau, case.fx))
    for found, theirs in zip(nd.recursions.rnea_derivatives(case.tree, q, qd, qdd, fx), expected[:3], strict=True):
        assert_close(np.moveaxis(found, -1, 0), theirs, SOLVED)
    if name in MASSLESS:
        return
    tolerance = ILL_SOLVED if name in ILL_CONDITIONED else SOLVED
    for found, theirs in zip(nd.recursions.aba_derivatives(case.tree, q, qd, tau, fx), expected[3:], strict=True):
        assert_close(np.moveaxis(found, -1, 0), theirs, tolerance)
