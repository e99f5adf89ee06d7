"""Why a system cannot be planned, or solved at a state: too few or too many rows, or singular.

Errors are made in microseconds; the undetermined variables, and the reason, are computed on request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg as la

from nori_dyn.algebra.ranges import numbers
from nori_dyn.errors import SingularSystemError, SystemShapeError
from nori_dyn.system.builder import System
from nori_dyn.system.sources import NULL_TOLERANCE, natural_sizes, over_sources
from nori_dyn.system.variables import Variable
from nori_dyn.tables import listed as listed_names
from nori_dyn.typing import Floats, Indices

MOVED = 1e-6
"""Share of the largest number of a vector below which others are taken for rounding."""

MAX_DENSE = 4000
"""Largest system whose null space is computed to name its variables."""

SHOWN = 6
"""Number of names in a message, at most."""

MAX_SPREAD = 1e12
"""Ratio of weights above which they may make a system singular."""

BEYOND_DOUBT = 1e-8
"""Singular values in natural units above this share of the largest count as nonzero without any further look."""

BASE_FREEDOMS = 6

FLOAT = "The base is fixed: if this robot stands, walks or flies, load it with base='floating' (`--base floating`)."


def check_shape(system: System) -> None:
    """Check that a system has as many rows as unknowns, or at least as many where rows are weighed.

    Raises:
        SystemShapeError: with the rows of each sensor, and advice.
    """
    n_rows, n_variables = system.shape
    n_exact = int(system.exact_rows.sum())
    if n_rows == n_variables or (system.is_weighted and n_exact <= n_variables <= n_rows):
        return
    if system.is_weighted and n_exact > n_variables:
        n_rows = n_exact
    counts = Counter[str]()
    for row in system.rows:
        counts[row.equation.group] += len(row.equation.components)
    listed = ", ".join(f"{group} {count}" for group, count in counts.items())
    difference = n_rows - n_variables
    if difference < 0:
        advice = (
            f"{-difference} too few. Joint accelerations or torques and external wrenches that are neither measured "
            "nor known need a row: add sensors, or `value: 0` for known zeros."
        )
        unknown = [one.variable.name for one in system.memory if one.sigma is None and one.rate is None]
        if unknown:
            advice += f" Of {listed_names(unknown, SHOWN)}, in `memory`, there is no initial prior: give it a `sigma`."
        if not _has_free_base(system) and -difference <= BASE_FREEDOMS:
            advice += f" {FLOAT} That nothing holds its base is {BASE_FREEDOMS} rows more."
    else:
        advice = (
            f"{difference} too many that hold exactly. Remove as many rows, or give a `sigma` to those that may "
            "disagree."
        )
    raise SystemShapeError(
        f"sensors '{system.sensors.name}' on robot '{system.tree.name}': {n_variables} unknowns and {n_rows} rows "
        f"({listed}), {advice}",
        n_rows,
        n_variables,
    )


def is_determined(system: System, seed: int) -> bool:
    """Whether a system has one solution at almost all configurations, beyond doubt.

    Args:
        system: the system.
        seed: seed of the configuration at which its singular values are looked at.
    """
    try:
        check_shape(system)
    except SystemShapeError:
        return False
    if system.shape[1] > MAX_DENSE:
        return False
    D = system.D(system.tree.random_configuration(seed))
    at = over_sources(system, natural_sizes(system), D, free=system.noisy_rows)
    kept = at.M[~np.isin(at.rows, _rows_without_weight(system, system.weights))]
    exact = at.M[system.exact_rows[at.rows]]
    for M in (kept, exact.T) if system.is_weighted else (kept,):
        values = la.svdvals(M) if M.size else np.ones(1)
        if M.shape[0] < M.shape[1] or values[-1] < BEYOND_DOUBT * values[0]:
            return False
    return True


def singular_error(system: System, rank: int, seed: int) -> SingularSystemError:
    """The error that names the undetermined variables of a system that is singular at every q.

    Args:
        system: the system.
        rank: its rank at almost all configurations; where rows are weighed, that of their optimality conditions.
        seed: seed of the configuration at which the null space is taken.
    """
    what = f"{_name(system)}: the system is singular at every configuration."
    return SingularSystemError(what, explain=partial(_sensors_at_fault, system, rank, seed))


def singular_at(
    system: System, q: Floats, rcond: float, where: str = "this state", weights: Floats | None = None
) -> SingularSystemError:
    """The error that names the undetermined variables of a system at a configuration q (nq,).

    The system has a plan, so its sensors suffice at almost all configurations: at fault is this one, or a sensor
    left out.

    Args:
        system: the system.
        q: the configuration.
        rcond: one over the condition found there.
        where: the state in words.
        weights: the weights, where there are any; rows of weight 0 are left out.
    """
    what = f"{_name(system)}: the system is singular at {where} (its rcond is {rcond:.2g})."
    weights = system.weights if weights is None else weights
    kept = q.copy(), weights.copy()  # by the time that the words are asked for, a control loop has gone on
    return SingularSystemError(what, explain=partial(_state_at_fault, system, *kept, rcond == 0))


def _sensors_at_fault(system: System, rank: int, seed: int) -> tuple[str, tuple[str, ...]]:
    """The reason for a system that is singular at every configuration, and its undetermined variables."""
    q = system.tree.random_configuration(seed)
    if system.shape[1] > MAX_DENSE:
        return "" if system.is_weighted else f"Its rank is {rank} of {system.shape[1]}.", ()
    repeated = _find_repeated(system, q) if system.is_weighted else ()
    if repeated:
        names = [f"'{name}'" for name in repeated[:SHOWN]] + ["others"] * (len(repeated) > SHOWN)
        return (
            f"{' and '.join(names)} measure the same thing exactly: they contradict each other, or repeat. Remove "
            "one, or give a `sigma` to those that may disagree."
        ), repeated
    found = _null_space(system, q, system.weights, None if system.is_weighted else system.shape[1] - rank)
    advice = _advise_on_massless(system, found.variables)
    if not advice:
        one = "eplace a redundant sensor by one that measures these."
        advice = f"{FLOAT} Otherwise r{one}" if _takes_up_contacts(system, found.variables) else f"R{one}"
    return f"{found.describe()} {advice}", found.moved


def _state_at_fault(system: System, q: Floats, weights: Floats, is_lost: bool) -> tuple[str, tuple[str, ...]]:
    """The reason for a planned system that is singular at a state, and its undetermined variables.

    Args:
        system: the system.
        q: the configuration.
        weights: the weights.
        is_lost: whether nothing is known of its condition: a pivot was zero, or a number not finite.
    """
    if system.shape[1] > MAX_DENSE:
        return _advise_on_pose(system, ()), ()
    found = _null_space(system, q, weights)
    is_singular = found.rank < system.shape[1]
    spread = weights.max(initial=0.0) / weights[weights > 0].min(initial=np.inf)
    advice = _advise_on_massless(system, found.variables) if is_singular else ""
    if not is_singular and spread > MAX_SPREAD:
        advice = f"The weights span a ratio of {spread:.0e}: bring them closer together."
    elif not is_singular and is_lost:
        return f"Its rank is {found.rank}, which is full: the inputs are so large that the arithmetic overflows.", ()
    advice = (
        advice or _advise_on_left_out(system, q, weights, found.vectors) or _advise_on_pose(system, found.variables)
    )
    return f"{found.describe()} {advice}", found.moved


def _name(system: System) -> str:
    return f"sensors '{system.sensors.name}' on robot '{system.tree.name}'"


@dataclass(frozen=True, slots=True, eq=False)
class _NullSpace:
    """The null space of D, or the smallest singular vectors where its rank is full but for rounding.

    Attributes:
        rank: the rank.
        vectors: one at least (n, dimension), each with 1 as its largest number.
        moved: the names of the unknowns that they move, the largest first.
        variables: the variables that these belong to.
    """

    rank: int
    vectors: Floats
    moved: tuple[str, ...]
    variables: tuple[Variable, ...]

    def describe(self) -> str:
        """The rank and the names in words."""
        n = len(self.vectors)
        shown = ", ".join(self.moved[:SHOWN]) + (", ..." if len(self.moved) > SHOWN else "")
        return f"Its rank is {self.rank} of {n}. {'Not' if self.rank < n else 'Hardly'} determined: {shown}."


def _rows_without_weight(system: System, weights: Floats) -> Indices:
    """The rows whose weight is 0."""
    left_out: Indices = np.flatnonzero(~system.exact_rows)[weights[system.weight_of_rows] == 0]
    return left_out


def _null_space(system: System, q: Floats, weights: Floats, dimension: int | None = None) -> _NullSpace:
    """The null space of D at a configuration q (nq,), without the rows that have no weight.

    Its dimension is given, or follows from the singular values.
    """
    sizes, left_out = natural_sizes(system), _rows_without_weight(system, weights)
    free = np.intersect1d(left_out, system.noisy_rows)
    at = over_sources(system, sizes, system.D(q), free=free)
    M = at.M[~np.isin(at.rows, left_out)]
    _, values, V = la.svd(M, full_matrices=M.shape[0] < M.shape[1])
    if dimension is None:
        dimension = len(V) - int(np.sum(values > NULL_TOLERANCE * values.max(initial=0.0)))
    d = at.X @ V[len(V) - max(dimension, 1) :].T
    d /= np.abs(d).max(axis=0)
    size = np.abs(d).max(axis=1)
    moved = tuple(system.variable_names[k] for k in np.argsort(-size, kind="stable") if size[k] > MOVED)
    variables = tuple(variable for variable in system.variables if size[variable.slice].max() > MOVED)
    return _NullSpace(system.shape[1] - dimension, d, moved, variables)


def _find_repeated(system: System, q: Floats) -> tuple[str, ...]:
    """The names of exact rows that depend on each other at a configuration q (nq,), if any do."""
    at = over_sources(system, natural_sizes(system), system.D(q), free=system.noisy_rows)
    kept = system.exact_rows[at.rows]
    E = at.M[kept]
    U, values, _ = la.svd(E, full_matrices=E.shape[0] > E.shape[1])
    if not len(E) or np.sum(values > NULL_TOLERANCE * values.max(initial=0.0)) == len(E):
        return ()
    names = [name for row in system.rows for name in row.component_names]
    size = np.abs(U[:, -1])
    order = np.argsort(-size, kind="stable")
    return tuple(names[at.rows[kept][k]] for k in order if size[k] > MOVED * size.max())


def _advise_on_left_out(system: System, q: Floats, weights: Floats, vectors: Floats) -> str:
    """Advice where sensors of zero weight would determine everything; otherwise nothing."""
    rows = _rows_without_weight(system, weights)
    seen = np.asarray(system.D(q).tocsr()[rows] @ vectors)
    if not len(rows) or np.linalg.matrix_rank(seen, MOVED) < vectors.shape[1]:
        return ""
    see = rows[np.abs(seen).max(axis=1) > MOVED]
    names = [row.name for row in system.rows if np.isin(see, numbers(row.slice)).any()]
    shown = ", ".join(f"'{name}'" for name in names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    return f"The sensors that measure these have a weight of 0: {shown}. The others do not suffice."


def _advise_on_pose(system: System, undetermined: Sequence[Variable]) -> str:
    """Advice where the configuration is at fault."""
    moved = {variable.kind for variable in undetermined}
    kinds = [kind for kind in system.kinds if kind not in moved]
    advice = "The sensors suffice at almost all configurations: this one is at fault, as where a leg is stretched."
    if undetermined and kinds:
        shown = ", ".join(f"'{kind}'" for kind in kinds)
        advice += f" It determines {', '.join(kinds)} all the same: a plan with outputs=[{shown}] may do."
    if _takes_up_contacts(system, undetermined):
        advice += f" {FLOAT}"
    return f"{advice} Or add a sensor that measures these here too; in a batch, singular='nan' leaves such states out."


def _has_free_base(system: System) -> bool:
    """Whether the robot has a floating base."""
    tree = system.tree
    return any(tree.is_root(i) and tree.joints[i].nv == BASE_FREEDOMS for i in range(tree.n_links))


def _takes_up_contacts(system: System, undetermined: Sequence[Variable]) -> bool:
    """Whether a fixed base takes up contact forces that are not determined: on links of different branches."""
    tree = system.tree
    touched = [variable.body for variable in undetermined if variable.kind == "fx"]
    branches = any(j not in tree.subtree(i) and i not in tree.subtree(j) for i in touched for j in touched)
    return branches and not _has_free_base(system)


def _advise_on_massless(system: System, undetermined: Sequence[Variable]) -> str:
    """Advice on links without inertia whose joint accelerations are not determined, if there are any."""
    tree = system.tree
    free = [variable.body for variable in undetermined if variable.kind == "qdd"]
    links = [f"link '{tree.names[i]}'" for i in free if not tree.I[list(tree.subtree(i))].any()]
    if not links:
        return ""
    return (
        f"Cause: {', '.join(links)} and all that it carries have no inertia, so no torque determines the acceleration "
        "of its joint. Give it an inertia, lock the joint, or measure its acceleration."
    )
