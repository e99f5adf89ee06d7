"""UMFPACK's ordering, the paper's own: unsymmetric multifrontal, on values of the worst-case pattern.

UMFPACK is GPL and optional: it comes with the extra 'umfpack' (scikit-umfpack).
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from typing import Any

import numpy as np

from nori_dyn.errors import MissingExtraError
from nori_dyn.planning.elimination import FIELD, Elimination, ZeroPivotError
from nori_dyn.planning.orderings.problem import Ordering, OrderingProblem

DRAWS = 3
"""Number of sampled states at which UMFPACK is asked; the order with least fill-in is kept."""


def has_umfpack() -> bool:
    """Whether scikit-umfpack is installed."""
    try:
        return importlib.util.find_spec("scikits.umfpack") is not None
    except ModuleNotFoundError:
        return False


def umfpack_module() -> Any:
    """scikit-umfpack.

    Raises:
        MissingExtraError: it is not installed.
    """
    if not has_umfpack():
        raise MissingExtraError("UMFPACK", "umfpack")
    return importlib.import_module("scikits.umfpack")


def umfpack(problem: OrderingProblem) -> Ordering:
    """The P and Q of UMFPACK, unscaled.

    Source: Nori, problem 2 and section IV-D; Davis, Algorithm 832.

    Raises:
        MissingExtraError: scikit-umfpack is not installed.
        ZeroPivotError: it finds no nonzero pivots.
    """
    module = umfpack_module()
    best: tuple[int, Ordering] | None = None
    for state in range(min(DRAWS, len(problem.samples))):
        context = module.UmfpackContext("di")
        context.control[module.UMFPACK_SCALE] = module.UMFPACK_SCALE_NONE
        with warnings.catch_warnings():  # a singular matrix shows in the elimination below
            warnings.simplefilter("ignore")
            _, _, P, Q, _, _ = context.lu(problem.matrix(state))
        ordering = Ordering(np.asarray(P, dtype=np.intp), np.asarray(Q, dtype=np.intp))
        try:
            fill_in = Elimination(problem.symbolic, FIELD).run(P, Q).fill_in
        except ZeroPivotError:
            continue
        if best is None or fill_in < best[0]:
            best = fill_in, ordering
    if best is None:
        raise ZeroPivotError("UMFPACK finds no nonzero pivots at the sampled states")
    return best[1]
