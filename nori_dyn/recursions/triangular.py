"""The recursions as matrices: orders, and transformations, by which D of inverse and forward dynamics is triangular.

Source: Nori IV-C, V-C, appendix B; properties 1 and 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from nori_dyn.errors import SystemShapeError
from nori_dyn.measurements.base import VariableReading
from nori_dyn.model.kinematics import positions
from nori_dyn.recursions.articulated import articulated_bodies
from nori_dyn.recursions.state import arguments
from nori_dyn.system.builder import System
from nori_dyn.typing import Floats, Indices


class Permutations(NamedTuple):
    """An order of the equations and one of the unknowns, as index arrays: D[rows][:, columns] is in that order."""

    rows: Indices
    columns: Indices


class Transformations(NamedTuple):
    """The matrices of property 2, in the order of the system: W_L D W_R is triangular in that of `fd_permutations`.

    Attributes:
        W_L: (rows, rows).
        W_R: (columns, columns): the unknowns are W_R times those in which f_i is replaced by p^A_i.
    """

    W_L: Floats
    W_R: Floats


def id_permutations(system: System) -> Permutations:
    """Return the orders by which D of inverse dynamics is lower triangular: Nori (10), (11), property 1.

    Raises:
        SystemShapeError: the sensors are not those of inverse dynamics.
    """
    up, down = range(system.tree.n_links), range(system.tree.n_links)[::-1]
    known = [(kind, i) for i in up for kind in ("fx", "qdd") if _exists(system, kind, i)]
    found = [(kind, i) for i in down for kind in ("f", "tau")]
    accelerations = [("a", i) for i in up]
    return Permutations(
        _joined([*_readings(system, known), *_equations(system, accelerations), *_equations(system, found)]),
        _joined(system.column(kind, i) for kind, i in [*known, *accelerations, *found]),
    )


def fd_permutations(system: System) -> Permutations:
    """Return the orders by which W_L D W_R of forward dynamics is lower triangular: Nori (33), (34), property 2.

    In (34) as printed the rows of (3tau) and (14) have changed places.

    Raises:
        SystemShapeError: the sensors are not those of forward dynamics.
    """
    up, down = range(system.tree.n_links), range(system.tree.n_links)[::-1]
    known = [(kind, i) for i in up for kind in ("fx", "tau") if _exists(system, kind, i)]
    forces, accelerations = [("f", i) for i in down], [("a", i) for i in up]
    torques, rates = [("tau", i) for i in up], [("qdd", i) for i in up]
    return Permutations(
        _joined([*_readings(system, known), *_equations(system, [*forces, *accelerations, *torques])]),
        _joined(system.column(kind, i) for kind, i in [*known, *forces, *accelerations, *rates]),
    )


def fd_transformations(system: System, q: Any) -> Transformations:
    """Return W^L = W^{L,4} W^{L,3} W^{L,2} W^{L,1} and W^R of forward dynamics at q (nq,): Nori (28)-(32).

    Raises:
        InputError: q has a wrong shape, or is not finite.
        SingularSystemError: a joint moves no inertia: names it.
    """
    tree = system.tree
    (q,) = arguments(tree, q=q)
    at = positions(tree, q)
    body = articulated_bodies(at, list(tree.I))
    n_rows, n_columns = system.shape
    W_R = np.eye(n_columns)
    steps = [np.eye(n_rows) for _ in range(4)]
    for i in range(tree.n_links):
        a, f, tau = (_equation(system, kind, i) for kind in ("a", "f", "tau"))
        W_R[system.column("f", i), system.column("a", i)] = body.IA[i]
        steps[0][tau, a] = body.U[i].T
        steps[1][tau, tau] = body.D_inverse[i]
        steps[2][a, tau] = -at.S[i]
        for j in tree.children[i]:
            steps[3][f, _equation(system, "a", j)] = at.X_up[j].force_to_parent(body.IA[j])
    return Transformations(steps[3] @ steps[2] @ steps[1] @ steps[0], W_R)


def _exists(system: System, kind: str, i: int) -> bool:
    """Return whether a variable has any components: a fixed joint's have none."""
    part = system.column(kind, i)
    return bool(part.stop > part.start)


def _equation(system: System, kind: str, i: int) -> slice:
    """Return the rows of (3a), (3f) or (3tau) of a body."""
    return system.rows[3 * i + ("a", "f", "tau").index(kind)].slice


def _equations(system: System, wanted: Iterable[tuple[str, int]]) -> Iterator[slice]:
    return (_equation(system, kind, i) for kind, i in wanted)


def _readings(system: System, wanted: list[tuple[str, int]]) -> Iterator[slice]:
    """Yield the rows of the sensors that read each of some variables.

    Raises:
        SystemShapeError: a variable is not read, or others are.
    """
    rows = {
        (str(row.equation.key.kind), row.equation.key.body): row.slice
        for row in system.measurements
        if isinstance(row.equation, VariableReading)
    }
    if set(rows) != set(wanted) or len(rows) != len(system.measurements):
        kinds = " and ".join(sorted({kind for kind, _ in wanted}))
        raise SystemShapeError(f"the sensors must read {kinds} of every body, and nothing else.", *system.shape)
    return (rows[key] for key in wanted)


def _joined(slices: Iterable[slice]) -> Indices:
    return np.concatenate([np.arange(s.start, s.stop) for s in slices])
