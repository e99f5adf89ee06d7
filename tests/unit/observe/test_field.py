"""Spans over a prime field against NumPy's rank, and rows over the sources against D in doubles."""

import numpy as np

from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.observe.exact import exact_system
from nori_dyn.observe.field import Span, field_rows
from nori_dyn.system.builder import System
from tests.systems import ACCELERATIONS, TORQUES, sensor_set
from tests.trees import TREES


def sparse(row) -> dict[int, int]:
    return {k: int(value) % PRIME for k, value in enumerate(row) if value}


def test_span_of_integers():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        rows, columns = rng.integers(1, 9, size=2)
        rank = int(rng.integers(0, min(rows, columns) + 1))
        A = rng.integers(-3, 4, size=(rows, rank)) @ rng.integers(-3, 4, size=(rank, columns))
        A *= rng.random(A.shape) < 0.9
        span = Span.of(map(sparse, A))
        assert span.dimension == np.linalg.matrix_rank(A), seed
        inside = rng.integers(-3, 4, size=rows) @ A
        assert not span.remainder(sparse(inside)), seed
        anywhere = rng.integers(-3, 4, size=columns)
        larger = np.linalg.matrix_rank(np.vstack([A, anywhere])) > span.dimension
        copy = span.copy()
        assert copy.add(sparse(anywhere)) == larger, seed
        assert copy.dimension == span.dimension + larger, seed
        assert bool(span.remainder(sparse(anywhere))) == larger, seed


def test_rows_over_the_sources_have_the_rank_of_d():
    """Rows that read single numbers of d, of which the field and an SVD must think alike."""
    for name, tree in TREES.items():
        system = System(tree, sensor_set(ACCELERATIONS, TORQUES))
        rows = field_rows(system, exact_system(system))
        D = system.D(tree.random_configuration(5)).toarray()
        dynamic = np.zeros(len(D), dtype=bool)
        for row in system.rows:
            dynamic[row.slice] = row.is_dynamic
        free = D.shape[1] - int(dynamic.sum())
        assert len(rows.sources) == free, name
        rng = np.random.default_rng(0)
        for _ in range(5):
            columns = rng.choice(D.shape[1], size=6, replace=False)
            reading = np.zeros((6, D.shape[1]))
            reading[range(6), columns] = 1.0
            rank = np.linalg.matrix_rank(np.vstack([D, reading])) - dynamic.sum()
            assert Span.of([*rows.measured.values(), *(rows.variables[c] for c in columns)]).dimension == rank, name
