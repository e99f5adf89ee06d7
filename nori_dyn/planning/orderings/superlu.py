"""SuperLU's ordering: COLAMD columns and partial pivoting, from SciPy. Always available."""

from __future__ import annotations

import numpy as np
import scipy.sparse.linalg as spla

from nori_dyn.planning.orderings.problem import Ordering, OrderingProblem


def superlu(problem: OrderingProblem) -> Ordering:
    """Return the row and column permutations of a factorisation at the first sampled state."""
    lu = spla.splu(problem.matrix(0), permc_spec="COLAMD")
    return Ordering(np.argsort(lu.perm_r), np.argsort(lu.perm_c))
