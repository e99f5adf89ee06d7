"""Pinocchio: linear first, a free joint's velocity in body axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.measure import Run
from benchmarks.peers.base import SWAP, Peer, UnsuitableError, is_floating, load, single_joints
from benchmarks.robots import Robot, States
from nori_dyn.components.loop import Loop
from nori_dyn.interop.urdf import to_urdf
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats, Indices

MODULE = "pinocchio"

CUBIC = 300
"""Largest robot that it is asked for: the memory of its Data grows with the cube, to 15 GB at 600 joints."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A model, and the places of its numbers: q = own[q_places], v = own[v_places]."""

    pin: Any
    model: Any
    data: Any
    q_places: Indices
    v_places: Indices

    def back(self, values: Floats) -> Floats:
        """Return an array over its freedoms (..., nv) over ours."""
        found = np.empty_like(values)
        found[..., self.v_places] = values
        return found


def prepared(tree: KinematicTree) -> Prepared:
    """Return a tree as its model.

    Raises:
        ValueError: a robot too large.
        ModelError: a joint that a URDF has not.
    """
    if tree.nv > CUBIC:
        raise ValueError(f"{tree.nv} freedoms: its memory grows with the cube")
    pin = load(MODULE)
    floating = is_floating(tree)
    names, q_from, v_from = single_joints(tree)
    model = pin.buildModelFromXML(to_urdf(tree), *([pin.JointModelFreeFlyer()] if floating else []))
    q_places, v_places = np.empty(model.nq, dtype=np.intp), np.empty(model.nv, dtype=np.intp)
    if floating:
        q_places[:7], v_places[:6] = np.arange(7), SWAP
    for name, q, v in zip(names, q_from, v_from, strict=True):
        joint = model.joints[model.getJointId(name)]
        q_places[joint.idx_q], v_places[joint.idx_v] = q, v
    return Prepared(pin, model, model.createData(), q_places, v_places)


def _inverse(robot: Robot, states: States) -> Run:
    at, q, v, a = _state(robot, states)
    rnea, model, data = at.pin.rnea, at.model, at.data
    return Run(lambda: rnea(model, data, q, v, a), lambda: at.back(rnea(model, data, q, v, a)))


def _forward(robot: Robot, states: States) -> Run:
    at, q, v, tau = _state(robot, states)
    aba, model, data = at.pin.aba, at.model, at.data
    return Run(lambda: aba(model, data, q, v, tau), lambda: at.back(aba(model, data, q, v, tau)))


def _with_loops(robot: Robot, states: States) -> tuple[Prepared, tuple[Any, ...]]:
    """Return a robot with loops that hold points together, and the arguments of its constrained algorithms.

    Raises:
        UnsuitableError: another component.
    """
    at, q, v, tau = _state(robot, states)
    pin, model, data, tree = at.pin, at.model, at.data, robot.tree
    constraints, found = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for loop in tree.components:
        if not isinstance(loop, Loop) or loop.constrains != "point":
            raise UnsuitableError(f"a {loop.type}: it is given loops that hold points together")
        ends: list[Any] = []
        for frame in map(tree.frame, loop.frames):
            ends += [model.getJointId(tree.joint_names[frame.link]), pin.SE3(frame.X.E.T, frame.X.r)]
        constraints.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *ends, pin.ReferenceFrame.LOCAL))
    found.extend([constraint.createData() for constraint in constraints])
    return at, (model, data, q, v, tau, constraints, found)


def _constrained(robot: Robot, states: States) -> Run:
    """Return a run of forward dynamics with loops by a sparse factorisation, in one step: no row repeats another."""
    at, arguments = _with_loops(robot, states)
    model, data, *_, constraints, found = arguments
    at.pin.initConstraintDynamics(model, data, constraints, found)
    solve = at.pin.constraintDynamics
    return Run(lambda: solve(*arguments), lambda: at.back(solve(*arguments)))


def _constrained_bodies(robot: Robot, states: States) -> Run:
    """Return a run of the same by articulated bodies, with early elimination of the loops."""
    at, arguments = _with_loops(robot, states)
    model, data, *_, constraints, _ = arguments
    at.pin.computeJointMinimalOrdering(model, data, constraints)
    solve, settings = at.pin.lcaba, at.pin.ProximalSettings(1e-10, 1e-6, 20)
    return Run(lambda: solve(*arguments, settings), lambda: at.back(solve(*arguments, settings)))


def _parallel(name: str, threads: int) -> Callable[[Robot, States], Run]:
    def make(robot: Robot, states: States) -> Run:
        at = prepared(robot.tree)
        function, pool = getattr(at.pin, name), at.pin.ModelPool(at.model, threads)
        q = np.asfortranarray(states.q[:, at.q_places].T)
        v, y = (np.asfortranarray(values[:, at.v_places].T) for values in (states.qd, states.y))
        result = np.zeros_like(v, order="F")

        def call() -> None:
            function(threads, pool, q, v, y, result)

        def answer() -> Floats:
            call()
            return at.back(result.T)

        return Run(call, answer, len(states.q))

    return make


def _matrix(compute: Callable[[Prepared, Floats, Floats, Floats], Any], symmetric: bool = False) -> Any:
    """Return the maker of a run whose answer is a matrix over the freedoms, or several one below the other."""

    def make(robot: Robot, states: States) -> Run:
        at, q, v, y = _state(robot, states)

        def answer() -> Floats:
            parts = compute(at, q, v, y)
            parts = parts if isinstance(parts, tuple) else (parts,)
            return np.concatenate([_turned(at, np.array(part), symmetric) for part in parts])

        return Run(lambda: compute(at, q, v, y), answer)

    return make


def _coriolis(robot: Robot, states: States) -> Run:
    """Return a run that answers with C qd: C itself is not unique."""
    at, q, v, _ = _state(robot, states)
    compute, model, data = at.pin.computeCoriolisMatrix, at.model, at.data
    return Run(lambda: compute(model, data, q, v), lambda: at.back(compute(model, data, q, v) @ v))


def _turned(at: Prepared, matrix: Floats, symmetric: bool) -> Floats:
    if symmetric:  # only its upper triangle is filled
        matrix = np.triu(matrix) + np.triu(matrix, 1).T
    found = np.empty_like(matrix)
    found[np.ix_(at.v_places, at.v_places)] = matrix
    return found


def _state(robot: Robot, states: States) -> tuple[Prepared, Floats, Floats, Floats]:
    at = prepared(robot.tree)
    return at, states.q[0, at.q_places], states.qd[0, at.v_places], states.y[0, at.v_places]


PEER = Peer(
    "Pinocchio",
    "pin",
    MODULE,
    {
        "inverse_dynamics": _inverse,
        "forward_dynamics": _forward,
        "constrained_dynamics": _constrained,
        "inverse_dynamics batch": _parallel("rneaInParallel", 1),
        "forward_dynamics batch": _parallel("abaInParallel", 1),
        "rnea": _inverse,
        "aba": _forward,
        "crba": _matrix(lambda at, q, v, y: at.pin.crba(at.model, at.data, q), symmetric=True),
        "minverse": _matrix(lambda at, q, v, y: at.pin.computeMinverse(at.model, at.data, q), symmetric=True),
        "coriolis": _coriolis,
        "rnea derivatives": _matrix(lambda at, q, v, y: at.pin.computeRNEADerivatives(at.model, at.data, q, v, y)),
        "aba derivatives": _matrix(lambda at, q, v, y: at.pin.computeABADerivatives(at.model, at.data, q, v, y)),
    },
)

LOOPS = Peer("Pinocchio LCABA", "pin", MODULE, {"constrained_dynamics": _constrained_bodies})

THREADED = Peer(
    "Pinocchio, 2 threads",
    "pin",
    MODULE,
    {
        "inverse_dynamics batch": _parallel("rneaInParallel", 2),
        "forward_dynamics batch": _parallel("abaInParallel", 2),
    },
)
