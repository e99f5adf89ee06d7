"""SuperLU's ordering: COLAMD columns and partial pivoting, from SciPy. Always available."""

from __future__ import annotations

import numpy as np
import scipy.sparse.linalg as spla

from nori_dyn.algebra.matching import structural_rank
from nori_dyn.planning.orderings.problem import Ordering, OrderingProblem


def superlu(problem: OrderingProblem) -> Ordering:
    """The row and column permutations of a factorisation at the first sampled state.

    Raises:
        RuntimeError: the matrix is singular there.
    """
    matrix = problem.matrix(0)
    entries = matrix.copy()
    entries.eliminate_zeros()
    if structural_rank(entries) < matrix.shape[0]:  # SuperLU does not survive some of these
        raise RuntimeError("the matrix is structurally singular")
    lu = spla.splu(matrix, permc_spec="COLAMD")
    return Ordering(np.argsort(lu.perm_r), np.argsort(lu.perm_c))
