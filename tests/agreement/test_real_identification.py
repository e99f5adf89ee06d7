"""Parameters of robots that exist, identified from their logs: what they explain of samples that had no part in it."""

import numpy as np
import pytest

from benchmarks.real.finding import Figure
from tests.agreement.test_real_robots import figure, finding, results_of

pytestmark = pytest.mark.long
pytest.importorskip("cvxpy", reason="the extra identify is not installed")


def test_one_trajectory_of_the_ur10e_explains_another():
    every = finding(results_of("ur10e"), "torques, all parameters identified on another log")
    assert np.all(np.array(every.correlation) >= [0.995, 0.998, 0.998, 0.987, 0.968, 0.989])
    moved = finding(results_of("ur10e"), "torques of joints that move, all identified on another log")
    assert min(moved.correlation) >= 0.998


def test_the_load_of_the_ur10e_and_the_gains_of_its_drives():
    results = results_of("ur10e")
    mass = figure(results, "mass of the load, by these gains")
    assert mass.value == pytest.approx(3.07, abs=0.05)
    assert 0 < mass.deviation < 0.1
    gains = [one for one in results if isinstance(one, Figure) and one.what.startswith("gain of the drive")]
    assert len(gains) == 6
    for gain in gains[1:]:
        assert gain.value == pytest.approx(gain.expected, rel=0.125), gain.what
    assert 9 < gains[0].value < 13


def test_the_log_of_the_panda_tells_little_beyond_offsets():
    results = results_of("panda_log")
    assert figure(results, "combinations of inertias and offsets").value == 50
    assert figure(results, "independent ones that the log tells").value <= 22
    offsets = finding(results, "torques of the last third, offsets identified")
    every = finding(results, "torques of the last third, inertias and offsets identified")
    assert np.all(np.array(every.rms) > 0.75 * np.array(offsets.rms))
    assert max(offsets.rms) < 0.15


def test_two_thirds_of_the_bag_of_the_panda_explain_the_last():
    last = finding(results_of("panda_bag"), "torques of the last third, all parameters identified on the others")
    assert max(last.rms) <= 0.25
    assert min(last.correlation) >= 0.93


def test_friction_and_rotors_take_more_than_half_of_the_residual_of_the_double_pendulum():
    results = results_of("double_pendulum")
    rigid = finding(results, "torques of joints that move, inertias identified")
    every = finding(results, "torques of joints that move, all identified")
    assert all(a < 0.4 * b for a, b in zip(every.rms, rigid.rms, strict=True))
    assert min(every.correlation) >= 0.997


def test_the_leg_of_the_icub_is_weighed_by_the_sensor_below_its_hip():
    results = results_of("icub_one_leg")
    for when in ("on one leg", "the leg turned out"):
        mass = figure(results, f"mass of the leg, {when}")
        assert mass.value == pytest.approx(mass.expected, rel=0.06)
        assert 0 < mass.deviation < 0.1
    moment = figure(results, "first moment along the thigh, shank and foot at the knee, on one leg")
    assert moment.value == pytest.approx(moment.expected, rel=0.05)
