"""The recursions as matrices: orders, and transformations, by which D of inverse and forward dynamics is triangular.

Source: Nori IV-C, V-C, appendix B; properties 1 and 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.ranges import numbers_in, width
from nori_dyn.errors import SystemShapeError
from nori_dyn.measurements.base import VariableReading
from nori_dyn.model.kinematics import positions
from nori_dyn.recursions.articulated import articulated_bodies
from nori_dyn.recursions.joint_terms import unsupported
from nori_dyn.recursions.state import arguments
from nori_dyn.system.builder import System
from nori_dyn.system.rows import Given, NewtonEuler
from nori_dyn.system.variables import Kind, VariableKey
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
    """The orders by which D of inverse dynamics is lower triangular: Nori (10), (11), property 1.

    Raises:
        SystemShapeError: the sensors are not those of inverse dynamics.
        UnsupportedComponentError: the robot has components.
    """
    _check_rigid(system)
    up, down = range(system.tree.n_links), range(system.tree.n_links)[::-1]
    known = _variables(system, ("fx", "qdd"), up)
    found = [*_motion(("a",), up), *_motion(("f", "tau"), down)]
    return _permutations(system, known, found, [VariableKey(key.gives, key.body) for key in found])


def fd_permutations(system: System) -> Permutations:
    """The orders by which W_L D W_R of forward dynamics is lower triangular: Nori (33), (34), property 2.

    In (34) as printed the rows of (3tau) and (14) have changed places.

    Raises:
        SystemShapeError: the sensors are not those of forward dynamics.
        UnsupportedComponentError: the robot has components.
    """
    _check_rigid(system)
    up, down = range(system.tree.n_links), range(system.tree.n_links)[::-1]
    known = _variables(system, ("fx", "tau"), up)
    found = [*_motion(("f",), down), *_motion(("a",), up)]
    columns = [VariableKey(key.gives, key.body) for key in found]
    return _permutations(system, known, [*found, *_motion(("tau",), up)], [*columns, *_variables(system, ("qdd",), up)])


def _variables(system: System, kinds: tuple[Kind, ...], bodies: Iterable[int]) -> list[VariableKey]:
    """The variables of some kinds, body by body, that have components: those of a fixed joint have none."""
    keys = (VariableKey(kind, i) for i in bodies for kind in kinds)
    return [key for key in keys if width(system.column(*key))]


def _motion(gives: tuple[Given, ...], bodies: Iterable[int]) -> list[NewtonEuler]:
    """The equations of motion that give some kinds of variables, body by body."""
    return [NewtonEuler(given, i) for i in bodies for given in gives]


def _permutations(
    system: System, known: list[VariableKey], motion: list[NewtonEuler], columns: list[VariableKey]
) -> Permutations:
    """The order of measurement rows and then equations of motion, by that of the unknowns."""
    rows = [*_readings(system, known), *(system.row(key).slice for key in motion)]
    return Permutations(numbers_in(rows), numbers_in(system.column(*key) for key in [*known, *columns]))


def fd_transformations(system: System, q: ArrayLike) -> Transformations:
    """W^L = W^{L,4} W^{L,3} W^{L,2} W^{L,1} and W^R of forward dynamics at q (nq,): Nori (28)-(32).

    Raises:
        InputError: q has a wrong shape, or is not finite.
        SingularSystemError: a joint moves no inertia: names it.
        UnsupportedComponentError: the robot has components.
    """
    _check_rigid(system)
    tree = system.tree
    (q,) = arguments(tree, q=q)
    at = positions(tree, q)
    body = articulated_bodies(at, list(tree.I))
    n_rows, n_columns = system.shape
    W_R = np.eye(n_columns)
    steps = [np.eye(n_rows) for _ in range(4)]
    for i in range(tree.n_links):
        a, f, tau = (_equation(system, given, i) for given in ("a", "f", "tau"))
        W_R[system.column("f", i), system.column("a", i)] = body.IA[i]
        steps[0][tau, a] = body.U[i].T
        steps[1][tau, tau] = body.D_inverse[i]
        steps[2][a, tau] = -at.S[i]
        for j in tree.children[i]:
            steps[3][f, _equation(system, "a", j)] = at.X_up[j].force_to_parent(body.IA[j])
    return Transformations(steps[3] @ steps[2] @ steps[1] @ steps[0], W_R)


def _check_rigid(system: System) -> None:
    """Check that a robot has rigid bodies on joints alone, of which the properties are.

    Raises:
        UnsupportedComponentError: it has components.
    """
    for part in system.parts[:1]:
        raise unsupported(system.tree, part, "Nori's triangular forms are of rigid bodies on joints alone.")


def _equation(system: System, given: Given, i: int) -> slice:
    """The rows of (3a), (3f) or (3tau) of a body."""
    return system.row(NewtonEuler(given, i)).slice


def _readings(system: System, wanted: Sequence[VariableKey]) -> Iterator[slice]:
    """Yield the rows of the sensors that read each of some variables.

    Raises:
        SystemShapeError: a variable is not read, or others are.
    """
    rows = {row.equation.key: row.slice for row in system.measurements if isinstance(row.equation, VariableReading)}
    if set(rows) != set(wanted) or len(rows) != len(system.measurements):
        kinds = " and ".join(sorted({key.kind for key in wanted}))
        raise SystemShapeError(f"the sensors must read {kinds} of every body, and nothing else.", *system.shape)
    return (rows[key] for key in wanted)
