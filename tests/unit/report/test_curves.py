"""Curves of a page: small paths from which the numbers can be read back, and on which no spike is lost."""

import re

import numpy as np
import pytest

from nori_dyn.report.time_plots import (
    SIZE,
    Bins,
    Curve,
    Panel,
    Plots,
    Scale,
    band,
    is_constant,
    kept,
    line,
    spans,
    ticks,
)

STEP = re.compile(r"([Mlv])(-?\d+)(?: (-?\d+))?")


def points(path: str) -> list[list[tuple[int, int]]]:
    """The points of a path of whole numbers, part by part."""
    parts: list[list[tuple[int, int]]] = []
    x = y = 0
    for step, a, b in STEP.findall(path):
        if step == "M":
            x, y = int(a), int(b)
            parts.append([])
        elif step == "v":
            y += int(a)
        else:
            x, y = x + int(a), y + int(b)
        parts[-1].append((x, y))
    assert STEP.sub("", path).strip() == ""
    return parts


def test_few_samples_are_all_drawn_and_read_back():
    rng = np.random.default_rng(0)
    t, x = np.sort(rng.uniform(3, 8, 300)), rng.normal(size=300)
    bins, scale = Bins.of(t, 200), Scale.around(float(x.min()), float(x.max()))
    (part,) = points(line(bins, x, scale))
    at = np.array(part[1:])  # the first point stands twice, so that a lone sample is a dot
    assert len(at) == 300
    np.testing.assert_allclose(t[0] + at[:, 0] / SIZE * (t[-1] - t[0]), t, atol=(t[-1] - t[0]) / SIZE)
    np.testing.assert_allclose(scale.high - at[:, 1] / SIZE * (scale.high - scale.low), x, atol=1e-4 * np.ptp(x))


def test_rounding_is_drawn_as_a_line():
    x = 4e-16 * np.random.default_rng(0).normal(size=300)
    assert is_constant(x)
    scale = Scale.around(float(x.min()), float(x.max()))
    np.testing.assert_allclose(scale.at(x), SIZE / 2, atol=1e-9)


@pytest.mark.parametrize("count", [1, 7, 200, 1000])
def test_a_spike_is_drawn_however_many_samples_there_are(count):
    """And every bin has its smallest and largest number, in the order in which they came."""
    rng = np.random.default_rng(1)
    n = 50_000
    t, x = np.arange(n) * 1e-3, rng.normal(size=n)
    x[n // 3], x[n // 2] = 60.0, -40.0
    bins, scale = Bins.of(t, count), Scale(-50.0, 70.0)
    (part,) = points(line(bins, x, scale))
    ys = np.array(part)[:, 1]
    resolution = 120.0 / SIZE
    assert scale.high - ys.min() * resolution == pytest.approx(60.0, abs=resolution)
    assert scale.high - ys.max() * resolution == pytest.approx(-40.0, abs=resolution)
    assert len(part) <= 2 * count + 1
    edges = [*bins.starts.tolist(), n]
    for k in {0, count // 2, count - 1}:
        own = x[edges[k] : edges[k + 1]]
        first, second = sorted((int(own.argmin()), int(own.argmax())))
        expected = [round((scale.high - own[j]) / resolution) for j in (first, second)]
        drawn = [y for place, y in part if place == bins.at[k]][-2:]
        np.testing.assert_allclose(drawn, expected, atol=1)


def test_lines_end_at_gaps_and_where_nothing_is_known():
    t = np.concatenate([np.arange(10.0), 50 + np.arange(10.0)])
    x = np.arange(20.0)
    x[5] = np.nan
    x[15] = np.inf
    parts = points(line(Bins.of(t, 100, np.array([9])), x, Scale(0.0, 19.0)))
    assert [len(part) - 1 for part in parts] == [5, 4, 5, 4]
    assert points(line(Bins.of(t, 100), np.full(20, np.nan), Scale(0.0, 1.0))) == []
    t = np.concatenate([np.arange(5000) * 1e-3, 20 + np.arange(5000) * 1e-3])
    bins = Bins.of(t, 500, np.array([4999]))
    first, second = points(line(bins, np.sin(t), Scale(-1.0, 1.0)))  # of binned samples
    assert first[-1][0] < SIZE * 5.1 / 25 < SIZE * 19.9 / 25 < second[0][0]


def test_a_band_holds_all_of_its_samples_and_leaves_out_infinite_ones():
    rng = np.random.default_rng(2)
    t, x, half = np.arange(5000.0), rng.normal(size=5000), rng.uniform(1, 2, 5000)
    half[2000:2500] = np.inf
    bins, scale = Bins.of(t, 100), Scale(-10.0, 10.0)
    paths = band(bins, x - half, x + half, scale).split("z")[:-1]
    assert len(paths) == 2
    numbers = [np.array(re.findall(r"-?\d+", path), dtype=int).reshape(-1, 2).cumsum(axis=0) for path in paths]
    for k in (3, 20, 80):
        own = slice(50 * k, 50 * k + 50)
        ys = np.concatenate([part[part[:, 0] == bins.at[k], 1] for part in numbers])
        np.testing.assert_allclose(10 - ys.min() * 20 / SIZE, (x + half)[own].max(), atol=3e-3)
        np.testing.assert_allclose(10 - ys.max() * 20 / SIZE, (x - half)[own].min(), atol=3e-3)


def test_what_is_kept_of_samples_has_every_extreme_and_a_flag_of_one_can_be_seen():
    x = np.random.default_rng(3).normal(size=10_000)
    x[1234], x[4321] = 99.0, np.nan
    bins = Bins.of(np.arange(10_000.0), 100)
    found = kept(bins, x)
    assert 1234 in found
    assert 4321 not in found
    assert len(found) <= 200
    assert (np.diff(found) > 0).all()
    short = Bins.of(np.arange(50.0), 100)
    np.testing.assert_array_equal(kept(short, x[:50]), np.arange(50))
    bins = Bins.of(np.arange(600_000) * 1e-3, 1000)
    flag = np.zeros(600_000, dtype=bool)
    flag[300_000] = True
    ((start, stop),) = spans(bins, bins.any(flag))
    assert stop - start >= SIZE / 1000
    assert start <= SIZE / 2 + 10
    assert stop >= SIZE / 2 - 10
    flag[-1] = flag[0] = True
    assert [spans(bins, bins.any(flag))[k][k and 1] for k in (0, -1)] == [0, SIZE]


def test_ticks_are_round_and_lie_between():
    for low, high in (
        (0, 1),
        (-3.2, 17),
        (1e-7, 3e-7),
        (-5e8, 2e9),
        (387.1, 387.2),
        (-1e-9, 1e-9),
        (2.4, 7.6),
        (0.9, 3.1),
    ):
        found = ticks(low, high, 4)
        assert 3 <= len(found) <= 7
        for label, x in found:
            assert low - 1e-6 * (high - low) <= x <= high + 1e-6 * (high - low)
            assert float(label) == pytest.approx(x, abs=0.01 * (high - low))
        assert len({label for label, _ in found}) == len(found)


def test_one_sample_and_no_numbers_are_drawn():
    plots = Plots(Bins.of(np.array([2.0]), 200))
    assert plots.span == (2.0, 3.0)
    panel = Panel("torques", "N m", (Curve("tau", np.array([np.nan])),))
    assert panel.scale.low < 0 < 1 < panel.scale.high
    assert list(plots.drawn(panel)) == [("tau", "c0", "", "")]
