"""iDynTree's KinDynComputations: inverse dynamics, with velocities in body axes, ordered as Pinocchio's are."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Run
from benchmarks.peers.base import Peer, UnsuitableError, is_floating, load, root_pose, single_joints
from benchmarks.robots import Robot, States
from benchmarks.urdf_writer import to_urdf
from nori_dyn import interop
from nori_dyn.typing import Floats

MODULE = "idyntree.bindings"


def _inverse(robot: Robot, states: States) -> Run:
    """Make a run that sets the state and computes the torques."""
    idyn, tree = load(MODULE), robot.tree
    names, n = single_joints(tree), 6 * is_floating(tree)
    loader, computations = idyn.ModelLoader(), idyn.KinDynComputations()
    if not loader.loadReducedModelFromString(to_urdf(tree), idyn.StringVector(names), "urdf"):
        raise UnsuitableError("it cannot load the model")
    if not computations.loadRobotModel(loader.model()):
        raise UnsuitableError("it does not take the model")
    computations.setFrameVelocityRepresentation(idyn.BODY_FIXED_REPRESENTATION)
    model, q = computations.model(), states.q[0]
    peer = interop.to_convention(tree, "pinocchio", q, states.qd[0], states.y[0])
    assert peer.qd is not None
    assert peer.qdd is not None
    root, root_rate = (np.concatenate([np.zeros(6 - n), values[:n]]) for values in (peer.qd, peer.qdd))
    parts = (q[len(q) - len(names) :], peer.qd[n:], peer.qdd[n:])
    s, ds, dds = (idyn.VectorDynSize.FromPython(np.ascontiguousarray(part)) for part in parts)
    gravity = idyn.Vector3.FromPython(np.array(tree.gravity, dtype=float))
    torques, none = idyn.FreeFloatingGeneralizedTorques(model), idyn.LinkWrenches(model)
    none.zero()
    R, r = root_pose(tree, q)
    pose = idyn.Transform(idyn.Rotation.FromPython(R), idyn.Position.FromPython(r))
    twist, base = idyn.Twist.FromPython(root), idyn.Vector6.FromPython(root_rate)

    def call() -> None:
        computations.setRobotState(pose, s, twist, ds, gravity)
        computations.inverseDynamics(base, dds, none, torques)

    def answer() -> Floats:
        call()
        of_base, of_joints = torques.baseWrench().asVector().toNumPy(), torques.jointTorques().toNumPy()
        tau = interop.from_convention(tree, "pinocchio", peer.q, tau=np.concatenate([of_base[:n], of_joints])).tau
        assert tau is not None
        return tau

    return Run(call, answer)


PEER = Peer("iDynTree KinDyn", "idyntree", MODULE, {"inverse_dynamics": _inverse})
