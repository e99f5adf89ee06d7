"""Derivatives of hybrid dynamics: where sensors read of each joint its acceleration or its force, and all wrenches.

Inverse and forward dynamics are of that kind. What is not given then has derivatives in closed form, and the planned
elimination is not needed for them.

Source: docs/design.md, 4.10.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from nori_dyn.algebra.ranges import numbers, width
from nori_dyn.errors import UnsupportedComponentError
from nori_dyn.measurements.base import VariableReading
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.guards import Guards, usual_sizes
from nori_dyn.program.limits import PIVOT_LIMIT
from nori_dyn.recursions.derivatives import hybrid_dynamics_derivatives
from nori_dyn.recursions.joint_terms import check_components
from nori_dyn.system.builder import System
from nori_dyn.system.variables import VariableKey
from nori_dyn.typing import Array, Floats

LEAST_PIVOT = 1e-6
"""Least share of its entry of M that each pivot of M usually has: below, as on long chains, M has lost digits."""

Read: TypeAlias = tuple[VariableReading, slice]
"""Rows on one variable, and where their readings are in y."""


@dataclass(frozen=True, slots=True, eq=False)
class HybridReadings:
    """The readings and known values of a robot whose estimate is hybrid dynamics.

    Attributes:
        system: the system.
        accelerated: bodies on the joints whose acceleration is given; of the others the force is.
        known: the known part of the given values, of the freedoms, then of the wrenches on links (nv + 6 n_links,).
        by_y: the coefficients of each reading (nv + 6 n_links, ny).
    """

    system: System
    accelerated: frozenset[int]
    known: Floats
    by_y: Floats

    @staticmethod
    def of(system: System) -> HybridReadings | None:
        """The readings of a system; None where its estimate is not hybrid dynamics."""
        tree, read = system.tree, _read_alone(system)
        places = {v.key: _place(system, v.key) for v in system.variables if v.kind in ("qdd", "tau", "fx")}
        if read is None or not read.keys() <= places.keys():
            return None
        size = tree.nv + 6 * tree.n_links
        if sorted(k for key in read for k in places[key]) != list(range(size)):
            return None
        known, by_y = np.zeros(size), np.zeros((size, system.ny))
        for key, rows in read.items():
            found = _given(rows, system.ny)
            if found is None:
                return None
            known[places[key]], by_y[places[key]] = found
        try:
            check_components(tree)
        except UnsupportedComponentError:
            return None
        return HybridReadings(system, frozenset(key.body for key in read if key.kind == "qdd"), known, by_y)

    def derivatives(
        self, plan: EliminationPlan, wrt: Sequence[str], columns: Sequence[int]
    ) -> tuple[Array, Guards] | None:
        """Derivatives of unknowns by some inputs (n_columns, n_directions), and their guards.

        None where there are others than accelerations and forces of joints among them, or where the factors of M lose
        digits that the planned elimination does not.

        Args:
            plan: a plan of the system.
            wrt: names of inputs: q, qd, y; q is along the freedoms.
            columns: the unknowns, by their columns.
        """
        tree, graph = self.system.tree, plan.symbolic.graph
        rows = self._rows_of_columns()
        if not rows.keys() >= set(columns):
            return None
        q, qd, y = (np.array(plan.symbolic.inputs[name], dtype=object) for name in ("q", "qd", "y"))
        given = self.known + _product(self.by_y, y)
        joints, fx = given[: tree.nv], given[tree.nv :].reshape(tree.n_links, 6)
        with_fx = "y" in wrt and bool(self.by_y[tree.nv :].any())
        accelerated = [tree.joint_names[i] for i in sorted(self.accelerated)]
        found = hybrid_dynamics_derivatives(tree, q, qd, joints, joints, accelerated, fx, with_fx)
        guards = self._guards(plan, *found.pivots)
        if guards is None:
            return None
        by: dict[str, Array] = {"q": found.by_q, "qd": found.by_qd}
        if "y" in wrt:
            moves = [found.by_given] if found.by_fx is None else [found.by_given, found.by_fx.reshape(tree.nv, -1)]
            by_sources = np.concatenate(moves, axis=1)
            by["y"] = _product(self.by_y[: by_sources.shape[1]].T, by_sources.T).T
        of_sought = np.concatenate([by[name] for name in wrt], axis=1)
        of_given = np.concatenate([self.by_y[: tree.nv] if name == "y" else 0 * by[name] for name in wrt], axis=1)
        both = np.concatenate([of_sought, of_given])
        return np.vectorize(graph.expr, otypes=[object])(both[[rows[column] for column in columns]]), guards

    def _rows_of_columns(self) -> dict[int, int]:
        """Which freedom each joint's unknown is of, by its column; nv is added to those that are given."""
        tree = self.system.tree
        return {
            column: k + tree.nv * ((v.body in self.accelerated) == (v.kind == "qdd"))
            for v in self.system.variables
            if v.kind in ("qdd", "tau") and not v.key.component
            for column, k in zip(numbers(v.slice), numbers(tree.v_slices[v.body]), strict=True)
        }

    def _guards(self, plan: EliminationPlan, D: Array, of_M: Array) -> Guards | None:
        """The guards of the factors of M; None where they lose too many digits at usual states."""
        usual = usual_sizes(plan, [*D, *of_M], plan.symbolic.inputs)
        of_D, of_M = np.split(usual, 2)
        if (of_D < LEAST_PIVOT * of_M).any():
            return None
        return tuple((pivot, PIVOT_LIMIT * float(size)) for pivot, size in zip(D, of_D, strict=True))


def _read_alone(system: System) -> dict[VariableKey, list[Read]] | None:
    """The exact rows that read each variable; None where other rows than these are of sensors or components."""
    read: defaultdict[VariableKey, list[Read]] = defaultdict(list)
    for row in system.sensor_rows:
        if not isinstance(row.equation, VariableReading) or not row.is_exact:
            return None
        read[row.equation.key].append((row.equation, row.y))
    return read


def _place(system: System, key: VariableKey) -> list[int]:
    """Where a variable lies among the freedoms, and the wrenches after them."""
    first = system.tree.nv + 6 * key.body
    return list(range(first, first + 6) if key.kind == "fx" else numbers(system.tree.v_slices[key.body]))


def _given(rows: Sequence[Read], ny: int) -> tuple[Floats, Floats] | None:
    """From rows M d_k - y = 0 of a variable: its known part, and the coefficients of each reading.

    None where they do not determine all of it.
    """
    M = np.concatenate([equation.matrix for equation, _ in rows])
    if M.shape[0] != M.shape[1] or np.linalg.matrix_rank(M) < len(M):
        return None
    known, by_y = np.zeros(len(M)), np.zeros((len(M), ny))
    ends = np.cumsum([0, *(len(equation.components) for equation, _ in rows)]).tolist()
    for (equation, of_y), edges in zip(rows, pairwise(ends), strict=True):
        own = slice(*edges)
        if equation.value is None:
            by_y[own, of_y] = np.eye(width(own))
        else:
            known[own] = equation.value
    inverse = np.linalg.inv(M)
    return inverse @ known, inverse @ by_y


def _product(A: Floats, x: Array) -> Array:
    """A x (m, ...) for numbers A (m, n), mostly zero, and expressions x (n, ...)."""
    found = np.zeros((len(A), *x.shape[1:]), dtype=object)
    for i, k in np.argwhere(A).tolist():
        found[i] = found[i] + A[i, k] * x[k]
    return found
