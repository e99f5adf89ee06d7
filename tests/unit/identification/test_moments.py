"""Triangular factors say of samples what the samples say."""

from itertools import pairwise

import numpy as np
import pytest

from nori_dyn.identification.elimination import EliminatedRows, SampleRows
from nori_dyn.identification.moments import EXTRA, Moments, Segments, joined, row_moments, triangular
from nori_dyn.identification.regression import RegressorLayout


def samples(n: int, k: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, k + 1 + len(EXTRA)))
    rows[:, k + 1] = 1.0
    rows[:, k + 2] += 3.0
    return rows


@pytest.mark.parametrize("n", [1, 5, 9, 400])
def test_a_factor_has_the_inner_products_of_its_rows(n):
    rows = samples(n, 5)
    R = triangular(rows.copy(order="F"))
    assert R.shape == (9, 9)
    np.testing.assert_array_equal(R, np.triu(R))
    np.testing.assert_allclose(R.T @ R, rows.T @ rows, atol=1e-12 * n)


def test_moments_are_those_of_the_samples():
    rows = samples(300, 4)
    m = Moments.of([0, 2, 3, 5], rows.copy(order="F"))
    values = np.random.default_rng(1).normal(size=6)
    y, c = rows[:, 6], rows[:, 7]
    residual = rows[:, :4] @ values[[0, 2, 3, 5]] + c
    assert m.rms(m.residual(values)) == pytest.approx(np.sqrt(np.mean(residual**2)))
    assert m.mean(m.unit("reading")) == pytest.approx(y.mean())
    assert m.spread(m.unit("reading")) == pytest.approx(y.std())
    expected = np.corrcoef(y, y + residual)[0, 1]
    assert m.correlation(m.unit("reading"), m.prediction(values)) == pytest.approx(expected)
    np.testing.assert_allclose(m.gradient(values), rows[:, :4].T @ residual)


def test_correlation_with_what_does_not_vary_is_no_number():
    rows = samples(50, 2)
    rows[:, 4] = 0.0
    m = Moments.of([0, 1], rows.copy(order="F"))
    assert np.isnan(m.correlation(m.unit("reading"), m.prediction(np.zeros(2))))


@pytest.mark.parametrize("n", [100, 125, 300, 1000, 6000])
def test_logs_of_a_hundred_samples_have_segments_enough(n):
    """As many as are left of 10 s behind a filter of 4 Hz."""
    segments = Segments()
    segments.expect(n)
    first = 0
    while first < n:
        rows = samples(min(segments.size, n - first), 3)
        segments.add([Moments.of([0, 1, 2], rows.copy(order="F"))], len(rows))
        first += len(rows)
    assert 12 <= len(segments.each()) <= 25
    assert sum(each[0].n for each in segments.each()) == n


def test_least_squares_on_factors_are_those_on_all_rows():
    rows = samples(500, 3)
    parts = [Moments.of([2, 0, 1], rows[k : k + 70].copy(order="F")) for k in range(0, 500, 70)]
    whole = Moments.joined(parts)
    assert whole.n == 500
    over = whole.rows(3)
    found = np.linalg.lstsq(over[:, :3], -over[:, 3], rcond=None)[0]
    expected = np.linalg.lstsq(rows[:, :3], -rows[:, 6], rcond=None)[0]
    np.testing.assert_allclose(found[[2, 0, 1]], expected, rtol=1e-10)


def test_segments_are_joined_in_order_and_stay_few():
    rows = samples(10_000, 2)
    segments = Segments(most=8)
    first = 0
    while first < len(rows):
        part = rows[first : first + segments.size]
        segments.add([Moments.of([0, 1], part.copy(order="F"))], len(part))
        first += len(part)
    found = segments.each()
    assert 8 <= len(found) <= 17
    sizes = [of_rows[0].n for of_rows in found]
    assert sum(sizes) == 10_000
    assert len(set(sizes[:-1])) == 1
    for of_rows, (first, last) in zip(found, pairwise(np.cumsum([0, *sizes])), strict=True):
        own = rows[first:last]
        np.testing.assert_allclose(of_rows[0].R.T @ of_rows[0].R, own.T @ own, atol=1e-9)
    (whole,) = joined(found)
    np.testing.assert_allclose(whole.R.T @ whole.R, rows.T @ rows, rtol=1e-9, atol=1e-8)


def test_segments_begin_as_large_as_what_is_to_come_allows():
    rows = samples(1000, 2)
    segments = Segments(most=8)
    segments.expect(1000)
    size = segments.size
    assert 8 <= 1000 // size <= 16
    for k in range(0, 1000, size):
        part = rows[k : k + size]
        segments.add([Moments.of([0, 1], part.copy(order="F"))], len(part))
    segments.expect(10**6)
    assert segments.size == size
    (whole,) = joined(segments.each())
    np.testing.assert_allclose(whole.R.T @ whole.R, rows.T @ rows, rtol=1e-9, atol=1e-8)


def test_rows_of_a_regressor_are_kept_one_by_one():
    rng = np.random.default_rng(2)
    layout = RegressorLayout(of_W=((0, 1), (1, 0), (0, 0)), of_N=(), shape=(2, 2, 0))
    rows = EliminatedRows(("first", "second"), layout, ((0, 0), (1, 0), (1, 1)), ())
    entries, late = rng.normal(size=(30, 5)), rng.normal(size=(30, 3))
    y, shares, counts = rng.normal(size=(30, 2)), rng.uniform(size=(30, 2)), (rng.uniform(size=(30, 2)) > 0.3) * 1.0
    samples = SampleRows(entries, y, late, counts, shares, np.arange(30.0))
    first, second = row_moments(rows, samples, entries[:, layout.constants])
    np.testing.assert_array_equal(first.columns, [1, 0])
    np.testing.assert_array_equal(second.columns, [0])
    np.testing.assert_array_equal(second.delayed, [0, 1])
    size = np.sqrt(shares[:, 1])
    by_hand = np.column_stack([entries[:, [1]], late[:, 1:], size, size * y[:, 1], entries[:, 4]]) * counts[:, [1]]
    np.testing.assert_allclose(second.R.T @ second.R, by_hand.T @ by_hand, atol=1e-12)
    assert second.n == pytest.approx(counts[:, 1] @ shares[:, 1])
