"""MJX: MuJoCo in JAX, many states at once on the device that JAX finds, in single precision; no contacts."""

from __future__ import annotations

from benchmarks.harness import Run
from benchmarks.peers.base import Maker, Peer, load
from benchmarks.peers.mujoco import MujocoModel
from benchmarks.robots import Robot, States
from nori_dyn import interop
from nori_dyn.typing import Floats

MODULE = "mujoco.mjx"

SAME = 1e-3
"""Difference from ours, in doubles, up to which its answer is the same."""


def _run(inverse: bool) -> Maker:
    def make(robot: Robot, states: States) -> Run:
        jax, mjx = load("jax"), load(MODULE)
        at, tree, n = MujocoModel(robot.tree), robot.tree, len(states.q)
        q, qd = states.q, states.qd
        given = {"qdd" if inverse else "tau": states.y}
        peer = interop.to_convention(tree, "mujoco", q, qd, joints=at.joints, **given)
        model = mjx.put_model(at.model)
        empty = mjx.make_data(model)

        def solved(q: object, qd: object, y: object) -> object:
            data = empty.replace(qpos=q, qvel=qd, **{"qacc" if inverse else "qfrc_applied": y})
            return mjx.inverse(model, data).qfrc_inverse if inverse else mjx.forward(model, data).qacc

        run = jax.jit(jax.vmap(solved))
        arrays = [jax.device_put(x.astype("float32")) for x in (peer.q, peer.qd, peer.qdd if inverse else peer.tau)]

        def answer() -> Floats:
            found = {"tau" if inverse else "qdd": jax.device_get(run(*arrays)).astype(float)}
            state = interop.from_convention(tree, "mujoco", peer.q, peer.qd, joints=at.joints, **found)
            values = state.tau if inverse else state.qdd
            assert values is not None
            return values

        return Run(lambda: run(*arrays).block_until_ready(), answer, n, SAME)

    return make


PEER = Peer("MJX", "mujoco-mjx", MODULE, {"inverse_dynamics": _run(True), "forward_dynamics": _run(False)})
