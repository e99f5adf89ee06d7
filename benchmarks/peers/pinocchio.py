"""Pinocchio, called from Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Run
from benchmarks.peers.base import Maker, Peer, UnsuitableError, is_floating, load
from benchmarks.robots import Robot, States
from benchmarks.urdf_writer import to_urdf
from nori_dyn import interop
from nori_dyn.components.loop import Loop
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats

MODULE = "pinocchio"

CUBIC = 300
"""Largest robot that it is asked for: the memory of its Data grows with the cube, to 15 GB at 600 joints."""


class PinocchioModel:
    """A tree as its model. v = P qd, with the same P for qdd and tau: a permutation, as freedoms are of joints of one.

    Raises:
        ValueError: a robot too large.
        ModelError: a joint that a URDF has not.
    """

    def __init__(self, tree: KinematicTree) -> None:
        if tree.nv > CUBIC:
            raise ValueError(f"{tree.nv} freedoms: its memory grows with the cube")
        self.tree, self.pin = tree, load(MODULE)
        root = (self.pin.JointModelFreeFlyer(), tree.joint_names[0]) if is_floating(tree) else ()
        self.model = self.pin.buildModelFromXML(to_urdf(tree), *root)
        self.data = self.model.createData()
        neutral = np.tile(tree.neutral_configuration(), (tree.nv, 1))
        columns = interop.to_convention(tree, self.model, neutral, np.eye(tree.nv)).qd
        assert columns is not None
        self.P = columns.T

    def state(self, states: States) -> tuple[Floats, Floats, Floats]:
        """q (N, nq), v and y (N, nv) as the model has them."""
        return self._q(states.q), states.qd @ self.P.T, states.y @ self.P.T

    def _q(self, q: Floats) -> Floats:
        return interop.to_convention(self.tree, self.model, q).q

    def first(self, states: States) -> list[Floats]:
        return [values[0] for values in self.state(states)]

    def back(self, values: Floats) -> Floats:
        """An array over its freedoms (..., nv) over ours."""
        return np.asarray(values) @ self.P

    def matrix_back(self, M: Floats, symmetric: bool) -> Floats:
        """A matrix over its freedoms (nv, nv) over ours; of a symmetric one it fills the upper triangle alone."""
        return self.P.T @ (np.triu(M) + np.triu(M, 1).T if symmetric else M) @ self.P


def _vector(name: str) -> Maker:
    """Make runs of an algorithm of q, v and y."""

    def make(robot: Robot, states: States) -> Run:
        at = PinocchioModel(robot.tree)
        solve, arguments = getattr(at.pin, name), (at.model, at.data, *at.first(states))
        return Run(lambda: solve(*arguments), lambda: at.back(solve(*arguments)))

    return make


def _matrix(name: str, n_arguments: int, symmetric: bool = False) -> Maker:
    """Make runs whose answer is a matrix over the freedoms, or several one below the other."""

    def make(robot: Robot, states: States) -> Run:
        at = PinocchioModel(robot.tree)
        compute, arguments = getattr(at.pin, name), (at.model, at.data, *at.first(states)[:n_arguments])

        def answer() -> Floats:
            found = compute(*arguments)
            parts = found if isinstance(found, tuple) else (found,)
            return np.concatenate([at.matrix_back(np.array(part), symmetric) for part in parts])

        return Run(lambda: compute(*arguments), answer)

    return make


def _coriolis(robot: Robot, states: States) -> Run:
    """Make a run that answers with C qd: C itself is not unique."""
    at = PinocchioModel(robot.tree)
    q, v, _ = at.first(states)
    compute, model, data = at.pin.computeCoriolisMatrix, at.model, at.data
    return Run(lambda: compute(model, data, q, v), lambda: at.back(compute(model, data, q, v) @ v))


def _with_loops(articulated: bool) -> Maker:
    """Make runs of forward dynamics with loops that hold points together: by constraintDynamics, or by lcaba.

    The first takes one step of a sparse factorisation, which is exact where no row repeats another.
    """

    def make(robot: Robot, states: States) -> Run:
        at, tree = PinocchioModel(robot.tree), robot.tree
        pin, model, data = at.pin, at.model, at.data
        constraints, found = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for loop in tree.components:
            if not isinstance(loop, Loop) or loop.constrains != "point":
                raise UnsuitableError(f"a {loop.type}: it is given loops that hold points together")
            ends: list[Any] = []
            for frame in map(tree.frame, loop.frames):
                ends += [model.getJointId(tree.joint_names[frame.link]), pin.SE3(frame.X.E.T, frame.X.r)]
            kind, local = pin.ContactType.CONTACT_3D, pin.ReferenceFrame.LOCAL
            constraints.append(pin.RigidConstraintModel(kind, model, *ends, local))
        found.extend([constraint.createData() for constraint in constraints])
        arguments: tuple[Any, ...] = (model, data, *at.first(states), constraints, found)
        solve: Callable[..., Floats]
        if articulated:
            pin.computeJointMinimalOrdering(model, data, constraints)
            solve, arguments = pin.lcaba, (*arguments, pin.ProximalSettings(1e-10, 1e-6, 20))
        else:
            pin.initConstraintDynamics(model, data, constraints, found)
            solve = pin.constraintDynamics
        return Run(lambda: solve(*arguments), lambda: at.back(solve(*arguments)))

    return make


PEER = Peer(
    "Pinocchio",
    "pin",
    MODULE,
    {
        "inverse_dynamics": _vector("rnea"),
        "forward_dynamics": _vector("aba"),
        "constrained_dynamics": _with_loops(articulated=False),
        "rnea": _vector("rnea"),
        "aba": _vector("aba"),
        "crba": _matrix("crba", 1, symmetric=True),
        "minverse": _matrix("computeMinverse", 1, symmetric=True),
        "coriolis": _coriolis,
        "rnea derivatives": _matrix("computeRNEADerivatives", 3),
        "aba derivatives": _matrix("computeABADerivatives", 3),
    },
)

LOOPS = Peer("Pinocchio LCABA", "pin", MODULE, {"constrained_dynamics": _with_loops(articulated=True)})
