"""Analytical derivatives of inverse and forward dynamics on every real robot, against Pinocchio's."""

from __future__ import annotations

import numpy as np
import pytest

import nori_dyn as nd
from tests.agreement.test_pinocchio import EVERY, ILL_CONDITIONED, MASSLESS
from tests.peers import pin
from tests.robots import (
    ROBOTS,
    acceleration_to_pinocchio,
    load,
    pinocchio_model,
    pinocchio_wrenches,
    to_pinocchio,
    velocity_map,
)
from tests.systems import random_states
from tests.tolerances import ILL_SOLVED, SOLVED, assert_close

N_STATES = 5


@pytest.mark.parametrize(("name", "base"), EVERY)
def test_derivatives_are_pinocchios(name, base):
    tree, model = load(name, base, clean=False), pinocchio_model(ROBOTS[name], base)  # cleaning snaps angles
    data, truth = model.createData(), random_states(tree, N_STATES, seed=len(name))
    P = velocity_map(tree, model, truth.q[0])  # constant, a permutation: no joint here is planar
    for q, qd, qdd, _, fx in zip(*truth, strict=True):
        q_pin, v = to_pinocchio(tree, model, q, qd)
        a, wrenches = acceleration_to_pinocchio(tree, model, q, qd, qdd), pinocchio_wrenches(tree, model, fx)
        by_q, by_v, M = (np.array(x) for x in pin.computeRNEADerivatives(model, data, q_pin, v, a, wrenches))
        expected = (by_q, by_v, np.triu(M) + np.triu(M, 1).T)
        for found, theirs in zip(nd.rnea_derivatives(tree, q, qd, qdd, fx), expected, strict=True):
            assert_close(found, P.T @ theirs @ P, SOLVED)
        if name in MASSLESS:
            continue
        tau = pin.rnea(model, data, q_pin, v, a, wrenches)
        by_q, by_v, Minv = (np.array(x) for x in pin.computeABADerivatives(model, data, q_pin, v, tau, wrenches))
        expected = (by_q, by_v, np.triu(Minv) + np.triu(Minv, 1).T)
        tolerance = ILL_SOLVED if name in ILL_CONDITIONED else SOLVED
        for found, theirs in zip(nd.aba_derivatives(tree, q, qd, P.T @ tau, fx), expected, strict=True):
            assert_close(found, P.T @ theirs @ P, tolerance)
