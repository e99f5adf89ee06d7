"""The rank of D(q) for almost all q, and which unknowns its null space moves, exactly: elimination over a prime field.

The entries of D are rational functions of q. At a random point of the field with p about 2^127 the rank is never
above that for almost all q. It is below it with probability at most `ENTRY_DEGREE` n / p for n unknowns, by
Schwartz-Zippel on a nonzero minor that is cleared of denominators joint by joint; and likewise that of D with a further
row that reads one unknown, which has a larger rank if and only if the null space moves that unknown. So all of it is
wrong with a probability below 1e-31 for a thousand unknowns; two points square that.

Of a robot with loops or couplings almost no q is closed, and where it is not, rows that repeat others are independent.
So there rank and null space are taken in doubles, at closed configurations.

Source: docs/design.md, 6.2; Schwartz (1980); own derivation (tests/unit/observe/test_numeric.py, test_closed.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from nori_dyn.algebra.matching import structural_rank
from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.algebra.ranks import CLEAR, largest_clear
from nori_dyn.observe.exact import ExactSystem, exact_system
from nori_dyn.observe.field import Span, Vector, field_rows
from nori_dyn.observe.numeric import Reduction
from nori_dyn.system.builder import System
from nori_dyn.typing import Booleans, Floats

SETTLED = 1e-7
"""Share of the largest number below which one is taken as zero at a configuration."""


@dataclass(slots=True)
class Open:
    """What is not determined, of which sensors settle some: over the field for almost all q, or in doubles at one.

    Attributes:
        remainders: what is left of numbers of d modulo what is read, by their columns; empty where nothing is.
        total: how many independent combinations are open before any number is read.
        settled: what has been settled since.
    """

    remainders: Mapping[int, Vector]
    total: int
    settled: Span = field(default_factory=Span)

    @staticmethod
    def at_configuration(changes: Floats) -> Open:
        """What is open where independent changes of d (n, k) are those that no row sees."""
        sizes = np.abs(changes).max(axis=0)
        seen = [np.flatnonzero(np.abs(row) > SETTLED * sizes) for row in changes]
        remainders = {
            c: {int(k): float(changes[c, k] / sizes[k]) for k in own} for c, own in enumerate(seen) if len(own)
        }
        return Open(remainders, changes.shape[1])

    @property
    def dimension(self) -> int:
        """How many independent combinations are open."""
        return self.total - self.settled.dimension

    def gain(self, columns: Sequence[int]) -> int:
        """How many of them are settled by reading some numbers of d."""
        return Span.of(self.settled.remainder(self.remainders.get(k, {})) for k in columns).dimension

    def settle(self, columns: Sequence[int]) -> None:
        """Read some numbers of d."""
        self.settled.extend(self.remainders.get(k, {}) for k in columns)

    def copy(self) -> Open:
        """A copy of which numbers are read on its own."""
        return Open(self.remainders, self.total, self.settled.copy())


ENTRY_DEGREE = 8
"""Largest degree of an entry in the random numbers, cleared of denominators: at most 5, a free joint's."""

POINTS = 2
"""Number of random points of the field."""

CLOSED = 8
"""Number of closed configurations at which a robot with loops is looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class GenericRank:
    """What holds for almost all q; of a robot with loops or couplings, for almost all closed ones.

    Attributes:
        rank: the rank of D.
        structural_rank: largest number of nonzeros no two of which share a row or a column: a bound on the rank.
        moved: whether the null space moves each unknown (n,).
        open: what the rows leave open, at one point.
        error: bound on the probability that any of this is wrong; None where it is numerical.
        looks: closed configurations at which the rank is that, where it is numerical.
        gap: there, how many times smaller singular values that are taken as zero are than others, at the least;
            infinite at full rank, and where the rank is exact.
    """

    rank: int
    structural_rank: int
    moved: Booleans
    open: Open
    error: float | None
    looks: tuple[Floats, ...] = ()
    gap: float = np.inf


def generic_rank(system: System, seed: int = 0) -> GenericRank:
    """The rank of a system for almost all q, and the unknowns that are not determined.

    Args:
        system: the system; it may have any number of rows, weighed or not.
        seed: seed of the random points, or closed configurations.

    Raises:
        NotClosedError: loops that cannot be closed.
    """
    return _rank_where_closed(system, seed) if system.tree.closing_parts else _exact_rank(system, seed)


def _exact_rank(system: System, seed: int) -> GenericRank:
    n = system.shape[1]
    structural, found = 0, []
    for k in range(POINTS):
        exact = exact_system(system, POINTS * seed + k)
        if not k:
            structural = _structural_rank(exact, seed)
        rows = field_rows(system, exact)
        seen = Span.of(rows.measured.values())
        left = {column: rest for column in range(n) if (rest := seen.remainder(rows.variables[column]))}
        found.append((n - len(rows.sources) + seen.dimension, left))
    rank = max(rank for rank, _ in found)
    at_rank = [left for other, left in found if other == rank]
    moved = np.zeros(n, dtype=bool)
    moved[[column for left in at_rank for column in left]] = True
    open_ = Open(at_rank[0], n - rank)
    return GenericRank(rank, structural, moved, open_, (n * ENTRY_DEGREE * (n + 1) / PRIME) ** POINTS)


def closed_looks(reduction: Reduction, seed: int) -> tuple[int, tuple[Floats, ...], float]:
    """The rank of D at closed configurations that are nothing special, random ones at which it is that, and its gap.

    The gap is how many times smaller singular values that are taken as zero are than others there, at the least.

    Raises:
        NotClosedError: loops that cannot be closed.
    """
    samples = reduction.system.tree.random_configurations(CLOSED, seed)
    ranks = reduction.ranks_at(samples)
    rank = largest_clear([at.rank for at in ranks], [at.clarity for at in ranks])
    found = [(at, q) for at, q in zip(ranks, samples, strict=True) if at.rank == rank]
    clear = [(at, q) for at, q in found if at.clarity >= CLEAR] or found
    return rank, tuple(q for _, q in clear), min(at.gap for at, _ in clear)


def _rank_where_closed(system: System, seed: int) -> GenericRank:
    """The rank at closed configurations, and what the null spaces there move."""
    reduction = Reduction(system, seed)
    rank, looks, gap = closed_looks(reduction, seed)
    changes = [reduction.null_space(q, system.shape[1] - rank) for q in looks]
    moved = np.any([d.any(axis=1) for d in changes], axis=0)
    structural = _structural_rank(exact_system(system, seed), seed)
    return GenericRank(rank, structural, moved, Open.at_configuration(changes[0]), None, looks, gap)


def _structural_rank(exact: ExactSystem, seed: int) -> int:
    """The size of a maximum matching of rows and columns by nonzeros.

    Rows and columns are shuffled: SciPy's search takes a minute on some systems as they come, and a millisecond so.
    """
    rng = np.random.default_rng(seed)
    places = np.array([*exact.entries], dtype=np.intp).reshape(-1, 2)
    rows, columns = (rng.permutation(n)[places[:, k]] for k, n in enumerate(exact.shape))
    return structural_rank(sp.csr_matrix((np.ones(len(places)), (rows, columns)), shape=exact.shape))
