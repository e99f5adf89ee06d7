"""Robots that exist: do their logs, read through their mappings, say what else was measured on them?

The data are not in the repository, see docs/real_robots.md: where they are not, or a package is not, these tests skip.
"""

import importlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.real.finding import Figure, Finding
from nori_dyn.errors import MissingExtraError

pytestmark = pytest.mark.long

DATA = Path(__file__).parents[2].parent / "shared" / "data"


@cache
def results_of(name: str) -> list[Finding | Figure]:
    """Return what comes of a data set, worked out once."""
    folder = DATA / name if name == "panda_log" else DATA / "real" / name
    if not folder.is_dir():
        pytest.skip(f"the data set {name} is not here: see docs/real_robots.md")
    if name == "human_bowing":
        pytest.importorskip("idyntree")
    try:
        return importlib.import_module(f"benchmarks.real.{name}").run(DATA)
    except MissingExtraError as error:
        pytest.skip(str(error))


def finding(results: list[Finding | Figure], estimated: str) -> Finding:
    """Return the finding of what was estimated."""
    (one,) = (each for each in results if isinstance(each, Finding) and each.estimated == estimated)
    return one


def figure(results: list[Finding | Figure], what: str) -> Figure:
    """Return the figure whose name begins so."""
    (one,) = (each for each in results if isinstance(each, Figure) and each.what.startswith(what))
    return one


def test_the_ground_under_the_bowing_human_is_the_plate():
    """Joints alone say it to 1.9 N of 605, mean included."""
    results = results_of("human_bowing")
    rms, difference, _, correlation = finding(results, "vertical force of the ground, from the joints alone").of("fz")
    assert rms <= 1.9
    assert abs(difference) <= 1.0
    assert correlation >= 0.95
    assert finding(results, "couple about the ankle's axis at the foot").correlation[0] >= 0.95


def test_the_map_estimate_of_the_bowing_human_is_berdys():
    """With the authors' variances; BERDY's equations of motion have some too, and its rounding shows."""
    assert figure(results_of("human_bowing"), "largest difference of our MAP estimate").value <= 1e-6


def test_sensors_of_the_icub_on_one_leg_read_what_its_motion_asks_for():
    results = results_of("icub_one_leg")
    leg = finding(results, "wrench below the right hip")
    for component, correlation in zip(leg.components, (0.72, 0.94, 0.89, 0.98, 0.74, 0.93), strict=True):
        assert leg.of(component)[3] >= correlation, component
    assert max(leg.rms[:3]) <= 10  # N
    assert max(leg.rms[3:]) <= 0.5  # N m
    for title, least in (("right hip", 0.98), ("lifted foot", 0.94)):
        (still,) = (each for each in results if getattr(each, "estimated", "").endswith(f"{title}, the leg turned out"))
        assert min(still.correlation) >= least, title
    foot = finding(results, "wrench of the standing foot")
    assert max(foot.rms[:3]) <= 7  # N of 320, on its own feet
    assert max(foot.rms[3:]) <= 1.3  # N m


def test_offsets_found_on_one_leg_hold_on_two():
    """On data that had no part in them."""
    force = figure(results_of("icub_one_leg"), "force on both feet before")
    assert force.value == pytest.approx(force.expected, rel=0.005)


def test_the_walking_icub_is_found_on_the_foot_that_it_stands_on():
    """Of every instant, from its joints and its IMU: no foot's sensor has gone into it."""
    results = results_of("icub_walking")
    weight = figure(results, "weight on both feet, mean")
    assert weight.value == pytest.approx(weight.expected, rel=0.02)
    assert finding(results, "left foot's share, both taken to stand").correlation[0] >= 0.85
    assert finding(results, "left foot's share, in the states found").correlation[0] >= 0.92
    phases = figure(results, "phases on one foot that were found")
    assert phases.value == phases.expected == 6
    assert figure(results, "instants on one foot that were found so").value >= 0.9
    assert figure(results, "instants on one foot that were given to the other").value == 0


def test_torques_from_outside_are_those_of_the_pandas_own_observer():
    results = results_of("panda_log")
    outside = finding(results, "torques from outside, low-passed at 25/s")
    assert min(outside.correlation) >= 0.9
    assert max(outside.rms) <= 0.09
    inside = finding(results, "torques, arm with hand")
    np.testing.assert_allclose(inside.rms, [0.46, 2.11, 0.38, 0.82, 0.99, 0.11, 0.22], atol=0.006)


def test_torques_of_the_panda_in_the_bag():
    results = results_of("panda_bag")
    bare = finding(results, "torques, links alone")
    np.testing.assert_allclose(bare.rms, [0.69, 0.44, 0.50, 0.66, 0.44, 0.33, 0.28], atol=0.006)
    links = finding(results, "torques of the second half, links alone")
    driven = finding(results, "torques of the second half, with friction and rotors fitted on the first")
    assert all(a < b for a, b in zip(driven.rms, links.rms, strict=True))
    assert min(driven.correlation) >= 0.75


def test_currents_of_the_ur10e_are_its_torques_and_its_load():
    """What another log says of its drives holds, and what it carries adds what a mass adds."""
    results = results_of("ur10e")
    driven = finding(results, "torques, with friction and rotors fitted on another log")
    assert min(driven.correlation) >= 0.97
    load = finding(results, "what the load adds, a point mass fitted")
    assert min(load.correlation[1:]) >= 0.99
    assert max(load.rms) <= 2.5
    assert 2 < figure(results, "mass of the load, a point mass").value < 4


def test_rotors_and_friction_are_what_the_double_pendulum_lacks():
    results = results_of("double_pendulum")
    links, driven = finding(results, "torques, links alone"), finding(results, "torques, with rotors and friction")
    assert all(a < 0.6 * b for a, b in zip(driven.rms, links.rms, strict=True))
    assert min(driven.correlation) >= 0.985
