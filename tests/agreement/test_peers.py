"""The peers that a filter is held against: what they say where the truth is known, and on the log of a Panda.

And what the page of real robots says of two series.
"""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from benchmarks.documents import with_tables
from benchmarks.real.arm_filter import by_filter
from benchmarks.real.finding import Figure, held_against
from benchmarks.real.panda_observers import FILTER_NOISE, estimates, panda_log
from benchmarks.real.peers import by_differences, correlations, delay, momentum_observer, outside
from benchmarks.real.pushed_panda import LOCKED, RATE, TUNINGS, Noise, filters, pushed, score
from benchmarks.real.signals import lagging
from benchmarks.real.tables import overview

SHARED = Path(__file__).parents[3] / "shared" / "data"
QUIET = Noise(0.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def push():
    return pushed(seed=1, seconds=2.0, noise=QUIET)


def test_the_motion_is_that_of_its_torques(push):
    q, qd, qdd = push.motion
    np.testing.assert_allclose(outside(push.tree, q, qd, qdd, push.tau), push.outside, atol=1e-9)
    smooth = np.abs(np.diff(push.outside, axis=0)).max(axis=1) < 0.5
    off = np.gradient(qd, 1 / RATE, axis=0) - qdd
    away = ~np.convolve(~smooth, np.ones(9), mode="same").astype(bool)  # from the steps
    assert np.abs(off[2:-2][away[1:-2]]).max() < 0.05 * np.abs(qdd).max()


def test_the_momentum_observer_is_the_truth_low_passed(push):
    q, qd, _ = push.motion
    for gain in (5.0, 25.0):
        found = momentum_observer(push.tree, q, qd, push.tau, RATE, gain)
        expected = lagging(push.outside, RATE, gain)
        begun = np.exp(-gain * push.t)[:, None] * np.abs(push.outside[0])  # it begins at zero
        assert np.all(np.abs(found - expected) <= begun + 0.05 * np.abs(push.outside).max())
        explicit = momentum_observer(push.tree, q, qd, push.tau, RATE, gain, explicit=True)
        assert np.abs(explicit - found).max() < 0.1 * np.abs(push.outside).max()


def test_low_passed_differences_are_the_truth_low_passed(push):
    q, qd, _ = push.motion
    found = by_differences(push.tree, q, qd, push.tau, RATE, 25.0)
    assert correlations(found[500:], lagging(push.outside, RATE, 25.0)[500:]).min() > 0.99


@pytest.mark.parametrize("late", [0, 3, 40])
def test_the_delay_is_that_of_what_is_late(late):
    rng = np.random.default_rng(0)
    x = lagging(rng.normal(size=(3000, 2)), RATE, 60.0)
    assert delay(x[40 - late : 2800 - late], x[40:2800], RATE) == pytest.approx(late / RATE, abs=1e-4)


@pytest.fixture(scope="module")
def log():
    """The log of a Panda, which is not in the repository."""
    if not SHARED.exists():
        pytest.skip("the log of the Panda is not in the repository")
    return panda_log(SHARED)


@pytest.mark.long
def test_on_the_log_of_a_panda(log):
    tree = nd.load_robot("panda", locked=LOCKED)
    found = {name: correlations(x[500:], log.outside[500:]) for name, x in islice(estimates(tree, log), 10)}
    expected = {
        "Savitzky-Golay, 51 samples, ahead": (0.08, 0.56, 0.63, 0.64, 0.74, 0.64, 0.01),
        "the same, low-passed": (0.90, 0.94, 0.99, 0.93, 0.99, 0.87, 0.93),
        "central differences, low-passed": (0.66, 0.91, 0.97, 0.92, 0.99, 0.85, 0.93),
        "momentum observer, 5/s, explicit": (0.58, 0.84, 0.83, 0.80, 0.83, 0.36, 0.73),
        "momentum observer, 25/s, explicit": (0.60, 0.90, 0.96, 0.91, 0.99, 0.82, 0.92),
        "momentum observer, 100/s, explicit": (0.15, 0.56, 0.63, 0.66, 0.84, 0.55, 0.31),
    }
    for name, figures in expected.items():
        np.testing.assert_allclose(found[name], figures, atol=0.012)


@pytest.mark.long
def test_a_filter_reaches_on_the_log_what_low_passed_differences_do_that_look_ahead(log):
    found = by_filter(nd.load_robot("panda", locked=LOCKED), log.t, log.q, log.qd, log.tau, FILTER_NOISE)
    bars = (0.80, 0.93, 0.98, 0.93, 0.99, 0.88, 0.93)
    assert (correlations(found.torques[500:], log.outside[500:]) >= bars).all()


@pytest.mark.long
def test_a_filter_errs_less_and_is_less_late_than_its_peers_at_their_best():
    push = pushed(seed=3, seconds=4.0)
    tree, q, qd, tau = push.tree, push.q, push.qd, push.tau
    peers = [
        score(name, gain, push, method(tree, q, qd, tau, RATE, gain))
        for name, method in (("momentum observer", momentum_observer), ("differences", by_differences))
        for gain in TUNINGS
    ]
    ours = list(filters(push, (2.0, 5.0, 10.0)))
    best = min(ours, key=lambda each: each.error)
    for other in peers:
        assert best.error < other.error
        if other.error < 1.5 * best.error:
            assert best.delay < other.delay
        as_late = [each.error for each in ours if each.delay <= other.delay]
        assert min(as_late) < other.error


def test_how_far_apart_two_series_are():
    x = np.linspace(0, 1, 11)[:, None]
    one = held_against("a robot", "x", "y", ("x",), ("N",), 2 * x + 1, x)
    rms, difference, spread, correlation = one.of("x")
    assert difference == pytest.approx(1.5)
    assert rms**2 == pytest.approx(1.5**2 + spread**2)
    assert correlation == pytest.approx(1.0)
    assert overview([[one]]).rows[0][-1] == "1.000"


def test_the_results_have_a_place_for_every_data_set_and_tables_of_those_that_are_not_here_stay():
    from benchmarks.real.__main__ import MODULES, RESULTS, tables_of  # takes long to load

    one = held_against("a robot", "x", "y", ("x",), ("N",), np.zeros((3, 1)), np.ones((3, 1)))
    found = {name: [one, Figure("a robot", "mass", 1.0, "kg")] for name in MODULES}
    text = with_tables(RESULTS.read_text(), "real", tables_of(found))
    assert text.count("| mass | 1 kg |") == len(MODULES)
    assert text.count("| a robot | x | y |") == len(MODULES)
    assert with_tables(RESULTS.read_text(), "real", tables_of({})) == RESULTS.read_text()
