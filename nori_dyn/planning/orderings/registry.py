"""The orderings that exist, by name; `auto` tries each that can run here, and searches the refined system."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from nori_dyn.errors import UnknownOrderingError
from nori_dyn.planning.orderings.markowitz import markowitz
from nori_dyn.planning.orderings.problem import Ordering, OrderingProblem
from nori_dyn.planning.orderings.recursive import recursive
from nori_dyn.planning.orderings.superlu import superlu
from nori_dyn.planning.orderings.umfpack import has_umfpack, umfpack

OrderingMethod: TypeAlias = Callable[[OrderingProblem], Ordering]

RECURSIVE, MARKOWITZ = "recursive", "markowitz"

ORDERINGS: dict[str, OrderingMethod] = {
    RECURSIVE: recursive,
    MARKOWITZ: markowitz,
    "umfpack": umfpack,
    "superlu": superlu,
}

AUTO = "auto"


def orderings_named(name: str) -> tuple[str, ...]:
    """The names of the orderings that a name stands for.

    Raises:
        UnknownOrderingError: there is no such ordering.
    """
    if name == AUTO:
        return tuple(key for key in ORDERINGS if key != "umfpack" or has_umfpack())
    if name not in ORDERINGS:
        raise UnknownOrderingError("ordering", name, (*ORDERINGS, AUTO))
    return (name,)
