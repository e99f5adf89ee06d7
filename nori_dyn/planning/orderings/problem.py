"""The input of an ordering, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nori_dyn.planning.elimination import Elimination
from nori_dyn.planning.scaling import natural_scaling, sample_entries
from nori_dyn.system.builder import System
from nori_dyn.system.trace import SymbolicSystem
from nori_dyn.typing import Floats, Indices

STABILITY_STATES = 64
"""Number of sampled configurations: enough to see a pivot that changes its sign, or comes near zero."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderingProblem:
    """A square system to be ordered.

    Attributes:
        symbolic: the worst-case pattern, with its expressions.
        samples: values of the structural nonzeros at sampled configurations (states, nnz).
        scale: factor of each structural nonzero (nnz) in natural units.
        definitions: unknowns that only one row may be used for, by column: see `RefinedSystem`.
        seed: seed of anything random.
    """

    symbolic: SymbolicSystem
    samples: Floats
    scale: Floats
    definitions: Mapping[int, int]
    seed: int

    @property
    def column_bodies(self) -> Indices:
        """The index of the body of each column (n)."""
        return self.symbolic.bodies

    @property
    def natural_samples(self) -> Floats:
        """The samples in natural units: of size 1, whatever the robot weighs."""
        return self.samples * self.scale

    def matrix(self, state: int) -> sp.csc_matrix:
        """D at a sampled state, with the worst-case pattern; csc_matrix, which all solvers take."""
        index = (self.symbolic.rows, self.symbolic.columns)
        return sp.csc_matrix((self.samples[state], index), shape=self.symbolic.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Ordering:
    """An order of elimination: entry (rows[k], columns[k]) is the k-th pivot.

    Attributes:
        rows: row permutation P (n): the permuted matrix is D[rows][:, columns].
        columns: column permutation Q (n).
    """

    rows: Indices
    columns: Indices

    @staticmethod
    def of(work: Elimination[Any]) -> Ordering:
        """The order in which an elimination was done."""
        return Ordering(
            np.array([step.row for step in work.pivots], dtype=np.intp),
            np.array([step.column for step in work.pivots], dtype=np.intp),
        )


def ordering_problem(
    system: System,
    symbolic: SymbolicSystem,
    seed: int,
    n_samples: int = STABILITY_STATES,
    definitions: Mapping[int, int] | None = None,
) -> OrderingProblem:
    """A system, sampled at random configurations, as a problem for the orderings.

    Args:
        system: the system as given.
        symbolic: the same over expressions, or a refinement of it.
        seed: seed of the states.
        n_samples: number of states.
        definitions: see `OrderingProblem`.
    """
    samples, _ = sample_entries(system, symbolic, seed, n_samples, at_rest=True)
    r, c = natural_scaling(system, symbolic, seed)
    return OrderingProblem(symbolic, samples, r[symbolic.rows] * c[symbolic.columns], definitions or {}, seed)
