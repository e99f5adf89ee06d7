"""What an ordering gets to see, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from nori_dyn.model.kinematics import positions
from nori_dyn.planning.scaling import natural_scaling
from nori_dyn.system.builder import System
from nori_dyn.system.trace import SymbolicSystem

ENSEMBLE = 64
"""Number of sampled configurations: enough to see a pivot that changes its sign, or comes near zero."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderingProblem:
    """A square system to be ordered.

    Attributes:
        symbolic: the worst-case pattern, with its expressions.
        samples: values of the structural nonzeros at sampled configurations (states, nnz).
        scale: factor of each structural nonzero (nnz) in natural units.
        column_bodies: the body of each column (n): its place in the tree.
        seed: seed of anything random.
    """

    symbolic: SymbolicSystem
    samples: NDArray[np.float64]
    scale: NDArray[np.float64]
    column_bodies: NDArray[np.intp]
    seed: int

    @property
    def natural_samples(self) -> NDArray[np.float64]:
        """The samples in natural units: of size 1, whatever the robot weighs."""
        return self.samples * self.scale

    def matrix(self, state: int) -> sp.csc_matrix:
        """Return D at a sampled state, with the worst-case pattern; csc_matrix, which all solvers take."""
        index = (self.symbolic.rows, self.symbolic.columns)
        return sp.csc_matrix((self.samples[state], index), shape=self.symbolic.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Ordering:
    """An order of elimination: entry (rows[k], columns[k]) is the k-th pivot.

    Attributes:
        rows: row permutation P (n): the permuted matrix is D[rows][:, columns].
        columns: column permutation Q (n).
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]


def ordering_problem(system: System, symbolic: SymbolicSystem, seed: int, n_samples: int = ENSEMBLE) -> OrderingProblem:
    """Return a system as a problem for the orderings, sampled at random configurations."""
    rng = np.random.default_rng(seed)
    Q = np.stack([system.tree.random_configuration(rng) for _ in range(n_samples)], axis=1)
    place = {entry: k for k, entry in enumerate(zip(symbolic.rows.tolist(), symbolic.columns.tolist(), strict=True))}
    samples = np.zeros((n_samples, len(place)))
    for row, column, block in system.blocks(positions(system.tree, Q)):
        for r, c in np.ndindex(block.shape[:2]):
            k = place.get((row.start + r, column.start + c))
            if k is not None:
                samples[:, k] = block[r, c]
    bodies = np.concatenate([np.full(v.slice.stop - v.slice.start, v.body) for v in system.variables])
    r, c = natural_scaling(system, symbolic, seed)
    return OrderingProblem(symbolic, samples, r[symbolic.rows] * c[symbolic.columns], bodies.astype(np.intp), seed)
