"""Joints that move independently, and those that follow, so that loops, couplings and contacts that stand stay closed.

With gaps g(q) of the loops and J = [J_i J_d] by the independent freedoms and those that depend on them,

    g(q) = 0,    J qd = 0,    J qdd + dJ/dt qd = 0

give q, qd and qdd of the dependent ones. Rows that repeat others are left out, so that J_d is square.

Derivatives by the motion are those of the implicit function. With lambda the derivatives of a sum by all freedoms that
move, multipliers mu follow one after the other from J_d^T mu = what is left of lambda_d, for qdd, qd and q: each is one
sweep over the rows J qdd + dJ/dt qd, as J qd is what they are at the acceleration qd without velocity.

Source: RBDA ch. 8.3 for the equations; the derivatives are ours (tests/unit/identification/test_moving_joints.py).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.linalg as la

from nori_dyn.algebra.arrays import checked
from nori_dyn.algebra.ranges import numbers, width
from nori_dyn.algebra.ranks import independent_columns
from nori_dyn.algebra.spatial import matvec
from nori_dyn.components.loop import Loop
from nori_dyn.errors import InputError, UnknownModelNameError
from nori_dyn.identification.motion_function import MotionFunction, Pullback
from nori_dyn.measurements.binding import scalar_rows
from nori_dyn.model.closure import CLOSED, TIGHT, closed, gap_rate, gaps
from nori_dyn.model.kinematics import link_motion, moving, positions
from nori_dyn.model.tree import WORLD, Frame, KinematicTree
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.program.tracing import RESULT, jacobian, traced
from nori_dyn.system.builder import System
from nori_dyn.system.parts import parts_of
from nori_dyn.tables import listed
from nori_dyn.typing import Array, Booleans, Floats, Indices

Hold: TypeAlias = Literal["pose", "point"]
"""How a contact stands: flat, or on a point about which it turns."""

DEPENDENT = 1e-6
"""Share of a column of J that other columns leave of it below which it depends on them."""

STEP = 0.2
"""How far independent joints move at most [rad or m] between two configurations that are closed one after the other."""

NEARBY = 0.02
"""How far from rest [rad or m] some configurations can be closed, unless it is singular."""

CORRECTIONS = 10
"""Steps of Newton's method at the last of these; it takes two or three."""

NEAR_SINGULAR = 0.1
"""Share of its least singular value at rest that J_d keeps: closer to a singular position motions do not get."""


def closing_rows(tree: KinematicTree, q: Array, qd: Array, qdd: Array) -> Array:
    """J qdd + dJ/dt qd (rows, ...) of all loops and couplings, over any scalar; batch axes last."""
    at, found = replace(moving(positions(tree, q), qd), qdd=qdd), []
    for equation in (each for part in parts_of(tree) for each in part.equations):
        rows = equation.bias(at, np.zeros(0))
        for key, block in equation.blocks(at).items():
            of = qdd[tree.v_slices[key.body]] if key.kind == "qdd" else link_motion(at, key.body)[0]
            rows = rows + matvec(block, of)
        found.append(rows)
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class DependentJoints:
    """Freedoms that follow those of joints that move independently.

    Attributes:
        tree: the robot; contacts that stand are among its loops.
        independent: the freedoms that are followed, and others that move.
        dependent: those that follow.
        rest: the closed configuration (nq,) from which closed ones are sought.
        gap: from q to g and its derivatives (n_dependent, 1 + nv), of as many rows as follow.
        jacobian: J (n_dependent, nv) at q, and unused velocities and accelerations.
        rows: J qdd + dJ/dt qd (n_dependent,).
    """

    tree: KinematicTree
    independent: tuple[int, ...]
    dependent: tuple[int, ...]
    rest: Floats
    gap: CompiledFunction
    jacobian: CompiledFunction
    rows: MotionFunction

    @staticmethod
    def of(
        tree: KinematicTree, candidates: Sequence[int], preferred: Collection[int], rest: Floats
    ) -> DependentJoints | None:
        """Choose those that follow; None where nothing closes.

        Args:
            tree: the robot, with contacts that stand.
            candidates: bodies whose joints, of one freedom each, may move independently.
            preferred: the freedoms of motors: others follow first.
            rest: a closed configuration (nq,).

        Raises:
            InputError: joints that loops leave free and that are not among the candidates, a singular position.
            CompilerError: as for `compile`.
        """
        if not tree.closing_parts:
            return None
        may = [tree.v_slices[i].start for i in candidates]
        J = gap_rate(positions(tree, rest))
        anywhere = gap_rate(positions(tree, tree.draw(np.random.default_rng(0))))
        felt = np.maximum(np.abs(J).max(axis=0), np.abs(anywhere).max(axis=0))
        bound = np.flatnonzero(felt > DEPENDENT * felt.max()).tolist()
        groups = (
            [k for k in bound if k not in may],
            [k for k in bound if k in may and k not in preferred],
            [k for k in bound if k in may and k in preferred],
        )
        dependent: list[int] = []
        for group in groups:
            dependent += _independent_columns(J, dependent, group)
        left = [k for k in groups[0] if k not in dependent]
        if left:
            freedoms = set(groups[0])
            names = [
                name
                for name, s in zip(tree.joint_names, tree.v_slices, strict=True)
                if freedoms.intersection(range(s.start, s.stop))
            ]
            raise InputError(
                f"robot '{tree.name}': loops, couplings and contacts leave {len(left)} of the freedoms of "
                f"{listed(names, 4)} open, so they do not follow the joints that move. Let more joints of one freedom "
                "move, lock some, or begin `at` a configuration where loops are not singular."
            )
        independent = tuple(k for k in may if k not in dependent)
        kept = sorted(_independent_columns(J[:, dependent].T, [], range(len(J))))
        gap = traced(lambda tree, q: gaps(positions(tree, q))[kept], tree, ("q",))
        (of_q,) = jacobian(gap, ["q"], "reverse").outputs.values()
        gap = replace(gap, outputs={"gap": np.column_stack([gap.outputs[RESULT], of_q])})
        rows = traced(lambda tree, q, qd, qdd: closing_rows(tree, q, qd, qdd)[kept], tree, ("q", "qd", "qdd"))
        found = DependentJoints(
            tree,
            independent,
            tuple(dependent),
            rest,
            CompiledFunction(gap),
            CompiledFunction(jacobian(rows, ["qdd"], "reverse")),
            MotionFunction.of(rows, (*independent, *dependent)),
        )
        if independent and not found._closed(found._near(NEARBY))[1].any():
            raise InputError(
                f"robot '{tree.name}': loops, couplings and contacts cannot be closed next to the configuration `at` "
                "which it stands: it is singular, as of legs that are stretched or parallel. Begin at another one."
            )
        return found

    @cached_property
    def moved(self) -> Indices:
        """All freedoms that move, independent ones first."""
        return np.array([*self.independent, *self.dependent], dtype=np.intp)

    @cached_property
    def least(self) -> float:
        """The least singular value that J_d is to have."""
        return NEAR_SINGULAR * float(np.linalg.svd(self._J(self.rest[None])[1][0], compute_uv=False)[-1])

    def whole(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Floats, Floats]:
        """Motion of the robot with those that follow, of one (N, nq), (N, nv), (N, nv) of the independent joints.

        Samples that cannot be closed are no numbers.
        """
        Q, is_closed = self._closed(q)
        Qd, Qdd = qd.copy(), qdd.copy()
        J_i, J_d = self._J(Q)
        of_i, of_d = list(self.independent), list(self.dependent)
        Qd[:, of_d] = -_solved(J_d, _times(J_i, qd[:, of_i]))
        Qdd[:, of_d] = -_solved(J_d, _times(J_i, qdd[:, of_i]) + self.rows(Q, Qd, 0 * Qdd))
        for part in (Q, Qd, Qdd):
            part[~is_closed] = np.nan
        return Q, Qd, Qdd

    def _near(self, size: float) -> Floats:
        """Random configurations (N, nq) next to rest, of independent joints."""
        q = np.tile(self.rest, (len(self.moved), 1))
        q[:, self._of_q] += size * np.random.default_rng(0).uniform(-1, 1, (len(q), len(self._of_q)))
        return q

    def _closed(self, q: Floats) -> tuple[Floats, Booleans]:
        """Closed configurations (N, nq) with the independent joints of some, and which were found."""
        way = q[:, self._of_q] - self.rest[self._of_q]
        Q = np.tile(self.rest, (len(q), 1))
        n = max(1, math.ceil(np.abs(way).max(initial=0.0) / STEP))
        for k in range(1, n + 1):
            self._move(Q, way / n)
            for _ in range(CORRECTIONS if k == n else 1):
                gap = np.asarray(self.gap.batch(Q))
                if np.abs(gap[:, :, 0]).max(initial=0.0) <= TIGHT:
                    break
                step = np.zeros((len(Q), self.tree.nv))
                wanted = -_solved(gap[:, :, 1:][:, :, self.dependent], gap[:, :, 0])
                step[:, self.dependent] = np.clip(wanted, -STEP, STEP)
                Q = self.tree.integrate(Q.T, step.T).T
        Q[:, self._of_q] = q[:, self._of_q]
        return Q, np.abs(gaps(positions(self.tree, Q.T))).max(axis=0, initial=0.0) <= CLOSED

    @cached_property
    def _of_q(self) -> list[int]:
        """Numbers in q of the independent joints."""
        places = {v.start: s.start for s, v in zip(self.tree.q_slices, self.tree.v_slices, strict=True) if width(v)}
        return [places[k] for k in self.independent]

    def _move(self, Q: Floats, way: Floats) -> None:
        """Move independent joints, and those that follow to the first order."""
        J_i, J_d = self._J(Q)
        step = np.zeros((len(Q), self.tree.nv))
        step[:, self.independent] = way
        step[:, self.dependent] = -_solved(J_d, _times(J_i, way))
        Q[:] = self.tree.integrate(Q.T, step.T).T

    def _J(self, Q: Floats) -> tuple[Floats, Floats]:
        """J_i (N, n_dependent, n_independent) and J_d (N, n_dependent, n_dependent)."""
        none = np.zeros((len(Q), self.tree.nv))
        J = np.asarray(self.jacobian.batch(Q, none, none))
        return J[:, :, self.independent], J[:, :, self.dependent]

    def velocities(self, Q: Floats) -> Floats:
        """Velocities (N, n_moved, n_independent) of all that moves at unit ones of the independent joints."""
        J_i, J_d = self._J(Q)
        own = np.tile(np.eye(J_i.shape[2]), (len(Q), 1, 1))
        return np.concatenate([own, -_solved(J_d, J_i)], axis=1)

    def pullback(self, q: Floats, qd: Floats, qdd: Floats, by: Floats) -> Floats:
        """Derivatives (3, N, n_independent) by the independent joints, of those by all that move (3, N, n_moved)."""
        J_i, J_d = self._J(q)
        n, none = len(self.independent), np.zeros(qd.shape)
        by, found = by.copy(), []
        for k, (rate, change) in ((2, (qd, qdd)), (1, (none, qd)), (0, (none, none))):
            mu = _solved(np.swapaxes(J_d, 1, 2), by[k][:, n:])
            found.append(by[k][:, :n] - _times(np.swapaxes(J_i, 1, 2), mu))
            if k:
                by[:k] -= self.rows.pullback(q, rate, change, mu)[:k]
        return np.array(found[::-1])

    def turned(self, q: Floats, x: Floats, velocity: Floats) -> Floats:
        """Derivatives (3, N, n_moved) of x_d . T y, for x_d (N, n_dependent) and the velocity T y (N, n_moved)."""
        return -self._by_position(q, velocity, _solved(np.swapaxes(self._J(q)[1], 1, 2), x))

    def _by_position(self, q: Floats, velocity: Floats, factors: Floats) -> Floats:
        """Derivatives (3, N, n_moved) by q alone of J times velocities (N, n_moved), for factors (N, n_dependent)."""
        whole, none = np.zeros((len(q), self.tree.nv)), np.zeros((len(q), self.tree.nv))
        whole[:, self.moved] = velocity
        found = self.rows.pullback(q, none, whole, factors)
        found[1:] = 0.0
        return found

    def of_motion(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Pullback]:
        """How near motions get to a singular position (N, 1): 1 where they are to stop; and its derivatives."""
        U, s, Vt = np.linalg.svd(self._J(q)[1], full_matrices=False)
        ratios = self.least / np.maximum(s[:, -1:], np.finfo(float).tiny)

        def pullback(factors: Floats) -> Floats:
            velocity = np.column_stack([np.zeros((len(q), len(self.independent))), Vt[:, -1]])
            return self._by_position(q, velocity, U[:, :, -1] * (-factors * ratios / s[:, -1:]))

        return ratios, pullback

    def named(self, k: int, ratio: float) -> str:
        """What such a ratio means, in words."""
        return f"loops come {ratio:.3g} times as near to a singular position as they are to, from that `at` the rest"


def _independent_columns(J: Floats, beside: Sequence[int], among: Sequence[int]) -> list[int]:
    """Columns among some that are independent of others, and of one another."""
    if not len(among):
        return []
    left = J[:, list(among)].copy()
    sizes = np.linalg.norm(left, axis=0)
    if len(beside):
        Q = la.orth(J[:, list(beside)])
        left -= Q @ (Q.T @ left)
    sizes = np.where(sizes > DEPENDENT * np.abs(J).max(), sizes, np.inf)
    return [int(among[k]) for k in independent_columns(left, DEPENDENT, sizes)]


def _times(A: Floats, x: Floats) -> Floats:
    """A x (N, rows) of matrices (N, rows, n) and vectors (N, n)."""
    return np.asarray((A @ x[:, :, None])[:, :, 0])


def _solved(A: Floats, b: Floats) -> Floats:
    """Solutions of A x = b for square matrices (N, n, n) and vectors (N, n) or matrices (N, n, m).

    A singular matrix is made regular by rounding.
    """
    A = A + np.finfo(float).eps * np.abs(A).max(axis=(1, 2), keepdims=True, initial=1e-300) * np.eye(A.shape[1])
    found = np.linalg.solve(A, b[:, :, None] if b.ndim == 2 else b)
    return np.asarray(found[:, :, 0] if b.ndim == 2 else found)


@dataclass(frozen=True, eq=False)
class MovingJoints:
    """Joints of one freedom that move independently, others that follow, and those of a robot that stand still.

    Attributes:
        tree: the robot.
        bodies: those whose joints move independently.
        still: the configuration (nq,) of those that stand still.
        dependents: the freedoms that follow; None where none do.
    """

    tree: KinematicTree
    bodies: tuple[int, ...]
    still: Floats
    dependents: DependentJoints | None = None

    @cached_property
    def of_q(self) -> list[int]:
        """Numbers in q of those that move independently."""
        return [self.tree.q_slices[i].start for i in self.bodies]

    @cached_property
    def of_v(self) -> list[int]:
        """Their freedoms."""
        return [self.tree.v_slices[i].start for i in self.bodies]

    @cached_property
    def moved(self) -> list[int]:
        """All freedoms that move, these first."""
        return self.of_v if self.dependents is None else self.dependents.moved.tolist()

    @cached_property
    def still_joints(self) -> tuple[str, ...]:
        """The names of joints that stand still."""
        names, slices = self.tree.joint_names, self.tree.v_slices
        return tuple(
            name for name, s in zip(names, slices, strict=True) if width(s) and not set(numbers(s)) & set(self.moved)
        )

    @cached_property
    def followers(self) -> tuple[int, ...]:
        """Bodies whose joints, of one freedom, follow."""
        single = [i for i, joint in enumerate(self.tree.joints) if (joint.nq, joint.nv) == (1, 1)]
        return tuple(i for i in single if self.tree.v_slices[i].start in self.moved and i not in self.bodies)

    def whole(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Floats, Floats]:
        """Motion q (N, nq), qd and qdd (N, nv) of the robot from that of independent joints (N, n_joints).

        Samples at which loops cannot be closed are no numbers.
        """
        n, nv = len(q), self.tree.nv
        every = np.tile(self.still, (n, 1)), np.zeros((n, nv)), np.zeros((n, nv))
        every[0][:, self.of_q], every[1][:, self.of_v], every[2][:, self.of_v] = q, qd, qdd
        return every if self.dependents is None else self.dependents.whole(*every)

    def pullback(self, q: Floats, qd: Floats, qdd: Floats, by: Floats) -> Floats:
        """Derivatives (3, N, n_joints) by independent joints, of those by all that move (3, N, n_moved)."""
        return by if self.dependents is None else self.dependents.pullback(q, qd, qdd, by)


def moving_joints(
    robot: KinematicTree | System, names: Sequence[str] | None, at: Any, contacts: Mapping[str, Hold]
) -> tuple[MovingJoints, set[int]]:
    """Joints that move and that follow, and the freedoms of motors.

    Args:
        robot: the robot, or a system, whose sensors say where there are no motors.
        names: of joints that may move independently; all of one freedom when None.
        at: the configuration (nq,) of what stands still, near which loops are closed; neutral when None.
        contacts: frames that stand there, and how.

    Raises:
        UnknownModelNameError: a joint or frame that the robot does not have.
        InputError: none moves, or one of several freedoms; see `DependentJoints.of`.
        NotClosedError: loops that cannot be closed.
    """
    tree = robot.tree if isinstance(robot, System) else robot
    bodies, motors = _named(tree, names), _motors(robot)
    still = tree.neutral_configuration() if at is None else tree.normalised(checked("at", at, (tree.nq,)))
    still = closed(tree, still) if tree.closing_parts else still
    dependents = DependentJoints.of(standing(tree, contacts, still), bodies, motors, still)
    if dependents is not None:
        bodies = tuple(i for i in bodies if tree.v_slices[i].start in dependents.independent)
        if not isinstance(robot, System) and len(motors) == sum(j.nv == 1 for j in tree.joints) and not contacts:
            motors = set(dependents.independent)
        if not bodies:
            raise InputError(f"robot '{tree.name}': loops and contacts leave no joint that moves independently.")
    return MovingJoints(tree, bodies, still, dependents), motors


def holds_of(contacts: Sequence[str] | Mapping[str, Hold]) -> dict[str, Hold]:
    """How each contact stands: flat where only its name is given.

    Raises:
        InputError: a contact that stands in no such way.
    """
    names = [contacts] if isinstance(contacts, str) else contacts
    found: dict[str, Hold] = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names, "pose")
    for name, how in found.items():
        if how not in ("pose", "point"):
            raise InputError(f"contact '{name}' stands in no way called {how!r}: say 'pose' (flat) or 'point'.")
    return found


def standing(tree: KinematicTree, contacts: Mapping[str, Hold], still: Floats) -> KinematicTree:
    """The robot with contacts as loops that hold frames where they are.

    Raises:
        UnknownModelNameError: there is no such frame.
    """
    X_0, frames, loops = positions(tree, still).X_0, dict(tree.frames), list(tree.components)
    for name, how in contacts.items():
        frame = tree.frame(name)
        ground = f"{name}_ground"
        frames[ground] = Frame(WORLD, frame.X @ X_0[frame.link])
        loops.append(Loop(name=f"{name}_stands", frames=[name, ground], constrains=how))
    return tree.replace(frames=frames, components=tuple(loops)) if contacts else tree


def _named(tree: KinematicTree, names: Sequence[str] | None) -> tuple[int, ...]:
    """Bodies whose joints may move: those that are named, or all of one freedom."""
    found = single = [i for i, joint in enumerate(tree.joints) if (joint.nq, joint.nv) == (1, 1)]
    if names is not None:
        known = [name for name, joint in zip(tree.joint_names, tree.joints, strict=True) if joint.nv]
        wanted = [names] if isinstance(names, str) else list(names)
        for name in wanted:
            if name not in known:
                raise UnknownModelNameError("moving joint", name, known, f"robot '{tree.name}'")
        found = sorted({tree.joint(name) for name in wanted})
    for i in found:
        if i not in single:
            raise InputError(
                f"joint '{tree.joint_names[i]}' is {tree.joints[i].kind}, with {tree.joints[i].nv} freedoms: "
                "only joints of one freedom are moved. Leave it out of `joints`; it stays where `at` puts it, "
                "or follows."
            )
    if not found:
        raise InputError(f"robot '{tree.name}': no joint of one freedom moves, so there is nothing to excite.")
    return tuple(found)


def _motors(robot: KinematicTree | System) -> set[int]:
    """The freedoms that have a motor: of which sensors do not say that the torque is zero; or those with drives."""
    tree = robot.tree if isinstance(robot, System) else robot
    single = {s.start: name for s, name in zip(tree.v_slices, tree.joint_names, strict=True) if width(s) == 1}
    if isinstance(robot, System):
        rows = scalar_rows(robot, robot.sensor_rows, "tau")
        return set(single) - {freedom for row, _, freedom, _ in rows if row.is_exact and not width(row.y)}
    driven = {k for k, name in single.items() if name in tree.drives and tree.drives[name].effort > 0}
    return driven or set(single)
