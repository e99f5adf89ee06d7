"""Drake's MultibodyPlant, on a fixed base."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measure import Run
from benchmarks.peers.base import Peer, UnsuitableError, is_floating, load, single_joints
from benchmarks.robots import Robot, States
from nori_dyn.interop.urdf import ROOT, to_urdf
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats, Indices

MODULE = "pydrake.multibody.plant"


def _prepared(tree: KinematicTree) -> tuple[Any, Any, Indices, Indices]:
    """Return a plant, a context, and where its numbers come from: q = own[...], v = own[...]."""
    if is_floating(tree):
        raise UnsuitableError("a floating base: its velocities are in world axes, which is not adapted here")
    names, q_from, v_from = single_joints(tree)
    plant = load(MODULE).MultibodyPlant(0.0)
    load("pydrake.multibody.parsing").Parser(plant).AddModelsFromString(to_urdf(tree), "urdf")
    plant.WeldFrames(plant.world_frame(), plant.GetFrameByName(ROOT))
    plant.mutable_gravity_field().set_gravity_vector(np.array(tree.gravity))
    plant.Finalize()
    q_places, v_places = (np.empty(len(names), dtype=np.intp) for _ in range(2))
    for name, q, v in zip(names, q_from, v_from, strict=True):
        joint = plant.GetJointByName(name)
        q_places[joint.position_start()], v_places[joint.velocity_start()] = q, v
    return plant, plant.CreateDefaultContext(), q_places, v_places


def _inverse(robot: Robot, states: States) -> Run:
    """Return a run that sets the state, without which all is found in its cache, and computes the torques."""
    plant, context, q_places, v_places = _prepared(robot.tree)
    state = np.concatenate([states.q[0, q_places], states.qd[0, v_places]])
    qdd, forces = states.y[0, v_places], load("pydrake.multibody.tree").MultibodyForces(plant)

    def call() -> Any:
        plant.SetPositionsAndVelocities(context, state)
        plant.CalcForceElementsContribution(context, forces)
        return plant.CalcInverseDynamics(context, qdd, forces)

    return Run(call, lambda: _back(call(), v_places))


def _forward(robot: Robot, states: States) -> Run:
    """Return a run that sets the state and the torques, and computes the accelerations."""
    plant, context, q_places, v_places = _prepared(robot.tree)
    state = np.concatenate([states.q[0, q_places], states.qd[0, v_places]])
    port, tau, n = plant.get_applied_generalized_force_input_port(), states.y[0, v_places], plant.num_positions()
    port.FixValue(context, tau)

    def call() -> Any:
        plant.SetPositionsAndVelocities(context, state)
        return plant.EvalTimeDerivatives(context).get_vector()

    return Run(call, lambda: _back(call().CopyToVector()[n:], v_places))


def _back(values: Floats, v_places: Indices) -> Floats:
    found = np.empty_like(values)
    found[v_places] = values
    return found


PEER = Peer("Drake", "drake", MODULE, {"inverse_dynamics": _inverse, "forward_dynamics": _forward})
