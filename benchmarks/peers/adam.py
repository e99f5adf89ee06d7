"""adam's equations as C that CasADi generates, for each robot anew; velocities in body axes, as Pinocchio's are.

Inverse dynamics is M qdd + h, for adam has no algorithm of its own for it; forward dynamics is its articulated-body
algorithm, which is for a floating base.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Run
from benchmarks.peers.base import Maker, Peer, UnsuitableError, is_floating, load, root_pose, single_joints
from benchmarks.robots import Robot, States
from benchmarks.urdf_writer import link_name, to_urdf
from nori_dyn import interop
from nori_dyn.program.compiler import needed_compiler
from nori_dyn.typing import Floats

MODULE = "adam.casadi"

FLAGS = ("-O3", "-march=native", "-fPIC", "-shared")


def _run(inverse: bool) -> Maker:
    def make(robot: Robot, states: States) -> Run:
        tree, cs, names = robot.tree, load("casadi"), single_joints(robot.tree)
        first = 6 * (not is_floating(tree))
        if any(joint.kind == "prismatic" for joint in tree.joints):
            raise UnsuitableError("a prismatic joint: its motion subspace of one is twice as long as it should be")
        if first and not inverse:
            raise UnsuitableError("a fixed base: its articulated-body algorithm is for a free one")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "robot.urdf"
            file.write_text(to_urdf(tree))
            gravity = np.array([*tree.gravity, 0.0, 0.0, 0.0])
            adam = load(MODULE).KinDynComputations(str(file), names, gravity=gravity)
        adam.set_frame_velocity_representation(load("adam").Representations.BODY_FIXED_REPRESENTATION)
        n, SX = len(names), cs.SX
        H, s, v, y = SX.sym("H", 4, 4), SX.sym("s", n), SX.sym("v", 6 + n), SX.sym("y", 6 + n)
        if inverse:
            found = (adam.mass_matrix(H, s) @ y + adam.bias_force(H, s, v[:6], v[6:]))[first:]
        else:
            found = adam.aba(H, s, v[:6], v[6:], y[6:], {link_name(tree.names[0]): y[:6]})
        function = _compiled(cs, cs.Function("f", [H, s, v, y], [cs.densify(found)], {"cse": True}))
        peer = interop.to_convention(tree, "pinocchio", states.q[0], states.qd[0], tau=states.y[0])
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = root_pose(tree, states.q[0])
        moving = [np.concatenate([np.zeros(first), values]) for values in (peer.qd, peer.tau) if values is not None]
        kept = [np.ravel(values, order="F") for values in (pose, states.q[0, tree.nq - n :], *moving)]
        (buffer, evaluate), result = function.buffer(), np.zeros(tree.nv)
        for k, values in enumerate(kept):
            buffer.set_arg(k, values.data)
        buffer.set_res(0, result.data)

        def answer(alive: Any = (buffer, kept, function)) -> Floats:
            evaluate()
            tau = interop.from_convention(tree, "pinocchio", peer.q, tau=result).tau  # qdd alike: both as qd
            assert tau is not None
            return tau

        return Run(evaluate, answer)

    return make


def _compiled(cs: Any, function: Any) -> Any:
    """Compile a function of CasADi; once it is loaded its file is not needed."""
    with tempfile.TemporaryDirectory() as folder:
        generator = cs.CodeGenerator("f.c")
        generator.add(function)
        generator.generate(f"{folder}/")
        library = f"{folder}/f.so"
        call = [*needed_compiler("adam's C").command, *FLAGS, f"{folder}/f.c", "-o", library, "-lm"]
        subprocess.run(call, check=True, capture_output=True)
        return cs.external("f", library)


PEER = Peer("CasADi, adam", "adam-robotics", MODULE, {"inverse_dynamics": _run(True), "forward_dynamics": _run(False)})
