"""adam's equations as C that CasADi generates: for each robot generated and compiled anew; linear first, body axes.

Inverse dynamics is M qdd + h, for adam has no algorithm of its own for it; forward dynamics is its articulated-body
algorithm, which is for a floating base.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Run
from benchmarks.peers.base import SWAP, Peer, UnsuitableError, is_floating, load, single_joints
from benchmarks.robots import Robot, States
from nori_dyn.interop.urdf import link_name, to_urdf
from nori_dyn.model.tree import KinematicTree
from nori_dyn.program.compiler import find_compiler
from nori_dyn.typing import Floats

MODULE = "adam.casadi"

FLAGS = ("-O3", "-march=native", "-fPIC", "-shared")


class Prepared:
    """adam on a robot, with symbols for a state, and the places of its numbers in ours."""

    def __init__(self, tree: KinematicTree) -> None:
        self.cs, adam = load("casadi"), load("adam")
        self.is_floating = is_floating(tree)
        names, self.q_from, v_from = single_joints(tree)
        if any(joint.kind == "prismatic" for joint in tree.joints):
            raise UnsuitableError("a prismatic joint: its motion subspace of one is twice as long as it should be")
        self.v_from = np.concatenate([SWAP, v_from]) if self.is_floating else v_from
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "robot.urdf"
            file.write_text(to_urdf(tree))
            gravity = np.array([*tree.gravity, 0.0, 0.0, 0.0])
            self.adam = load(MODULE).KinDynComputations(str(file), names, gravity=gravity)
        self.adam.set_frame_velocity_representation(adam.Representations.BODY_FIXED_REPRESENTATION)
        n, SX = len(names), self.cs.SX
        self.H, self.s = SX.sym("H", 4, 4), SX.sym("s", n)
        self.v, self.y = SX.sym("v", 6 + n), SX.sym("y", 6 + n)
        self.first = 0 if self.is_floating else 6

    def state(self, tree: KinematicTree, states: States) -> list[Floats]:
        """Return H, s, v and y of the first state; a fixed base does not move."""
        q, H = states.q[0], np.eye(4)
        moving = []
        for values in (states.qd[0], states.y[0]):
            found = np.zeros(6 + len(self.q_from))
            found[self.first :] = values[self.v_from]
            moving.append(found)
        if self.is_floating:
            H[:3, :3], H[:3, 3] = tree.joints[0].transform(q[:7]).E.T, q[:3]
        return [np.asfortranarray(H), q[self.q_from], *moving]

    def run(self, tree: KinematicTree, states: States, expression: Any) -> Run:
        """Return a run of an expression of H, s, v and y, one number a freedom."""
        function = self.cs.Function("f", [self.H, self.s, self.v, self.y], [self.cs.densify(expression)], {"cse": True})
        external = _compiled(self.cs, function)
        buffer, evaluate = external.buffer()
        result = np.zeros(tree.nv)
        kept = [np.ravel(values, order="F") for values in self.state(tree, states)]
        for k, values in enumerate(kept):
            buffer.set_arg(k, values.data)
        buffer.set_res(0, result.data)

        def answer() -> Floats:
            evaluate()
            found = np.empty(tree.nv)
            found[self.v_from] = result
            return found

        answer.kept = (buffer, kept, external)  # type: ignore[attr-defined]
        return Run(evaluate, answer)


def _compiled(cs: Any, function: Any) -> Any:
    """Return a function of CasADi as native code; once it is loaded its file is not needed."""
    compiler = find_compiler()
    if compiler is None:
        raise UnsuitableError("there is no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        generator = cs.CodeGenerator("f.c")
        generator.add(function)
        generator.generate(f"{folder}/")
        library = f"{folder}/f.so"
        call = [*compiler.command, *FLAGS, f"{folder}/f.c", "-o", library, "-lm"]
        subprocess.run(call, check=True, capture_output=True)
        return cs.external("f", library)


def _inverse(robot: Robot, states: States) -> Run:
    at = Prepared(robot.tree)
    M = at.adam.mass_matrix(at.H, at.s)
    h = at.adam.bias_force(at.H, at.s, at.v[:6], at.v[6:])
    return at.run(robot.tree, states, (M @ at.y + h)[at.first :])


def _forward(robot: Robot, states: States) -> Run:
    if not is_floating(robot.tree):
        raise UnsuitableError("a fixed base: its articulated-body algorithm is for a free one")
    at = Prepared(robot.tree)
    on_base = {link_name(robot.tree.names[0]): at.y[:6]}
    return at.run(robot.tree, states, at.adam.aba(at.H, at.s, at.v[:6], at.v[6:], at.y[6:], on_base))


PEER = Peer("CasADi, adam", "adam-robotics", MODULE, {"inverse_dynamics": _inverse, "forward_dynamics": _forward})
