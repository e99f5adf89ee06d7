"""iDynTree's KinDynComputations: inverse dynamics; linear first, velocities in body axes."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Run
from benchmarks.peers.base import SWAP, Peer, UnsuitableError, is_floating, load, single_joints
from benchmarks.robots import Robot, States
from nori_dyn.interop.urdf import to_urdf
from nori_dyn.typing import Floats

MODULE = "idyntree.bindings"


def _inverse(robot: Robot, states: States) -> Run:
    """Return a run that sets the state and computes the torques."""
    idyn, tree = load(MODULE), robot.tree
    names, q_from, v_from = single_joints(tree)
    loader = idyn.ModelLoader()
    if not loader.loadReducedModelFromString(to_urdf(tree), idyn.StringVector(names), "urdf"):
        raise UnsuitableError("it cannot load the model")
    computations = idyn.KinDynComputations()
    if not computations.loadRobotModel(loader.model()):
        raise UnsuitableError("it does not take the model")
    computations.setFrameVelocityRepresentation(idyn.BODY_FIXED_REPRESENTATION)
    model = computations.model()
    q, qd, qdd = states.q[0], states.qd[0], states.y[0]
    s, ds, dds = (idyn.VectorDynSize.FromPython(np.ascontiguousarray(x)) for x in (q[q_from], qd[v_from], qdd[v_from]))
    gravity = idyn.Vector3.FromPython(np.array(tree.gravity, dtype=float))
    torques, none = idyn.FreeFloatingGeneralizedTorques(model), idyn.LinkWrenches(model)
    none.zero()
    floating = is_floating(tree)
    if floating:
        R = np.asarray(tree.joints[0].transform(q[:7]).E.T)
        pose = idyn.Transform(idyn.Rotation.FromPython(R.copy()), idyn.Position.FromPython(q[:3].copy()))
        twist = idyn.Twist.FromPython(qd[:6][SWAP].copy())
        base = idyn.Vector6.FromPython(qdd[:6][SWAP].copy())
    else:
        pose, twist, base = idyn.Transform.Identity(), idyn.Twist.Zero(), idyn.Vector6.FromPython(np.zeros(6))

    def call() -> None:
        computations.setRobotState(pose, s, twist, ds, gravity)
        computations.inverseDynamics(base, dds, none, torques)

    def answer() -> Floats:
        call()
        found = np.zeros(tree.nv)
        found[v_from] = torques.jointTorques().toNumPy()
        if floating:
            found[:6] = torques.baseWrench().asVector().toNumPy()[SWAP]
        return found

    return Run(call, answer)


PEER = Peer("iDynTree KinDyn", "idyntree", MODULE, {"inverse_dynamics": _inverse})
