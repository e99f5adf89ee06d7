"""The rows of the refined system: massless frames between the bodies, and the bodies in their internal frames.

They are written out, and not made of `newton_euler` at the kinematics of the frames: (3a) stands here in conventional
accelerations, one turn in a plane a row, so that a moving point has w x (w x r) where a spatial acceleration has
products with the velocity of the origin; and (3f) has an inertia without a first moment. That is where operations are
saved. The rows of components and sensors come from their own equations (`add_parts`, `bias_of_components`,
`add_measurements`).

Source: docs/design.md, 4.4; own derivation (tests/unit/system/test_refined.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from itertools import product

import numpy as np

from nori_dyn.algebra.crossing import TransformFactor
from nori_dyn.algebra.expressions import Expr, accumulate
from nori_dyn.algebra.ranges import numbers, numbers_in
from nori_dyn.algebra.spatial import Transform, centripetal, cross, inertial_force, join, matmul, matvec
from nori_dyn.model.internal_frames import InternalLink
from nori_dyn.model.kinematics import Kinematics, world_acceleration
from nori_dyn.system.builder import System
from nori_dyn.system.optimality import Optimality, Weighing, weighing
from nori_dyn.system.rows import ComponentRow, Given, NewtonEuler, RowBlock
from nori_dyn.system.trace import (
    SymbolicState,
    SymbolicSystem,
    variable_groups,
)
from nori_dyn.system.variables import LOAD
from nori_dyn.typing import Array

Columns = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """A massless frame after a turn in a plane.

    Attributes:
        motions: columns (6) that transform as motions: its acceleration, and the multiplier of its force.
        forces: columns (6) that transform as forces: the force through it, and the multiplier of its acceleration.
        plane: the two axes that turn.
        c, s: the coordinate rotation is [[c, s], [-s, c]] on these axes.
    """

    motions: tuple[Columns, ...]
    forces: tuple[Columns, ...]
    plane: tuple[int, int]
    c: Expr
    s: Expr


@dataclass(frozen=True, slots=True)
class MasslessFrames:
    """The massless frames between a body and its parent.

    Attributes:
        body: the body.
        a: columns of their accelerations, from the parent to the body.
        f: columns of the forces through them, from the parent to the body; empty for a root.
    """

    body: int
    a: tuple[Columns, ...]
    f: tuple[Columns, ...]


def is_constraint(row: RowBlock) -> bool:
    """Whether rows are a component's."""
    return isinstance(row.key, ComponentRow)


class FrameBuilder:
    """Writes down the rows of a refined system, body by body: first the crossings, then the balances.

    Attributes:
        n_rows, n: number of its rows and unknowns so far.
        entries: by row and column.
        b: each number of b.
        groups: for each column the number of those that have its natural size.
        definitions: the row that defines each unknown that others only pass on, by its column.
        crossings: the massless frames of each body.
        turns: those after a turn in a plane.
        a, f: for each body the columns of its own acceleration and force.
        w, v: for each body its angular velocity, and the linear one of its origin.
        given_weighing: how the rows of the system as given hold.
        velocities: the velocities of each body, and of the massless frames before it.

    Args:
        system: the system as given.
        state: the inputs.
        links: the links in the frames of the program.
    """

    def __init__(self, system: System, state: SymbolicState, links: tuple[InternalLink, ...]) -> None:
        self.system = system
        self.tree = system.tree
        self.state = state
        self.links = links
        self.n_rows, self.n = system.shape
        self._first_new = self.n
        self.entries: dict[tuple[int, int], Expr] = {}
        self.b: list[Expr] = [state.graph.zero] * self.n_rows
        self.groups = variable_groups(system)
        self.definitions: dict[int, int] = {}
        self.given_weighing = weighing(system, state)
        self.crossings: list[MasslessFrames] = []
        self.turns: list[Turn] = []
        motion = [2 * i for i in range(self.tree.n_links)]
        self.a = [self._unknowns(group) for group in motion]
        self.f = [self._unknowns(group + 1) for group in motion]
        self.external: list[Columns] = []
        self.constraint_rows = frozenset(numbers_in(row.slice for row in system.rows if is_constraint(row)).tolist())
        self.w: list[Array] = []
        self.v: list[Array] = []
        self.velocities: list[list[Array]] = []

    def _unknowns(self, group: int) -> Columns:
        """Six new unknowns, each with a row that defines it."""
        new = tuple(range(self.n, self.n + 6))
        self.n += 6
        self.n_rows += 6
        self.b.extend([self.state.graph.zero] * 6)
        self.groups.extend([group] * 6)
        return new

    def rows_of(self, columns: Columns) -> Columns:
        """The rows that came with new unknowns."""
        return tuple(column - self._first_new + self.system.shape[0] for column in columns)

    def _put(self, rows: Columns, columns: Columns, block: Array) -> None:
        expr = self.state.graph.expr
        for row, values in zip(rows, block.tolist(), strict=True):
            for column, value in zip(columns, values, strict=True):
                entry = expr(value)
                if entry.index:
                    accumulate(self.entries, (row, column), entry)

    def _set_bias(self, rows: Columns, value: Array) -> None:
        for row, x in zip(rows, value, strict=True):
            self.b[row] = self.state.graph.expr(x)

    def _define(self, columns: Columns, rows: Columns) -> None:
        """Let rows define unknowns: -1 on each, and the rest of the row."""
        self._put(rows, columns, -np.eye(len(rows)))
        self.definitions.update(zip(columns, rows, strict=True))

    def cross_joint(self, i: int) -> None:
        """Add the frames of a joint and its motion: Nori (3a) in steps, with conventional accelerations."""
        tree, link = self.tree, self.links[i]
        q, qd = self.state.q[tree.q_slices[i]], self.state.qd[tree.v_slices[i]]
        self.velocities.append([])
        steps = [self._exact(step) for step in link.crossing(q).steps]
        if tree.is_root(i):
            w, v, known = self._from_world(steps)
            before: Columns | None = None
        else:
            w, v, before = self._from_parent(i, steps)
            known = np.zeros(6)
        S = link.joint.S(q)
        v_J = matvec(S, qd)
        w_J, u_J = v_J[:3], v_J[3:]
        bias = join(cross(w, w_J), 2 * cross(w, u_J) + cross(w_J, u_J)) + link.joint.bias(q, qd) + known
        rows = self.rows_of(self.a[i])
        self._put(rows, self.a[i], -np.eye(6))
        self._put(rows, tuple(self._own(i, "qdd")), S)
        if before is not None:
            self._put(rows, before, np.eye(6))
        self._set_bias(rows, bias)
        self.w.append(w + w_J)
        self.v.append(v + u_J)
        self.velocities[i] += [self.w[i], self.v[i]]

    def _from_world(self, steps: list[TransformFactor]) -> tuple[Array, Array, Array]:
        """The velocity and the acceleration, -a_g, of the world in the frame of a root."""
        a: Array = world_acceleration(self.tree.gravity)
        zero = np.zeros(3)
        return zero, zero, reduce(lambda a, step: step.X.apply_motion(a), steps, a)

    def _from_parent(self, i: int, steps: list[TransformFactor]) -> tuple[Array, Array, Columns]:
        """Add the massless frames of a joint; return the velocity and the columns of the last acceleration."""
        parent = self.tree.parents[i]
        w, v = self.w[parent], self.v[parent]
        forces = [self._unknowns(2 * i + 1) for _ in range(len(steps) + 1)]
        accelerations = [self._unknowns(2 * i) for _ in steps]
        self._put(self.rows_of(self.f[parent]), forces[0], np.eye(6))
        before = self.a[parent]
        for step, a, f_before, f in zip(steps, accelerations, forces, forces[1:], strict=False):
            X, block = step.X, step.X.motion_matrix()
            of_a, of_f = self.rows_of(a), self.rows_of(f_before)
            self._define(a, of_a)
            self._put(of_a, before, block)
            self._set_bias(of_a, join(np.zeros(3), matvec(X.E, centripetal(w, X.r))))
            self._define(f_before, of_f)
            self._put(of_f, f, np.swapaxes(block, 0, 1))
            w, v = matvec(X.E, w), matvec(X.E, v + cross(w, X.r))
            self.velocities[i] += [w, v]
            if step.plane is not None:
                _, _, c, s = step.turn
                self.turns.append(Turn((a,), (f,), step.plane, c, s))
            before = a
        of_f = self.rows_of(forces[-1])
        self._define(forces[-1], of_f)
        self._put(of_f, self.f[i], np.eye(6))
        self.crossings.append(MasslessFrames(i, tuple(accelerations), tuple(forces)))
        return w, v, before

    def _exact(self, step: TransformFactor) -> TransformFactor:
        """A step whose fixed turn, if it is one, is exactly orthogonal."""
        if step.plane is None or step.X.E.dtype == object:
            return step
        i, j, cosine, sine = step.turn
        c, s = self.state.graph.fixed_turn(cosine, sine)
        exact = step.X.E.astype(object)
        exact[i, i], exact[i, j], exact[j, i], exact[j, j] = c, s, -s, c
        return TransformFactor(Transform(exact, step.X.r), step.plane)

    def balance_body(self, i: int) -> None:
        """Add the equations of a body, Nori (3f) and (3tau), and its unknowns in its link frame."""
        link, w = self.links[i], self.w[i]
        turn = np.kron(np.eye(2), link.C)
        rows = self.rows_of(self.f[i])
        self._put(rows, self.f[i], -np.eye(6))
        self._put(rows, self.a[i], link.I)
        external, wrench = self._external(i, turn)
        self.external.append(external)
        self._put(rows, external, wrench)
        self._set_bias(rows, inertial_force(link.I, w))

        q = self.state.q[self.tree.q_slices[i]]
        tau, in_a, in_f = (self._own(i, kind) for kind in ("tau", "a", "f"))
        of_a, of_f, of_tau = (self._given_rows(given, i) for given in ("a", "f", "tau"))
        is_loaded = LOAD in self.system.kinds
        load, of_load = (self._own(i, LOAD), self._given_rows("tau_J", i)) if is_loaded else (tau, of_tau)
        self._put(of_load, load, -np.eye(len(load)))
        self._put(of_load, self.f[i], np.swapaxes(link.joint.S(q), 0, 1))
        if is_loaded:
            self._put(of_tau, tau, -np.eye(len(tau)))
            self._put(of_tau, load, np.eye(len(load)))

        self._define(in_a, of_a)
        self._put(of_a, self.a[i], turn.T)
        w_link, v_link = matvec(link.C.T, w), matvec(link.C.T, self.v[i])
        self.velocities[i] += [w_link, v_link]
        self._set_bias(of_a, join(np.zeros(3), -cross(w_link, v_link)))
        self._define(in_f, of_f)
        self._put(of_f, self.f[i], turn.T)
        self._put(of_f, self.a[i], turn.T @ link.J)
        self._set_bias(of_f, matvec(turn.T, inertial_force(link.J, w)))

    def add_parts(self, at: Kinematics) -> None:
        """Add the terms of components in (3f) and (3tau), at the kinematics of the link frames.

        What is turned is turned over the expressions: products of doubles round, and would hide that the force of a
        constraint acts through the transpose of its rows.
        """
        for part in self.system.parts:
            for key in part.acts_on:
                if key.gives == "f":
                    rows, turn = self.rows_of(self.f[key.body]), np.kron(np.eye(2), self.links[key.body].C)
                else:
                    rows = self._given_rows(key.gives, key.body)
                    turn = np.eye(len(rows))
                turn = self.over_expressions(turn)
                for variable, block in part.blocks(key, at).items():
                    columns = tuple(numbers(self.system.column(*variable)))
                    self._put(rows, columns, matmul(turn, block.astype(object)))
                for row, x in zip(rows, matvec(turn, part.bias(key, at).astype(object)), strict=True):
                    self.b[row] = self.b[row] + x

    def bias_of_components(self, at: Kinematics) -> None:
        """Set the velocity terms of the rows of components, at the velocities of the frames here.

        Where points are held, linear velocities cancel against those in spatial accelerations: what is left is what the
        rows say of links that turn on the spot. Written first, it is found under its fingerprint.
        """
        turns = [link.C.T for link in self.links]
        own = zip(turns, self.w, self.v, strict=True)
        v = tuple(join(matvec(C, w), matvec(C, v)) for C, w, v in own)
        moving = replace(at, v=v)
        turning = replace(at, v=tuple(join(v[:3], np.zeros(3)) for v in v))
        for block in filter(is_constraint, self.system.rows):
            block.equation.bias(turning, self.state.y[block.y])
            self._set_bias(tuple(numbers(block.slice)), block.equation.bias(moving, self.state.y[block.y]))

    def over_expressions(self, M: Array) -> Array:
        """A matrix of doubles as constants of the graph."""
        found = np.empty(M.shape, dtype=object)
        for place, value in np.ndenumerate(M):
            found[place] = self.state.graph.expr(value)
        return found

    def _external(self, i: int, turn: Array) -> tuple[Columns, Array]:
        """The columns of the external wrench on a body, and its terms in the force of the body.

        Where it is weighed it comes in the internal frame: there a weight that all directions share stays one number.
        """
        fx = self._own(i, "fx")
        if not self.system.is_weighted or np.count_nonzero(turn) == 6:
            return fx, -turn
        internal = self._unknowns(2 * i + 1)
        rows = self.rows_of(internal)
        self._define(fx, rows)
        self._put(rows, internal, turn.T)
        return internal, -np.eye(6)

    def _own(self, i: int, kind: str) -> Columns:
        """The columns of a variable of the original system."""
        return tuple(numbers(self.system.column(kind, i)))

    def _given_rows(self, given: Given, i: int) -> Columns:
        """The rows of the equation of motion that gives a, f or tau of a body, in the system as given."""
        return tuple(numbers(self.system.row(NewtonEuler(given, i)).slice))

    def add_measurements(self, original: SymbolicSystem) -> None:
        """Add the rows of the sensors, which are those of the original system.

        Weighed rows read the body in its internal frame instead, and so do loops: the accelerations there
        are those of points, and where points are held together no linear velocity is needed.
        """
        sensed = frozenset(numbers_in(row.slice for row in self.system.sensor_rows).tolist())
        for row in sensed - self.constraint_rows:
            self.b[row] = original.b[row]
        inner = {*self.given_weighing.weights, *self.constraint_rows}
        inside: dict[int, list[tuple[int, Expr]]] = {}
        for (row, column), entry in self.entries.items():
            inside.setdefault(row, []).append((column, entry))
        for row, column, entry in zip(original.rows.tolist(), original.columns.tolist(), original.entries, strict=True):
            if row not in sensed:
                continue
            definition = self.definitions.get(column)
            if row not in inner or definition is None:
                accumulate(self.entries, (row, column), entry)
                continue
            for other, factor in inside[definition]:
                if other != column:
                    accumulate(self.entries, (row, other), entry * factor)
            self.b[row] = self.b[row] + entry * self.b[definition]

    def weighing(self) -> Weighing:
        """How the rows hold: noise of the motion and balance of a body is in its internal frame."""
        given = self.given_weighing.covariances
        covariances = dict(given)
        for i, link in enumerate(self.links):
            turn = np.kron(np.eye(2), link.C)
            for rows, columns in ((self._given_rows("a", i), self.a[i]), (self._given_rows("f", i), self.f[i])):
                inner = self.rows_of(columns)
                noise = [covariances.pop((row, row)) for row in rows if (row, row) in given]
                alike = len({x.index for x in noise}) == 1
                for r, c in product(range(len(noise)), repeat=2):
                    terms = (turn[r, k] * turn[c, k] * noise[k] for k in range(6))
                    value = noise[0] * float(r == c) if alike else sum(terms, self.state.graph.zero)
                    covariances[inner[r], inner[c]] = value
        return Weighing(self.given_weighing.weights, covariances)

    def noisy_definitions(self, conditions: Optimality) -> dict[int, int]:
        """Definitions by rows with noise, in the conditions.

        These are of a, of tau, and of the external wrench if something weighed is known of all of it, or else of f: the
        unknown and the multiplier then leave what the noise C and the information H on the unknown make of each other,
        1 / (C + 1 / H), however small or large they are.
        """
        H = set(zip(conditions.symbolic.rows.tolist(), conditions.symbolic.columns.tolist(), strict=True))
        noisy = {row.multiplier for row in conditions.noisy}
        found: dict[int, int] = {}
        for i, external in enumerate(self.external):
            of_force = external if all((column, column) in H for column in external) else self.f[i]
            for columns, rows in (
                (self.a[i], self.rows_of(self.a[i])),
                (of_force, self.rows_of(self.f[i])),
                (self._own(i, "tau"), self._given_rows("tau", i)),
            ):
                places = [conditions.multipliers[row] for row in rows]
                if noisy.issuperset(places):
                    found |= dict(zip((*columns, *places), (*places, *columns), strict=True))
        return found

    def paired_rows(self) -> dict[int, int]:
        """For each row the unknown that is paired with its multiplier, by its column.

        That is the unknown that it defines, the one that it came with, or any that it reads.
        """
        pairs = dict(sorted(self.entries, reverse=True))
        for block in (*self.a, *self.f):
            pairs.update(zip(self.rows_of(block), block, strict=True))
        return pairs | {row: column for column, row in self.definitions.items()}
