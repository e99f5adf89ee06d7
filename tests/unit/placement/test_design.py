"""The best sensors against all subsets, each judged by the covariance of D as a whole."""

import itertools

import numpy as np
import pytest
from scipy.linalg import null_space

from nori_dyn.errors import InputError, NoPlacementError, SensorConfigError
from nori_dyn.model.synthetic import autotree
from nori_dyn.placement import design
from nori_dyn.placement.candidates import Candidates
from nori_dyn.placement.design import best_sensors
from nori_dyn.system.builder import System
from tests.covering import covering
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED


def candidates_of(seed: int = 0, **changes) -> Candidates:
    """Accelerations that are vague and there anyway, and better sensors to choose from."""
    rng = np.random.default_rng(seed)
    entries = [
        {"type": "joint_torque", "joints": "joint2", "sigma": float(rng.uniform(0.2, 0.6))},
        {"type": "joint_acceleration", "joints": "joint1", "name": "alpha", "sigma": 0.3},
        {"type": "accelerometer", "links": ["link2", "link3"], "sigma": float(rng.uniform(0.05, 0.3))},
        {"type": "force_torque", "joints": ["joint1", "joint3"], "sigma": [0.1, 0.1, 0.2, 1, 1, 2]},
        {"type": "angular_accelerometer", "links": "link3", "sigma": 0.7},
    ]
    there = [UNLOADED, ACCELERATIONS | {"sigma": 2.0}]
    return Candidates.from_dict(
        {"name": "c", "measurements": there, "candidates": {"measurements": entries}, **changes}
    )


def judged(tree, candidates: Candidates, chosen, Q, kind: str) -> float:
    """The criterion of some choices, from the covariance of all of d."""
    system = System(tree, candidates.on(tree).sensor_set(chosen))
    torques = [k for k, name in enumerate(system.variable_names) if name.startswith("tau")]
    exact = np.ones(system.shape[0], dtype=bool)
    roots = np.zeros(system.shape[0])
    for row in system.rows:
        if not row.is_exact:
            exact[row.slice] = False
            roots[row.slice] = np.sqrt(system.weights[list(row.weight_of_rows)])
    values = []
    for q in Q:
        D = system.D(q).toarray()
        N = null_space(D[exact])
        R = np.linalg.qr((roots[:, None] * D)[~exact] @ N)[1]
        half = np.linalg.solve(R.T, N[torques].T)
        covariance = half.T @ half
        values.append(np.trace(covariance) if kind == "A" else np.linalg.slogdet(covariance)[1])
    return float(np.mean(values))


def chain():
    return autotree(3, 1, 0.7, 0.9)


@covering(strength=1, kind=["A", "D"], seed=range(3))
def test_the_best_of_all_subsets(kind, seed, monkeypatch):
    tree, candidates = chain(), candidates_of(seed)
    Q = np.array([tree.random_configuration(k) for k in range(2)])
    names = list(candidates.on(tree).sensors)
    values = {some: judged(tree, candidates, some, Q, kind) for some in itertools.combinations(names, 3)}
    best = min(values, key=values.get)
    monkeypatch.setattr(design, "PROGRAMS_TO_PROVE", 10**6)
    found = best_sensors(tree, candidates, 3, criterion=kind, configurations=Q)
    assert found.method.endswith("proven to be the best by integer programs")
    assert found.chosen == best
    assert found.value == found.bound == pytest.approx(values[best], rel=1e-6)
    assert found.gap == 0
    monkeypatch.setattr(design, "PROGRAMS_TO_PROVE", 0)
    by_exchange = best_sensors(tree, candidates, 3, criterion=kind, configurations=Q)
    assert by_exchange.method.startswith("exchanges; the bound")
    assert by_exchange.value == pytest.approx(values[by_exchange.chosen], rel=1e-6)
    assert by_exchange.bound <= values[best] + 1e-6
    assert by_exchange.value >= values[best] - 1e-6
    assert 0 <= by_exchange.gap < 0.5
    kept = set(by_exchange.chosen)
    exchanged = [kept - {old} | {new} for old in kept for new in names if new not in kept]
    assert by_exchange.value <= min(values[tuple(n for n in names if n in some)] for some in exchanged) + 1e-6


def test_rules_and_deviations():
    tree = chain()
    rules = {
        "must": ["alpha"],
        "at_most_one": [["ft:joint1", "ft:joint3"]],
        "costs": {"force_torque": 10},
        "budget": 12,
    }
    found = best_sensors(tree, candidates_of(**rules), outputs=("tau:joint1",))
    assert "alpha" in found.chosen
    assert len({"ft:joint1", "ft:joint3"}.intersection(found.chosen)) == 1
    assert found.cost <= 12
    assert found.sigma == pytest.approx(np.sqrt(found.value), rel=1e-5)
    assert [measurement.name for measurement in found.sensors.measurements][2] in ("alpha", None)


def test_outputs_that_the_sensors_must_first_determine():
    """Without accelerations that are there anyway, three sensors of one row are needed, and no fewer do."""
    noise = {"joint_acceleration": 50, "joint_torque": 0.5}
    entries = [{"type": kind, "joints": "all", "sigma": sigma} for kind, sigma in noise.items()]
    data = {"name": "c", "measurements": [UNLOADED], "candidates": {"measurements": entries}}
    found = best_sensors(chain(), Candidates.from_dict(data), 3)
    by_volume = best_sensors(chain(), Candidates.from_dict(data), 3, ("tau", "qdd"), "D")
    assert (len(by_volume.outputs), by_volume.n_independent) == (6, 3)
    assert found.chosen == ("tau:joint1", "tau:joint2", "tau:joint3")
    assert found.sigma == pytest.approx([0.5] * 3)
    with pytest.raises(NoPlacementError, match=r"at most 2 sensors: .* fewest that do are 3"):
        best_sensors(chain(), Candidates.from_dict(data), 2)


def test_what_cannot_be_asked():
    tree, candidates = chain(), candidates_of()
    with pytest.raises(InputError, match="Give k, or a budget"):
        best_sensors(tree, candidates)
    with pytest.raises(InputError, match="k is 0"):
        best_sensors(tree, candidates, 0)
    with pytest.raises(InputError, match="criterion is 'E'"):
        best_sensors(tree, candidates, 2, criterion="E")
    with pytest.raises(InputError, match="shape"):
        best_sensors(tree, candidates, 2, configurations=[[0.0]])
    bare = {"measurements": [TORQUES]}
    with pytest.raises(SensorConfigError, match="'tau:joint1' has no sigma"):
        best_sensors(tree, candidates_of(candidates=bare), 2)
