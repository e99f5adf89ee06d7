"""Drake's MultibodyPlant, on a fixed base."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Run
from benchmarks.peers.base import Maker, Peer, UnsuitableError, is_floating, load, single_joints
from benchmarks.robots import Robot, States
from benchmarks.urdf_writer import ROOT, to_urdf
from nori_dyn import interop
from nori_dyn.typing import Floats

MODULE = "pydrake.multibody.plant"


def _run(inverse: bool) -> Maker:
    """Make runs that set the state, without which all is found in its cache, and solve."""

    def make(robot: Robot, states: States) -> Run:
        tree = robot.tree
        if is_floating(tree):
            raise UnsuitableError("a floating base: its velocities are in world axes, which is not adapted here")
        plant = load(MODULE).MultibodyPlant(0.0)
        load("pydrake.multibody.parsing").Parser(plant).AddModelsFromString(to_urdf(tree), "urdf")
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName(ROOT))
        plant.mutable_gravity_field().set_gravity_vector(np.array(tree.gravity))
        plant.Finalize()
        joints = sorted(single_joints(tree), key=lambda name: plant.GetJointByName(name).velocity_start())
        peer = interop.to_convention(tree, "nori", states.q[0], states.qd[0], tau=states.y[0], joints=joints)
        context, state, y, n = plant.CreateDefaultContext(), np.concatenate(peer[:2]), peer.tau, tree.nq
        forces = load("pydrake.multibody.tree").MultibodyForces(plant)
        if not inverse:
            plant.get_applied_generalized_force_input_port().FixValue(context, y)

        def inverse_dynamics() -> Any:
            plant.SetPositionsAndVelocities(context, state)
            plant.CalcForceElementsContribution(context, forces)
            return plant.CalcInverseDynamics(context, y, forces)

        def forward_dynamics() -> Any:
            plant.SetPositionsAndVelocities(context, state)
            return plant.EvalTimeDerivatives(context).get_vector()

        def answer() -> Floats:
            found = inverse_dynamics() if inverse else forward_dynamics().CopyToVector()[n:]
            values = interop.from_convention(tree, "nori", peer.q, tau=found, joints=joints).tau
            assert values is not None
            return values

        return Run(inverse_dynamics if inverse else forward_dynamics, answer)

    return make


PEER = Peer("Drake", "drake", MODULE, {"inverse_dynamics": _run(True), "forward_dynamics": _run(False)})
