"""Trees as models of Pinocchio, planar and cylindrical joints as composites of its own; and robots with loops.

Of these its proximal algorithm on rigid constraints (`constraintDynamics`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nori_dyn.components import Loop, Rotor, Spring
from nori_dyn.model.tree import KinematicTree
from tests.oracles import masses
from tests.peers import pin

Floats = NDArray[np.float64]

PROXIMAL = 1e-14, 1e-9, 100
"""Accuracy, weight of the proximal term, steps."""


FLIP = np.r_[3:6, 0:3]


def in_pinocchio(tree: KinematicTree):
    """Pinocchio's model, where each body is in it, and the places of its coordinates and freedoms in ours.

    What is on a fixed joint is part of the body that carries it.
    """
    model, q_order, v_order = pin.Model(), [], []
    model.gravity.linear = np.array(tree.gravity)
    places: list[tuple[int, pin.SE3]] = []
    for i, (joint, body) in enumerate(zip(tree.joints, masses(tree), strict=True)):
        axis = np.array(getattr(joint, "axis", (0.0, 0.0, 1.0)))
        q_own, v_own = np.arange(joint.nq), np.arange(joint.nv)
        match joint.kind:
            case "revolute" | "continuous":
                theirs = pin.JointModelRevoluteUnaligned(axis)
            case "prismatic":
                theirs = pin.JointModelPrismaticUnaligned(axis)
            case "helical":
                theirs = pin.JointModelHelicalUnaligned(axis, joint.pitch)
            case "cylindrical":
                theirs = pin.JointModelComposite()
                theirs.addJoint(pin.JointModelRevoluteUnaligned(axis))
                theirs.addJoint(pin.JointModelPrismaticUnaligned(axis))
            case "planar":
                theirs = pin.JointModelComposite()
                for part in (pin.JointModelPX(), pin.JointModelPY(), pin.JointModelRZ()):
                    theirs.addJoint(part)
                q_own = v_own = np.array([1, 2, 0])
            case "spherical":
                theirs = pin.JointModelSpherical()
            case "free":
                theirs, v_own = pin.JointModelFreeFlyer(), FLIP
            case "fixed":
                theirs = None
        X = tree.X_tree[i]
        parent, carrier = (0, pin.SE3.Identity()) if tree.is_root(i) else places[tree.parents[i]]
        place = carrier * pin.SE3(X.E.T, X.r)
        if theirs is None:
            places.append((parent, place))
        else:
            places.append((model.addJoint(parent, theirs, place, tree.joint_names[i]), pin.SE3.Identity()))
        number, place = places[i]
        model.appendBodyToJoint(number, pin.Inertia(body.mass, body.com, body.I_com), place)
        q_order.append(tree.q_slices[i].start + q_own)
        v_order.append(tree.v_slices[i].start + v_own)
    return model, places, np.concatenate(q_order), np.concatenate(v_order)


def constrained_dynamics(tree: KinematicTree, q: Floats, qd: Floats, tau: Floats) -> tuple[Floats, dict[str, Floats]]:
    """The accelerations (nv,), and the wrench (6,) on the first frame of each loop by its name.

    A loop is held as a point or as a whole pose: more than it says, where the tree itself has the other rows.

    Args:
        tree: the robot; rotors and springs are taken in, nothing else beside loops.
        q, qd: its state.
        tau: what the motors give (nv,).
    """
    model, places, q_order, v_order = in_pinocchio(tree)
    tau, armature = tau.copy(), np.zeros(tree.nv)
    models = pin.StdVec_RigidConstraintModel()
    for component in tree.components:
        if isinstance(component, Loop):
            models.append(_constraint(tree, model, places, component))
            continue
        assert isinstance(component, Rotor | Spring)
        names = [component.joints] if isinstance(component.joints, str) else component.joints
        for i in map(tree.joint, names):
            if isinstance(component, Rotor):
                armature[tree.v_slices[i]] = component.gear**2 * component.inertia
            else:
                tau[tree.v_slices[i]] -= component.stiffness * (q[tree.q_slices[i]] - component.reference)
    model.armature = armature[v_order]
    data = model.createData()
    datas = pin.StdVec_RigidConstraintData()
    datas.extend([m.createData() for m in models])
    pin.initConstraintDynamics(model, data, models, datas)
    found = pin.constraintDynamics(
        model, data, q[q_order], qd[v_order], tau[v_order], models, datas, pin.ProximalSettings(*PROXIMAL)
    )
    qdd = np.empty(tree.nv)
    qdd[v_order] = found
    wrenches = [np.concatenate([d.contact_force.angular, d.contact_force.linear]) for d in datas]
    return qdd, dict(zip([m.name for m in models], wrenches, strict=True))


def _constraint(tree: KinematicTree, model: pin.Model, places: list, loop: Loop) -> pin.RigidConstraintModel:
    joints, placements = [], []
    for frame in map(tree.frame, loop.frames):
        number, place = (0, pin.SE3.Identity()) if frame.on_world else places[frame.link]
        joints.append(number)
        placements.append(place * pin.SE3(frame.X.E.T, frame.X.r))
    turns = loop.subspace()[0][:3].any()
    kind = pin.ContactType.CONTACT_6D if turns else pin.ContactType.CONTACT_3D
    pairs = (x for pair in zip(joints, placements, strict=True) for x in pair)
    constraint = pin.RigidConstraintModel(kind, model, *pairs, pin.ReferenceFrame.LOCAL)
    constraint.name = loop.name
    if loop.stabilisation is not None:
        gains = loop.stabilisation.position, loop.stabilisation.velocity
        constraint.setBaumgarteCorrectorParameters(pin.BaumgarteCorrectorParameters(*gains))
    return constraint
