"""Real robots for tests, and the way from a tree's numbers to Pinocchio's and MuJoCo's, and back.

Pinocchio: spatial vectors linear first, in joint frames (a URDF's link frames, so ours); joints in an order
of its own; a continuous joint's angle as (cos, sin); a free joint's velocity linear first, in body axes.
MuJoCo: quaternions w first, a free joint's linear velocity in world axes, forces at the centre of mass.

Angles printed with 7 to 10 decimals (baxter, romeo, kinova) are off by up to 3e-9 rad, which `clean=True`
corrects and Pinocchio does not: load those with `clean=False` to compare closer than that.
"""

from __future__ import annotations

import sysconfig
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from lxml import etree
from numpy.typing import NDArray

from nori_dyn.descriptions.urdf import load_urdf
from nori_dyn.errors import NoriWarning
from nori_dyn.model.tree import KinematicTree
from tests.peers import mujoco, pin

Floats = NDArray[np.float64]
Base = Literal["fixed", "floating"]

EXAMPLE_ROBOT_DATA = Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix/share/example-robot-data/robots"
ICUB_MODELS = Path(sysconfig.get_paths()["data"]) / "share/iCub/robots"

ROBOTS: dict[str, Path] = {
    name: EXAMPLE_ROBOT_DATA / path
    for name, path in {
        "panda": "panda_description/urdf/panda.urdf",  # prismatic fingers, one mimics the other
        "ur5": "ur_description/urdf/ur5_robot.urdf",
        "xarm7": "xarm_description/urdf/xarm7.urdf",
        "kinova": "kinova_description/robots/kinova.urdf",  # continuous joints
        "double_pendulum": "double_pendulum_description/urdf/double_pendulum_continuous.urdf",
        "allegro": "allegro_hand_description/urdf/allegro_right_hand.urdf",  # four fingers on one palm
        "anymal": "anymal_b_simple_description/robots/anymal.urdf",
        "go2": "go2_description/urdf/go2.urdf",
        "solo12": "solo_description/robots/solo12.urdf",
        "hyq": "hyq_description/robots/hyq_no_sensors.urdf",
        "g1": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
        "talos_reduced": "talos_data/robots/talos_reduced.urdf",
        "talos_full": "talos_data/robots/talos_full_v2.urdf",  # mimic joints
        "romeo": "romeo_description/urdf/romeo.urdf",  # unaligned axes, mimic joints
        "icub": "icub_description/robots/icub.urdf",  # unaligned axes, links without mass
        "baxter": "baxter_description/urdf/baxter.urdf",  # prismatic grippers
        "tiago_pro": "tiago_pro_description/robots/tiago_pro.urdf",  # prismatic torso, continuous wheels
    }.items()
}
ROBOTS["iCubGenova04"] = ICUB_MODELS / "iCubGenova04/model.urdf"  # unaligned axes, 180 fixed joints


def load(name: str, base: Base = "fixed", **options: Any) -> KinematicTree:
    """A robot of the table; what is odd in its file (mimic joints, unreal inertias) is let pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoriWarning)
        return load_urdf(ROBOTS[name], base=base, **options)


@lru_cache(maxsize=64)
def pinocchio_model(path: Path, base: Base = "fixed") -> pin.Model:
    """Pinocchio's model of a URDF; do not change it."""
    if base == "floating":
        return pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    return pin.buildModelFromUrdf(str(path))


def pinocchio_with_revolutes(path: Path, joints: tuple[str, ...], base: Base = "fixed") -> pin.Model:
    """Pinocchio's model of a URDF some of whose fixed joints are revolute, about z, and to be held at zero."""
    root = etree.parse(str(path)).getroot()
    for joint in root.findall("joint"):
        if joint.get("name") in joints:
            joint.set("type", "revolute")
            for tag in joint.findall("axis") + joint.findall("limit"):
                joint.remove(tag)
            etree.SubElement(joint, "axis", xyz="0 0 1")
            etree.SubElement(joint, "limit", lower="-1", upper="1", effort="1", velocity="1")
    text = etree.tostring(root).decode()
    return pin.buildModelFromXML(text, pin.JointModelFreeFlyer()) if base == "floating" else pin.buildModelFromXML(text)


def to_pinocchio(tree: KinematicTree, model: pin.Model, q: Floats, qd: Floats) -> tuple[Floats, Floats]:
    """q (model.nq,) and v (model.nv,) of Pinocchio for q (nq,) and qd (nv,) of the tree."""
    q_pin = pin.neutral(model)
    for i, joint in enumerate(tree.joints):
        peer = pinocchio_joint(tree, model, i)
        q_pin[peer.idx_q : peer.idx_q + peer.nq] = _coordinates(joint.kind, q[tree.q_slices[i]], peer.nq)
    return q_pin, velocity_map(tree, model, q) @ qd


def from_pinocchio(tree: KinematicTree, model: pin.Model, q: Floats, v: Floats) -> tuple[Floats, Floats]:
    """q (nq,) and qd (nv,) of the tree for q (model.nq,) and v (model.nv,) of Pinocchio."""
    q_tree = np.zeros(tree.nq)
    for i, joint in enumerate(tree.joints):
        peer = pinocchio_joint(tree, model, i)
        part = q[peer.idx_q : peer.idx_q + peer.nq]
        if joint.kind == "planar":
            part = np.array([np.arctan2(part[3], part[2]), part[0], part[1]])
        elif joint.nq == 1 and peer.nq == 2:
            part = np.arctan2(part[1:], part[:1])
        q_tree[tree.q_slices[i]] = part
    return q_tree, np.linalg.solve(velocity_map(tree, model, q_tree), v)


def velocity_map(tree: KinematicTree, model: pin.Model, q: Floats) -> Floats:
    """P (model.nv, nv) with v of Pinocchio = P qd; so tau = P^T tau of Pinocchio, and H = P^T M P.

    A permutation, but for planar joints, whose linear velocity Pinocchio has in body axes.
    """
    P = np.zeros((model.nv, tree.nv))
    for i, joint in enumerate(tree.joints):
        v = pinocchio_joint(tree, model, i).idx_v
        P[v : v + joint.nv, tree.v_slices[i]] = _velocity_block(joint.kind, joint.nv, q[tree.q_slices[i]])
    return P


def acceleration_to_pinocchio(tree: KinematicTree, model: pin.Model, q: Floats, qd: Floats, qdd: Floats) -> Floats:
    """The acceleration (model.nv,) of Pinocchio for qdd (nv,) of the tree: P qdd + dP/dt qd."""
    result = velocity_map(tree, model, q) @ qdd
    for i, joint in enumerate(tree.joints):
        if joint.kind == "planar":
            v = pinocchio_joint(tree, model, i).idx_v
            rate, x, y = qd[tree.v_slices[i]]
            s, c = np.sin(q[tree.q_slices[i]][0]), np.cos(q[tree.q_slices[i]][0])
            result[v : v + 2] += rate * np.array([-s * x + c * y, -c * x - s * y])
    return result


def pinocchio_wrenches(tree: KinematicTree, model: pin.Model, fx: Floats) -> Any:
    """Pinocchio's external forces of wrenches fx (n_links, 6), angular first, in link coordinates."""
    forces = pin.StdVec_Force(model.njoints, pin.Force.Zero())
    for i, wrench in enumerate(fx):
        forces[model.getJointId(tree.joint_names[i])] = pin.Force(wrench[3:], wrench[:3])
    return forces


class Pinocchio:
    """Pinocchio, asked for what happens to a tree: states and answers are the tree's.

    Attributes:
        tree: the tree.
        model, data: Pinocchio's, with joints of the same names.
    """

    def __init__(self, tree: KinematicTree, model: pin.Model) -> None:
        self.tree, self.model, self.data = tree, model, model.createData()

    @staticmethod
    def of(name: str, base: Base, tree: KinematicTree) -> Pinocchio:
        """It for a robot of the table."""
        return Pinocchio(tree, pinocchio_model(ROBOTS[name], base))

    def state(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Floats, Floats]:
        """A state and its acceleration as Pinocchio has them."""
        rate = acceleration_to_pinocchio(self.tree, self.model, q, qd, qdd)
        return *to_pinocchio(self.tree, self.model, q, qd), rate

    def joint_forces(self, q: Floats, torque: Floats) -> Floats:
        """Joint forces (nv, ...) that Pinocchio gives as (model.nv, ...)."""
        return velocity_map(self.tree, self.model, q).T @ torque

    def rnea(self, q: Floats, qd: Floats, qdd: Floats, fx: Floats | None = None) -> Floats:
        """tau (nv,) of an acceleration (nv,), with wrenches fx (n_links, 6); `data` has forces and motions."""
        return self.joint_forces(q, pin.rnea(self.model, self.data, *self.state(q, qd, qdd), self._wrenches(fx)))

    def aba(self, q: Floats, qd: Floats, tau: Floats, fx: Floats | None = None) -> Floats:
        """qdd (nv,) of joint forces (nv,)."""
        P = velocity_map(self.tree, self.model, q)
        q_pin, v, drift = self.state(q, qd, 0 * qd)
        rate = pin.aba(self.model, self.data, q_pin, v, np.linalg.solve(P.T, tau), self._wrenches(fx))
        return np.linalg.solve(P, rate - drift)

    def _wrenches(self, fx: Floats | None) -> Any:
        return pinocchio_wrenches(self.tree, self.model, np.zeros((0, 6)) if fx is None else fx)


def pinocchio_joint(tree: KinematicTree, model: pin.Model, i: int) -> Any:
    """Pinocchio's joint of the same name as joint i of the tree."""
    name = tree.joint_names[i]
    assert model.existJointName(name), name
    return model.joints[model.getJointId(name)]


def _coordinates(kind: str, q: Floats, nq: int) -> Floats:
    if kind == "planar":
        return np.array([q[1], q[2], np.cos(q[0]), np.sin(q[0])])
    if len(q) == 1 and nq == 2:
        return np.array([np.cos(q[0]), np.sin(q[0])])
    return q


def _velocity_block(kind: str, nv: int, q: Floats) -> Floats:
    if kind == "free":
        return np.roll(np.eye(6), 3, axis=0)
    if kind == "planar":
        s, c = np.sin(q[0]), np.cos(q[0])
        return np.array([[0.0, c, s], [0.0, -s, c], [1.0, 0.0, 0.0]])
    return np.eye(nv)


def pinocchio_on_contacts(
    model: pin.Model, q: Floats, v: Floats, tau: Floats, frames: list[int], rows: slice
) -> tuple[Floats, Floats]:
    """The accelerations (nv,) of a robot some of whose frames do not move, and the wrenches on these.

    Args:
        model: Pinocchio's model.
        q, v, tau: the state and the joint forces, as Pinocchio has them.
        frames: the frames.
        rows: which of the six components of a frame's acceleration, linear first, are held.
    """
    data = model.createData()
    pin.computeJointJacobians(model, data, q)
    pin.forwardKinematics(model, data, q, v, 0 * v)
    pin.updateFramePlacements(model, data)
    J = np.vstack([pin.getFrameJacobian(model, data, f, pin.LOCAL)[rows] for f in frames])
    drift = [pin.getFrameClassicalAcceleration(model, data, f, pin.LOCAL).vector[rows] for f in frames]
    H = np.triu(pin.crba(model, data, q))
    H = H + np.triu(H, 1).T
    n = len(J)
    KKT = np.block([[H, J.T], [J, np.zeros((n, n))]])
    right = np.concatenate([tau - pin.nonLinearEffects(model, data, q, v), -np.concatenate(drift)])
    solution = np.linalg.solve(KKT, right)
    return solution[: model.nv], -solution[model.nv :].reshape(len(frames), -1)


def mujoco_model(path: Path) -> mujoco.MjModel:
    """MuJoCo's model of the bare rigid bodies: no armature, friction, springs, contacts, constraints."""
    model = mujoco.MjModel.from_xml_path(str(path))
    for array in (model.dof_armature, model.dof_damping, model.dof_frictionloss, model.jnt_stiffness):
        array[:] = 0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return model


def mujoco_joint(tree: KinematicTree, model: mujoco.MjModel, i: int) -> int:
    """MuJoCo's number of joint i of the tree, by its name, or the number in `joint5`."""
    name = tree.joint_names[i]
    number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
    return number if number >= 0 else int(name.removeprefix("joint"))


def mujoco_state(
    tree: KinematicTree, model: mujoco.MjModel, q: Floats, qd: Floats, qdd: Floats
) -> tuple[Floats, Floats, Floats]:
    """qpos, qvel and qacc of MuJoCo for q (nq,), qd (nv,) and qdd (nv,) of the tree."""
    qpos, qvel, qacc = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
    for i, joint in enumerate(tree.joints):
        number = mujoco_joint(tree, model, i)
        at, v = model.jnt_qposadr[number], model.jnt_dofadr[number]
        part, rate, change = q[tree.q_slices[i]], qd[tree.v_slices[i]], qdd[tree.v_slices[i]]
        if joint.kind in ("free", "spherical"):
            part = np.concatenate([part[:-4], part[-1:], part[-4:-1]])
        if joint.kind == "free":
            R = joint.transform(q[tree.q_slices[i]]).E.T
            push = change[3:] + np.cross(rate[:3], rate[3:])
            rate, change = np.concatenate([R @ rate[3:], rate[:3]]), np.concatenate([R @ push, change[:3]])
        qpos[at : at + joint.nq], qvel[v : v + joint.nv], qacc[v : v + joint.nv] = part, rate, change
    return qpos, qvel, qacc


def mujoco_inverse(
    tree: KinematicTree, model: mujoco.MjModel, q: Floats, qd: Floats, qdd: Floats, fx: Floats
) -> Floats:
    """tau (nv,) by mj_inverse; fx (n_links, 6) must be zero on the massless links within a body."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = mujoco_state(tree, model, q, qd, qdd)
    mujoco.mj_inverse(model, data)
    generalised = np.zeros(model.nv)
    tau = np.zeros(tree.nv)
    for i in range(tree.n_links):
        body = model.jnt_bodyid[mujoco_joint(tree, model, i)]
        R, last = data.xmat[body].reshape(3, 3), model.body_jntadr[body] + model.body_jntnum[body] - 1
        if mujoco_joint(tree, model, i) == last:
            moment, force = R @ fx[i, :3], R @ fx[i, 3:]
            origin = data.xpos[body] + R @ model.jnt_pos[last]
            mujoco.mj_applyFT(model, data, force, moment, origin, body, generalised)
        else:
            assert not fx[i].any(), tree.names[i]
    for i, joint in enumerate(tree.joints):
        v = model.jnt_dofadr[mujoco_joint(tree, model, i)]
        part = (data.qfrc_inverse - generalised)[v : v + joint.nv]
        if joint.kind == "free":
            part = np.concatenate([part[3:], joint.transform(q[tree.q_slices[i]]).E @ part[:3]])
        tau[tree.v_slices[i]] = part
    return tau
