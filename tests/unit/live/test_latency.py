import math

import numpy as np
import pytest

from nori_dyn.live.latency import A_DECADE, Latency


def test_quantiles_are_those_of_the_durations():
    durations = np.exp(np.random.default_rng(0).normal(-8, 1.5, 5000))
    latency = Latency()
    for seconds in durations:
        latency.add(float(seconds))
    for share in (0.5, 0.99, 0.999):
        exact = np.quantile(durations, share, method="inverted_cdf")
        assert exact * (1 - 1e-12) <= latency.quantile(share) <= exact * 10 ** (1 / A_DECADE)
    assert latency.largest == durations.max()
    assert latency.mean == pytest.approx(durations.mean())
    assert latency.count == 5000


def test_two_joined_are_one_of_both():
    durations = np.random.default_rng(0).exponential(1e-3, 400)
    one, other, both = Latency(), Latency(), Latency()
    for k, seconds in enumerate(durations.tolist()):
        (one, other)[k % 2].add(seconds)
        both.add(seconds)
    one.join(other)
    assert one.figures() == both.figures()
    assert one.mean == pytest.approx(both.mean)


def test_clocks_that_disagree_are_counted_nothing_has_no_figures_and_what_lasts_long_is_held():
    latency = Latency()
    latency.add(-0.1)
    latency.add(0.2)
    assert (latency.count, latency.below_zero, latency.largest) == (2, 1, 0.2)
    assert Latency().figures() == {}
    assert math.isnan(Latency().quantile(0.5))
    latency = Latency()
    latency.add(1e7)
    assert latency.quantile(0.99) == latency.largest or latency.quantile(0.99) <= 1e7
