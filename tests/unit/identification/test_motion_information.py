"""The information of motions: unknown wrenches by least squares of NumPy, derivatives by differences."""

from dataclasses import replace

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError
from nori_dyn.identification.base_parameters import base_parameters
from nori_dyn.identification.motion_information import CRITERIA, MotionInformation
from nori_dyn.identification.regression import Regression
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set

READ = ACCELERATIONS, {**TORQUES, "sigma": 0.5}


def held_at_its_tip():
    """An arm whose tip somebody holds, with forces that nobody measures along it."""
    unknown = {"type": "external_wrench", "links": "link4", "components": ["mx", "my", "mz", "fy", "fz"], "value": 0}
    others = {"type": "external_wrench", "links": {"except": "link4"}, "value": 0}
    return nd.autotree(4, skew=1.0), [*READ, unknown, others]


def free_arm():
    return nd.autotree(3, skew=1.0), [*READ, UNLOADED]


def information_of(arm, wanted=("inertias", "viscous:*")):
    tree, measurements = arm
    found = Regression.of(nd.System(tree, sensor_set(*measurements)), wanted)
    weights = np.linspace(1.0, 2.0, found.n_rows)
    columns = base_parameters(found).independent
    return found, MotionInformation.of(found, columns, range(tree.nv), weights, 60.0)


def states(nv, seed=0, n=30):
    return np.random.default_rng(seed).normal(size=(3, n, nv))


@pytest.mark.parametrize("arm", [free_arm, held_at_its_tip])
def test_unknown_wrenches_are_fitted(arm):
    found, information = information_of(arm())
    assert len(found.unknowns) == (1 if arm is held_at_its_tip else 0)
    q, qd, qdd = states(found.system.tree.nv)
    program, layout = found.program(base_parameters(found).independent, "auto")
    W, N, _ = layout.dense(program.batch(q, qd, qdd, np.zeros((len(q), found.system.ny))))
    D, expected = np.diag(information.weights), 0.0
    for W_k, N_k in zip(W, N, strict=True):
        left = D @ W_k - D @ N_k @ np.linalg.lstsq(D @ N_k, D @ W_k)[0]
        expected = expected + 60.0 / len(q) * left.T @ left
    F, _ = information.of_motion(q, qd, qdd)
    np.testing.assert_allclose(F, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("arm", [free_arm, held_at_its_tip])
@pytest.mark.parametrize("name", CRITERIA)
def test_derivatives_are_those_of_differences(arm, name):
    """Central differences of order 4 of the whole criterion, along random directions of q, qd and qdd at once."""
    found, information = information_of(arm())
    n = len(information.units)
    rng = np.random.default_rng(1)
    information = replace(information, units=rng.uniform(0.5, 2, n), earlier=rng.normal(size=(2, n)))
    state, h = states(found.system.tree.nv), 1e-4

    def value(at):
        return CRITERIA[name](information.of_motion(*at)[0])[0]

    F, pullback = information.of_motion(*state)
    by_motion = pullback(CRITERIA[name](F)[1])
    for _ in range(3):
        d = rng.normal(size=state.shape)
        first, second = (value(state + s * h * d) - value(state - s * h * d) for s in (1, 2))
        assert np.sum(by_motion * d) == pytest.approx((8 * first - second) / (12 * h), rel=1e-7, abs=1e-7)


def test_criteria_are_determinant_and_trace_and_of_what_is_not_identified_bad_and_no_error():
    A = np.random.default_rng(0).normal(size=(12, 5))
    F = A.T @ A
    assert CRITERIA["D"](F)[0] == pytest.approx(np.linalg.slogdet(F)[1])
    assert CRITERIA["A"](F)[0] == pytest.approx(-np.log(np.trace(np.linalg.inv(F))))
    less = F * np.outer(np.arange(5) > 0, np.arange(5) > 0)
    for criterion in CRITERIA.values():
        assert criterion(less)[0] < criterion(F)[0] - 10
        assert np.isfinite(criterion(np.zeros((3, 3)))[0])


def test_gains_are_refused_in_words():
    with pytest.raises(InputError, match=r"'gain:tau:joint1' multiplies what 'tau:joint1' reads.* Leave gains out"):
        information_of(free_arm(), ["inertias", "gain:tau:joint1"])
