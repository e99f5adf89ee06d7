"""Conditioning over the workspace: margins against a brute-force SVD, deviations against covariances."""

from dataclasses import replace

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import InputError, UnknownOutputError
from nori_dyn.measurements.dynamics_noise import DynamicsNoise
from nori_dyn.model.tree import Frame
from nori_dyn.observe.conditioning import conditioning
from nori_dyn.observe.numeric import Reduction
from nori_dyn.system.builder import System
from tests.agreement.test_weighted import reference
from tests.systems import ACCELERATIONS, FORWARD, TORQUES, UNLOADED, WRENCHES, sensor_set
from tests.tolerances import ROUNDING, SOLVED, assert_close
from tests.trees import TREES

PLACED = {"frame": {"xyz": [0.1, 0.02, 0.03], "rpy": [0.1, 0.2, 0.3]}}

TWICE = sensor_set(
    ACCELERATIONS | {"sigma": 0.1},
    {"type": "joint_torque", "joints": ["joint1", "joint2"], "sigma": 0.2},
    {"type": "external_wrench", "links": {"except": "link4"}, "value": 0},
    {"type": "external_wrench", "links": "link4", "sigma": [0.1, 0.2, 0.3, 1, 2, 3]},
    {"type": "accelerometer", "links": "link2", "sigma": 0.05, **PLACED},
)
FAR_APART = sensor_set(
    ACCELERATIONS | {"sigma": 1e-3},
    TORQUES | {"sigma": 1e3},
    WRENCHES | {"sigma": [1e-2, 1, 1e2, 1e3, 1, 1e-3]},
    {"type": "accelerometer", "links": "link2", "sigma": 1e-4, **PLACED},
)
SLACK = replace(
    sensor_set(
        ACCELERATIONS | {"value": 0},
        TORQUES | {"sigma": 0.2},
        {"type": "external_wrench", "links": {"except": "link3"}, "sigma": 0.5},
        {"type": "external_wrench", "links": "link3", "value": 0},
    ),
    dynamics=DynamicsNoise.model_validate({"sigma": {"3a": 0.3, "3f": [0.1, 0.2, 0.3, 1, 2, 3]}}),
)


def chain(n: int = 4):
    return nd.autotree(n, skew=0.7)


@pytest.mark.parametrize(
    "system",
    [
        System(chain(), TWICE),
        System(chain(), FAR_APART),
        System(chain(), SLACK),
        System(chain(3), nd.measurements.berdy_map(sensor_set(TORQUES | {"sigma": 0.1}), dynamics=1e-2, prior=1e2)),
    ],
    ids=["some rows exact", "weights far apart", "noisy dynamics", "maximum a posteriori"],
)
def test_deviations_are_those_of_the_whole_of_D(system):
    kinds = ("tau", "qdd", "fx", "a", "f")
    found = conditioning(system, n=3, outputs=kinds)
    assert set(found.outputs) == set(system.variable_names)
    columns = [system.variable_names.index(name) for name in found.outputs]
    still, y = np.zeros(system.tree.nv), np.zeros(system.ny)
    for q, sigma in zip(found.configurations, found.sigma, strict=True):
        covariance = reference(system, q, still, y, system.weights).covariance.astype(float)
        expected = np.sqrt(np.maximum(np.diagonal(covariance)[columns], 0.0))
        known = expected < 1e-9
        assert (sigma[known] < 1e-9).all()
        assert_close(sigma[~known] / expected[~known], np.ones(np.sum(~known)), SOLVED)


def test_deviations_are_those_of_the_monitor():
    tip = Frame(3, Transform(np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]), np.array([0.1, 0.2, 0.3])))
    system = System(chain().replace(frames={"tip": tip}), TWICE)
    outputs = ["tau", "fx:tip", "a:tip"]
    monitor = nd.plan(system, outputs=outputs).monitor("numpy")
    found = conditioning(system, n=2, outputs=outputs)
    assert found.outputs[4:10] == tuple(f"fx:tip.{c}" for c in ("mx", "my", "mz", "fx", "fy", "fz"))
    assert found.units[3:] == ("N m",) * 4 + ("N",) * 3 + ("rad/s^2",) * 3 + ("m/s^2",) * 3
    for q, sigma in zip(found.configurations, found.sigma, strict=True):
        told = monitor.check(q, np.zeros(4), np.zeros(system.ny)).deviations
        assert_close(sigma, np.concatenate([told[name] for name in outputs]), SOLVED)


def test_what_is_not_determined_has_no_finite_deviation():
    """By the definition: e_j is no combination of the rows of D."""
    sensors = sensor_set(
        ACCELERATIONS | {"sigma": 0.1},
        {"type": "external_wrench", "links": ["link1", "link2"], "value": 0},
        {"type": "external_wrench", "links": "link4", "sigma": 1},
        {"type": "external_wrench", "links": "link3", "components": ["mx", "fy"], "sigma": 1},
    )
    for dynamics in (None, DynamicsNoise(sigma=0.1)):
        system = System(chain(), replace(sensors, dynamics=dynamics))
        found = conditioning(system, n=2, outputs=("tau", "qdd", "fx", "f"))
        assert (found.ranks == system.shape[1] - 4).all()
        assert (found.smallest == 0).all()
        for q, sigma in zip(found.configurations, found.sigma, strict=True):
            D = system.D(q).toarray()
            columns = [system.variable_names.index(name) for name in found.outputs]
            wanted = np.eye(D.shape[1])[:, columns]
            left = np.abs(D.T @ np.linalg.lstsq(D.T, wanted, rcond=1e-12)[0] - wanted).max(axis=0)
            assert np.array_equal(np.isfinite(sigma), left < 1e-9)
            assert 0 < np.isfinite(sigma).sum() < len(sigma)


def test_ranks_and_margins_are_those_of_one_configuration():
    system = System(chain(), FORWARD)
    found = conditioning(system, n=12, seed=4)
    assert isinstance(found, nd.observe.Conditioning)
    rng = np.random.default_rng(4)
    Q = [system.tree.random_configuration(rng) for _ in range(12)]
    assert np.array_equal(found.configurations, Q)
    each = Reduction(system, 4).ranks_at(Q)
    assert found.ranks.tolist() == [at.rank for at in each]
    assert_close(found.smallest / [at.smallest for at in each], np.ones(12), SOLVED)
    assert found.sigma is None
    assert found.median_sigma is found.worst_sigma is None
    assert found.outputs == tuple(f"tau:joint{k}" for k in range(1, 5))
    assert found.worst.tolist() == np.argsort(found.smallest)[:10].tolist()
    assert np.array_equal(found.condition_numbers, 1 / found.smallest)
    more_than_needed = sensor_set(ACCELERATIONS, TORQUES, UNLOADED)
    assert conditioning(System(chain(), more_than_needed), n=1).sigma is None  # as no sigma is told


def test_configurations_together_are_as_one_by_one():
    for tree in TREES.values():
        reduction = Reduction(System(tree, FORWARD))
        Q = tree.random_configurations(3, 5)
        for q, found in zip(Q, reduction.at_each(Q), strict=True):
            alone = reduction.at(q)
            assert_close(found.M, alone.M, ROUNDING)
            assert_close(found.X, alone.X, ROUNDING)


def test_a_singular_pose_is_the_worst():
    """The tip of a planar arm is held: how hard it is pulled along a straight arm nothing tells."""
    tip = {"links": "link2", "frame": {"xyz": [1, 0, 0]}}
    known = sensor_set(
        TORQUES | {"sigma": 0.1},
        {"type": "rigid_contact", **tip, "components": ["ax", "ay"]},
        {"type": "external_wrench", **tip, "components": ["mx", "my", "mz", "fz"], "value": 0},
        {"type": "external_wrench", "links": "link1", "value": 0},
    )
    system = System(nd.autotree(2), known)
    Q = np.array([[0.3, 1.0], [0.3, 1e-2], [0.3, 0.0], [0.3, 0.5]])
    found = conditioning(system, Q, outputs=("fx:link2",))
    assert found.worst.tolist() == [2, 1, 3, 0]
    assert found.lacking.tolist() == [2]
    assert (found.smallest[2], found.condition_numbers[2]) == (0.0, np.inf)
    along = found.outputs.index("fx:link2.fx")
    across = found.outputs.index("fx:link2.fy")
    assert np.array_equal(np.isinf(found.sigma[:, along]), [False, False, True, False])
    assert np.isfinite(found.sigma[:, across]).all()
    assert found.sigma[1, along] > 10 * found.sigma[0, along]
    assert found.worst_sigma[along] == np.inf
    assert found.median_sigma[along] < np.inf


def test_wrong_use():
    for wrong, words in (
        ({"n": 0}, "n is 0"),
        ({"configurations": []}, r"shape \(0,\), expected \(N, 4\)"),
        ({"configurations": np.zeros((0, 4))}, "at least one is needed"),
        ({"configurations": np.zeros((3, 5))}, r"shape \(3, 5\), expected \(N, 4\)"),
        ({"configurations": np.full((3, 4), np.nan)}, r"configurations\[0, 0\] is nan"),
        ({"workers": 0}, "workers is 0"),
        ({"outputs": ("tau:join1",), "n": 1}, "Did you mean '(tau:)?joint1'"),
    ):
        with pytest.raises((InputError, UnknownOutputError), match=words):
            nd.conditioning(System(chain(), FORWARD), **wrong)
