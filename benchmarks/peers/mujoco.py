"""MuJoCo: quaternions w first, a free joint's linear velocity in world axes; bare rigid bodies, no contacts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.measure import Run
from benchmarks.peers.base import Peer, UnsuitableError, is_floating, load, single_joints
from benchmarks.robots import Robot, States
from nori_dyn.interop.urdf import link_name, to_urdf
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats, Indices

MODULE = "mujoco"


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A model, and where our numbers but the root's go: qpos[q_to] = q[q_from]."""

    mujoco: Any
    model: Any
    tree: KinematicTree
    q_from: Indices
    v_from: Indices
    q_to: Indices
    v_to: Indices

    def position(self, q: Floats) -> Floats:
        """Return qpos (N, nq) of q (N, nq)."""
        found = np.zeros((len(q), self.model.nq))
        if is_floating(self.tree):
            found[:, :7] = q[:, [0, 1, 2, 6, 3, 4, 5]]
        found[:, self.q_to] = q[:, self.q_from]
        return found

    def rotation(self, q: Floats) -> Floats:
        """Return what turns body axes of a free root into world axes (3, 3), at q (nq,)."""
        return np.asarray(self.tree.joints[0].transform(q[self.tree.q_slices[0]]).E.T)

    def velocity(self, q: Floats, qd: Floats) -> Floats:
        """Return qvel (nv,)."""
        found = self._joints(qd)
        if is_floating(self.tree):
            found[:6] = np.concatenate([self.rotation(q) @ qd[3:6], qd[:3]])
        return found

    def acceleration(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """Return qacc (nv,): of a free root, the rate of its linear velocity in world axes."""
        found = self._joints(qdd)
        if is_floating(self.tree):
            linear = qdd[3:6] + np.cross(qd[:3], qd[3:6])
            found[:6] = np.concatenate([self.rotation(q) @ linear, qdd[:3]])
        return found

    def acceleration_back(self, q: Floats, qd: Floats, qacc: Floats) -> Floats:
        """Return qdd (nv,)."""
        found = self._back(qacc)
        if is_floating(self.tree):
            linear = self.rotation(q).T @ qacc[:3] - np.cross(qd[:3], qd[3:6])
            found[:6] = np.concatenate([qacc[3:6], linear])
        return found

    def force(self, q: Floats, tau: Floats) -> Floats:
        """Return qfrc (nv,) of tau (nv,)."""
        found = self._joints(tau)
        if is_floating(self.tree):
            found[:6] = np.concatenate([self.rotation(q) @ tau[3:6], tau[:3]])
        return found

    def force_back(self, q: Floats, force: Floats) -> Floats:
        """Return tau (nv,)."""
        found = self._back(force)
        if is_floating(self.tree):
            found[:6] = np.concatenate([force[3:6], self.rotation(q).T @ force[:3]])
        return found

    def _joints(self, values: Floats) -> Floats:
        found = np.zeros(self.model.nv)
        found[self.v_to] = values[self.v_from]
        return found

    def _back(self, values: Floats) -> Floats:
        found = np.zeros(self.tree.nv)
        found[self.v_from] = values[self.v_to]
        return found


def prepared(tree: KinematicTree) -> Prepared:
    """Return a tree as a model.

    Raises:
        UnsuitableError: a joint of several freedoms.
        ValueError: MuJoCo does not take it, such as a link without mass.
    """
    mujoco = load(MODULE)
    names, q_from, v_from = single_joints(tree)
    spec = mujoco.MjSpec.from_string(to_urdf(tree))
    spec.compiler.fusestatic = False
    spec.compiler.balanceinertia = False
    spec.compiler.boundmass = spec.compiler.boundinertia = 0.0
    spec.option.gravity = tree.gravity
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    if is_floating(tree):
        spec.body(link_name(tree.names[0])).add_freejoint()
    model = spec.compile()
    if model.nv != tree.nv:
        raise UnsuitableError(f"it loads with {model.nv} freedoms instead of {tree.nv}")
    numbers = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in names]
    q_to, v_to = model.jnt_qposadr[numbers].astype(np.intp), model.jnt_dofadr[numbers].astype(np.intp)
    return Prepared(mujoco, model, tree, q_from, v_from, q_to, v_to)


def _inverse(robot: Robot, states: States) -> Run:
    at, q, qd, qdd = prepared(robot.tree), states.q[0], states.qd[0], states.y[0]
    model, data, inverse = at.model, at.mujoco.MjData(at.model), at.mujoco.mj_inverse
    data.qpos[:], data.qvel[:] = at.position(q[None])[0], at.velocity(q, qd)
    data.qacc[:] = at.acceleration(q, qd, qdd)

    def answer() -> Floats:
        inverse(model, data)
        return at.force_back(q, data.qfrc_inverse)

    return Run(lambda: inverse(model, data), answer)


def _forward(robot: Robot, states: States) -> Run:
    at, q, qd, tau = prepared(robot.tree), states.q[0], states.qd[0], states.y[0]
    model, data, forward = at.model, at.mujoco.MjData(at.model), at.mujoco.mj_forward
    data.qpos[:], data.qvel[:] = at.position(q[None])[0], at.velocity(q, qd)
    data.qfrc_applied[:] = at.force(q, tau)

    def answer() -> Floats:
        forward(model, data)
        return at.acceleration_back(q, qd, data.qacc)

    return Run(lambda: forward(model, data), answer)


def _rollout(robot: Robot, states: States) -> Run:
    """Return one step of each of the states; accelerations are read from the change of velocity in that step."""
    at, rollout = prepared(robot.tree), load(f"{MODULE}.rollout")
    model, mujoco, N = at.model, at.mujoco, len(states.q)
    model.opt.integrator, step = mujoco.mjtIntegrator.mjINT_EULER, model.opt.timestep
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
    data = mujoco.MjData(model)
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    qvel = np.array([at.velocity(q, qd) for q, qd in zip(states.q, states.qd, strict=True)])
    initial = np.zeros((N, size))
    initial[:, 1 : 1 + model.nq] = at.position(states.q)
    initial[:, 1 + model.nq : 1 + model.nq + model.nv] = qvel
    applied = np.array([[at.force(q, tau)] for q, tau in zip(states.q, states.y, strict=True)])
    spec, result = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED), np.zeros((N, 1, size))

    def call() -> None:
        rollout.rollout(model, data, initial, applied, control_spec=spec, nstep=1, state=result, skip_checks=False)

    def answer() -> Floats:
        call()
        qacc = (result[:, 0, 1 + model.nq : 1 + model.nq + model.nv] - qvel) / step
        return np.array([at.acceleration_back(*state) for state in zip(states.q, states.qd, qacc, strict=True)])

    return Run(call, answer, N)


PEER = Peer(
    "MuJoCo",
    "mujoco",
    MODULE,
    {"inverse_dynamics": _inverse, "forward_dynamics": _forward, "forward_dynamics batch": _rollout},
)
