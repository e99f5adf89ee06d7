"""Contacts that change within a log: a biped that walks in MuJoCo, whose ground is unknown to what identifies it."""

from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.filtering.history import ContactHistory
from nori_dyn.identification.identify import in_contact
from nori_dyn.identification.parameters import Parameters
from tests.systems import ACCELERATIONS, sensor_set
from tests.unit.identification.simulated import changed, errors_of, lasting
from tests.walking import Walk, walk

FEET = ("l_foot", "r_foot")
SIGMA = 0.5


def sensors_of(**torques) -> nd.SensorSet:
    """Torques of the motors; whatever the ground does to a foot that stands is unknown."""
    return sensor_set(
        ACCELERATIONS,
        {"type": "joint_torque", "joints": "actuated", **torques},
        {"type": "joint_torque", "joints": {"except": "actuated"}, "value": 0},
        {"type": "external_wrench", "links": {"except": [*FEET]}, "value": 0},
        name="walking",
        contacts={
            foot: {"closed": [], "open": [{"type": "external_wrench", "links": foot, "value": 0}]} for foot in FEET
        },
    )


def saved(path: Path, of: Walk, tau: np.ndarray) -> Path:
    """The log of a walk, with the torques (N, ...) that are read."""
    columns = {f"tau:{name}": tau[:, k] for k, name in enumerate(of.tree.joint_names[1:])}
    columns |= {f"contact:{foot}": of.touching[:, k] * 1.0 for k, foot in enumerate(FEET)}
    np.savez(path, t=2e-3 * np.arange(of.n), q=of.q, qd=of.qd, qdd=of.qdd, **columns)
    return path


def errors(folder: Path, rho: float, seeds: range) -> np.ndarray:
    """Errors over their deviations of combinations that logs identify, from models that are wrong by 30 %."""
    of, off = walk("biped", 6.4)[::2], []
    parameters = Parameters.of(of.tree, ["inertias"])
    truth = dict(zip(parameters.names, parameters.prior, strict=True))
    for seed in seeds:
        noise = SIGMA * lasting(np.random.default_rng(seed), of.n, 10, rho)
        _, model = changed(of.tree, seed)
        log = saved(folder / "log.npz", of, of.tau[:, 6:] + noise)
        found = nd.identify(log, model, ["inertias"], sensors=sensors_of(sigma=SIGMA), physical=False, held_out=0.0)
        off += errors_of(found, truth)
    return np.array(off)


def test_a_biped_is_identified_though_nothing_measures_the_ground(tmp_path):
    off = errors(tmp_path, 0.0, range(1))
    assert len(off) > 10
    assert 0.5 < off.std() < 1.6


def test_what_logs_lack_of_a_robot_with_feet_is_unknown_on_these_and_nothing_elsewhere(tmp_path):
    """Without sensors: columns say which feet stand, or all may at each sample; a wrench that is read is read."""
    of = walk("biped", 6.4)[::40]
    tree, (left, right), q, qd = of.tree, ("l_sole", "r_sole"), of.q, of.qd
    tau = {f"tau:{name}": of.tau[:, 6 + k] for k, name in enumerate(tree.joint_names[1:])}
    standing = {f"contact:{foot}": of.touching[:, k] * 1.0 for k, foot in enumerate((left, right))}
    read = {f"fx:l_foot.{name}": of.fx[:, 0, k] for k, name in enumerate(("mx", "my", "mz", "fx", "fy", "fz"))}
    cases = {
        "unknown": ({}, [(left, right)], "'l_sole', 'r_sole': what the ground does there is unknown at every sample"),
        "told": (standing, [(), (left,), (left, right), (right,)], "what the ground does there is unknown."),
        "read": (read, [(right,)], "'r_sole': what the ground does there is unknown at every sample"),
    }
    for name, (columns, states, said) in cases.items():
        np.savez(path := tmp_path / f"{name}.npz", t=0.08 * np.arange(of.n), q=q, qd=qd, **tau, **columns)
        chosen = in_contact(tree, None, None, [nd.read_log(path)])
        assert sorted(chosen["systems"]) == [state for state in states if state in chosen["systems"]], name
        assert any(said in each for each in chosen["remarks"]), name
        unread = [row for system in chosen["systems"].values() for row in system.measurement_names if row[:3] == "fx:"]
        assert len(unread) == (6 if name == "read" else 0), name
    unnamed = in_contact(tree.replace(frames={}), None, None, [nd.read_log(path)])  # whose feet are links
    assert any("'r_foot': what the ground" in each for each in unnamed["remarks"])
    np.savez(path, t=0.08 * np.arange(of.n), q=q, qd=qd)
    with pytest.raises(nd.errors.InputError, match="lacks 10 of"):
        nd.identify(path, tree, ["m:base"])


@pytest.mark.long
@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_nineteen_of_twenty_are_within_1_96_deviations(tmp_path, rho):
    assert 0.93 < np.mean(np.abs(errors(tmp_path, rho, range(100))) < 1.96) < 0.97


@pytest.fixture(scope="module")
def mended(tmp_path_factory) -> nd.results.Identification:
    """From torques of which one knee reads 4 ms late and four times as noisy: that nobody said."""
    of, rng = walk("biped", 6.4), np.random.default_rng(0)
    sizes = np.where(np.arange(10) == 2, 0.04, 0.01)
    tau = of.tau[:, 6:] + sizes * rng.normal(size=(of.n, 10))
    tau[4:, 7] = tau[:-4, 7]
    log = saved(tmp_path_factory.mktemp("biped") / "log.npz", of[::2], tau[::2])
    return nd.identify(log, of.tree, ["inertias"], sensors=sensors_of(), physical=False, curves=True)


def test_readings_have_deviations_of_their_own_where_wrenches_are_unknown(mended):
    """Those that no sensor declares are found with what weighs the wrenches by them."""
    after = {fit.name: fit.after for fit in mended.fits}
    assert after["tau:l_knee"] == pytest.approx(0.04, rel=0.1)
    assert after["tau:l_hip_x"] == pytest.approx(0.01, rel=0.2)
    assert not any("root" in name for name in after)  # the ground explains whatever these would say


def test_delays_are_found_where_wrenches_are_unknown(mended):
    late = {fit.name: fit.delay for fit in mended.fits if fit.delay is not None}
    assert list(late) == ["tau:r_knee"]
    assert late["tau:r_knee"] == pytest.approx(0.004, rel=0.1)


def test_curves_are_those_at_the_best_wrenches(mended):
    (curves,) = mended.curves
    row = [fit.name for fit in mended.fits].index("tau:l_hip_x")
    off = curves.found[row] - curves.read[row]
    assert np.sqrt(np.mean(off**2)) < mended.fits[row].after
    assert np.corrcoef(curves.found[row], curves.read[row])[0, 1] > 0.99


def test_contacts_are_recognised_or_refused(tmp_path):
    of = walk("biped", 6.4)[::8]
    log = saved(tmp_path / "log.npz", of, of.tau[:, 6:])
    t = 2e-3 * np.arange(of.n)
    states = ((), ("l_foot",), ("r_foot",), FEET)
    number = np.array([states.index(tuple(np.array(FEET)[row])) for row in of.touching])
    recognised = nd.results.History(
        t=t[::2],
        contacts=ContactHistory(FEET, states, np.eye(4)[number][::2]),
        **dict.fromkeys(("estimate", "deviations", "bands", "memory", "nis", "degrees", "log_likelihood", "gaps")),
        is_causal=True,
    )
    options = {"sensors": sensors_of(), "physical": False, "held_out": 0.0}
    found = nd.identify(log, of.tree, ["inertias"], contacts=recognised, **options)
    assert found.n_samples == of.n // 2
    assert max(fit.after for fit in found.fits) < 1e-6
    with pytest.raises(nd.errors.InputError, match="one log alone"):
        nd.identify([log, log], of.tree, contacts=recognised, **options)
    with pytest.raises(nd.errors.InputError, match="have no contacts"):
        nd.identify(log, of.tree, contacts=["l_foot"], sensors="identification_floating")
    with pytest.raises(nd.errors.UnknownSensorNameError, match="hand"):
        nd.identify(log, of.tree, contacts=["hand"], **options)
