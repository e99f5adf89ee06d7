"""MuJoCo: bare rigid bodies, no contacts."""

from __future__ import annotations

from benchmarks.harness import Run
from benchmarks.peers.base import Maker, Peer, UnsuitableError, is_floating, load, single_joints
from benchmarks.robots import Robot, States
from benchmarks.urdf_writer import link_name, to_urdf
from nori_dyn import interop
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats

MODULE = "mujoco"


class MujocoModel:
    """A tree as its model.

    Raises:
        UnsuitableError: a joint of several freedoms.
        ValueError: MuJoCo does not take it, such as a link without mass.
    """

    def __init__(self, tree: KinematicTree) -> None:
        single_joints(tree)
        self.mujoco = mujoco = load(MODULE)
        spec = mujoco.MjSpec.from_string(to_urdf(tree))
        spec.compiler.fusestatic = False
        spec.compiler.balanceinertia = False
        spec.compiler.boundmass = spec.compiler.boundinertia = 0.0
        spec.option.gravity = tree.gravity
        spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        if is_floating(tree):
            spec.body(link_name(tree.names[0])).add_freejoint(name=tree.joint_names[0])
        self.model = spec.compile()
        if self.model.nv != tree.nv:
            raise UnsuitableError(f"it loads with {self.model.nv} freedoms instead of {tree.nv}")
        self.joints = tuple(self.model.joint(k).name for k in range(self.model.njnt))


def _run(inverse: bool) -> Maker:
    def make(robot: Robot, states: States) -> Run:
        at, tree = MujocoModel(robot.tree), robot.tree
        q, qd, y = states.q[0], states.qd[0], states.y[0]
        given = {"qdd" if inverse else "tau": y}
        peer = interop.to_convention(tree, "mujoco", q, qd, joints=at.joints, **given)
        model, data = at.model, at.mujoco.MjData(at.model)
        solve = at.mujoco.mj_inverse if inverse else at.mujoco.mj_forward
        data.qpos[:], data.qvel[:] = peer.q, peer.qd
        if inverse:
            data.qacc[:] = peer.qdd
        else:
            data.qfrc_applied[:] = peer.tau

        def answer() -> Floats:
            solve(model, data)
            found = {"tau": data.qfrc_inverse} if inverse else {"qdd": data.qacc}
            state = interop.from_convention(tree, "mujoco", peer.q, peer.qd, joints=at.joints, **found)
            values = state.tau if inverse else state.qdd
            assert values is not None
            return values

        return Run(lambda: solve(model, data), answer)

    return make


PEER = Peer("MuJoCo", "mujoco", MODULE, {"inverse_dynamics": _run(True), "forward_dynamics": _run(False)})
