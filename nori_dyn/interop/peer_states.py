"""States and forces of a robot as other programs write them, and back; `conventions` says what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import checked
from nori_dyn.algebra.ranges import width
from nori_dyn.algebra.spatial import matvec, transpose
from nori_dyn.errors import InputError, ModelError, UnknownModelNameError, UnknownNameError
from nori_dyn.interop.conventions import CONVENTIONS, Convention, ConventionName
from nori_dyn.interop.pinocchio_model import check_model, kind_of
from nori_dyn.model.kinematics import link_transforms, world_transforms
from nori_dyn.model.tree import KinematicTree, one_after_the_other
from nori_dyn.typing import Array, Floats

Given: TypeAlias = ArrayLike | None
"""What may be left out."""


class PeerState(NamedTuple):
    """A state of a robot and what acts on it, in one convention; None is what was not given.

    Attributes:
        q: configuration.
        qd: velocity.
        qdd: acceleration, the time derivative of qd.
        tau: joint forces, paired with qd.
        fx: external wrenches, a row a link.
    """

    q: Floats
    qd: Floats | None = None
    qdd: Floats | None = None
    tau: Floats | None = None
    fx: Floats | None = None


@dataclass(frozen=True, slots=True)
class PeerLayout:
    """Layout of the joints of a tree in another program.

    Attributes:
        tree: the robot.
        convention: whose numbers they are.
        name: what that is called.
        places: the number of each joint in the tree, and where its configuration and its freedoms lie there, in the
            order of that program; joints of no freedoms have none there.
    """

    tree: KinematicTree
    convention: Convention
    name: str
    places: tuple[tuple[int, slice, slice], ...]

    @staticmethod
    def of(
        tree: KinematicTree,
        convention: str,
        joints: Sequence[str] | None = None,
        widths: Mapping[str, int] | None = None,
    ) -> PeerLayout:
        """Layout of the joints of a tree in another program.

        Args:
            tree: the robot.
            convention: whose.
            joints: names of all joints in its order; the tree's own order without it.
            widths: how many configuration numbers it has for a joint, by its name; what the convention says without it.

        Raises:
            UnknownNameError: no such convention, or a name that is no joint of the tree.
            ModelError: a joint that the program does not have, or that `joints` leaves out.
        """
        if convention not in CONVENTIONS:
            raise UnknownNameError("convention", convention, CONVENTIONS)
        means = CONVENTIONS[convention]
        order = _order(tree, joints)
        for i in order:
            if tree.joints[i].kind in means.absent:
                kind = tree.joints[i].kind
                raise ModelError(f"joint '{tree.joint_names[i]}' is {kind}, which {convention} does not have.")
        own = [widths[tree.joint_names[i]] if widths else means.width(tree.joints[i]) for i in order]
        q, v = one_after_the_other(own), one_after_the_other(tree.joints[i].nv for i in order)
        return PeerLayout(tree, means, convention, tuple(zip(order, q, v, strict=True)))

    @property
    def nq(self) -> int:
        """Number of configuration numbers there."""
        return sum(width(at) for _, at, _ in self.places)

    def to_peer(self, q: ArrayLike, qd: Given, qdd: Given, tau: Given, fx: Given) -> PeerState:
        """Convert a state of the tree to this layout; see `to_convention`."""
        tree, batch = self.tree, _batch(q)
        own_q = _spatial_first(tree.normalised(checked("q", q, (*batch, tree.nq))), 1)
        rates = self._rates(own_q, batch, False, qd=qd, qdd=qdd, tau=tau)
        peer_q = np.zeros((self.nq, *batch))
        for i, at, _ in self.places:
            peer_q[at] = self.convention.peer_q(tree.joints[i], own_q[tree.q_slices[i]], width(at))
        wrenches = None if fx is None else self._peer_wrenches(own_q, checked("fx", fx, (*batch, tree.n_links, 6)))
        return PeerState(_batch_first(peer_q, 1), fx=wrenches, **rates)

    def from_peer(self, q: ArrayLike, qd: Given, qdd: Given, tau: Given, fx: Given) -> PeerState:
        """Convert a state in this layout to one of the tree; see `from_convention`."""
        tree, means, batch = self.tree, self.convention, _batch(q)
        peer_q = _spatial_first(checked("q", q, (*batch, self.nq)), 1)
        own_q = np.zeros((tree.nq, *batch))
        for i, at, _ in self.places:
            own_q[tree.q_slices[i]] = means.own_q(tree.joints[i], tree.joint_names[i], peer_q[at])
        own_q = _spatial_first(tree.normalised(_batch_first(own_q, 1)), 1)
        rates = self._rates(own_q, batch, True, qd=qd, qdd=qdd, tau=tau)
        shape = (*batch, means.first_row + len(self.places), 6)
        wrenches = None if fx is None else self._own_wrenches(own_q, checked("fx", fx, shape))
        return PeerState(_batch_first(own_q, 1), fx=wrenches, **rates)

    def _rates(self, own_q: Array, batch: tuple[int, ...], is_back: bool, **given: Given) -> dict[str, Floats | None]:
        """The velocities, accelerations and joint forces of this layout, or `is_back` those of the tree."""
        tree, shape = self.tree, (*batch, self.tree.nv)
        v, a, t = (None if x is None else _spatial_first(checked(name, x, shape), 1) for name, x in given.items())
        turning = [tree.joint_names[i] for i, _, _ in self.places if tree.joints[i].kind in self.convention.turning]
        if turning and a is not None and v is None:
            raise InputError(
                f"qdd is given without qd: the acceleration of joint '{turning[0]}' in the convention of {self.name} "
                "depends on the velocity."
            )
        new_v, new_a, new_t = (np.zeros((tree.nv, *batch)) for _ in given)
        own_v = new_v if is_back or v is None else v
        for i, _, at in self.places:
            joint, q, own = tree.joints[i], own_q[tree.q_slices[i]], tree.v_slices[i]
            P = self.convention.velocity_map(joint, q)
            there, back = (_inverse(P), P) if is_back else (P, _inverse(P))
            source, target = (at, own) if is_back else (own, at)
            if v is not None:
                new_v[target] = matvec(there, v[source])
            if a is not None:
                drift = self.convention.drift(joint, q, own_v[own])
                new_a[target] = matvec(there, a[source] - drift) if is_back else matvec(there, a[source]) + drift
            if t is not None:
                new_t[target] = matvec(transpose(back), t[source])
        found = zip(given, (v, a, t), (new_v, new_a, new_t), strict=True)
        return {name: None if x is None else _batch_first(new, 1) for name, x, new in found}

    def _peer_wrenches(self, q: Array, fx: Floats) -> Floats:
        tree, own = self.tree, _spatial_first(fx, 2).copy()
        X_up = link_transforms(tree, q)
        for i in reversed(range(tree.n_links)):
            if not tree.joints[i].nv and not tree.is_root(i):
                own[tree.parents[i]] += X_up[i].force_to_parent(own[i])
        at = world_transforms(tree, X_up)
        peer = np.zeros((self.convention.first_row + len(self.places), *own.shape[1:]))
        for row, (i, _, _) in enumerate(self.places, self.convention.first_row):
            peer[row] = self.convention.peer_wrench(at[i], own[i])
        return _batch_first(peer, 2)

    def _own_wrenches(self, q: Array, fx: Floats) -> Floats:
        peer, at = _spatial_first(fx, 2), world_transforms(self.tree, link_transforms(self.tree, q))
        own = np.zeros((self.tree.n_links, *peer.shape[1:]))
        for row, (i, _, _) in enumerate(self.places, self.convention.first_row):
            own[i] = self.convention.own_wrench(at[i], peer[row])
        return _batch_first(own, 2)


def to_convention(
    tree: KinematicTree,
    convention: ConventionName | Any,
    q: ArrayLike,
    qd: Given = None,
    qdd: Given = None,
    tau: Given = None,
    fx: Given = None,
    *,
    joints: Sequence[str] | None = None,
) -> PeerState:
    """Convert a state of a tree to another program's convention, see `nori_dyn.interop.conventions`.

    Args:
        tree: the robot.
        convention: "pinocchio", "mujoco", "featherstone", or "nori"; or a pinocchio.Model of the same robot, whose
            joints are matched by name. Links are taken to be where its joints are, as they are in a tree from
            `from_pinocchio`, or from the same URDF.
        q: configuration (..., nq).
        qd: velocity (..., nv).
        qdd: acceleration (..., nv); needs qd where the other's velocity turns with the body.
        tau: joint forces (..., nv).
        fx: external wrenches (..., n_links, 6), moment first, in link coordinates. On links whose joint has no
            freedoms they count as ones on the link that carries them.
        joints: names of all joints in the other's order; a model's, or the tree's own, without it.

    Returns:
        q, qd, qdd, tau and fx of the other, None where not given.

    Raises:
        UnknownNameError: no such convention, or a name in `joints` that is no joint of the tree.
        ModelError: a joint that the other program does not have, or that `joints` leaves out; not a model, or one whose
            joints are not those of the tree (names them).
        InputError: a wrong shape, a value that is not finite, a quaternion far from unit length, qdd without qd.
    """
    return _layout(tree, convention, joints).to_peer(q, qd, qdd, tau, fx)


def from_convention(
    tree: KinematicTree,
    convention: ConventionName | Any,
    q: ArrayLike,
    qd: Given = None,
    qdd: Given = None,
    tau: Given = None,
    fx: Given = None,
    *,
    joints: Sequence[str] | None = None,
) -> PeerState:
    """Convert a state in another program's convention to one of the tree: the inverse of `to_convention`.

    Args:
        tree: the robot.
        convention: whose the numbers are, as `to_convention` takes it.
        q: configuration (..., n); all of these as `nori_dyn.interop.conventions` says.
        qd: velocity (..., nv).
        qdd: acceleration (..., nv); needs qd where the other's velocity turns with the body.
        tau: joint forces (..., nv).
        fx: external wrenches, a row a joint (..., n, 6); Pinocchio's have one more, the universe's, which is left out.
        joints: names of all joints in the order of the numbers; a model's, or the tree's own, without it.

    Raises:
        UnknownNameError: no such convention, or a name in `joints` that is no joint of the tree.
        ModelError: a joint that the other program does not have, or that `joints` leaves out; not a model, or one whose
            joints are not those of the tree (names them).
        InputError: a wrong shape, a value that is not finite, a quaternion far from unit length, qdd without qd.
    """
    return _layout(tree, convention, joints).from_peer(q, qd, qdd, tau, fx)


def _layout(tree: KinematicTree, convention: ConventionName | Any, joints: Sequence[str] | None) -> PeerLayout:
    """The layout of a convention, or of a pinocchio.Model."""
    if isinstance(convention, str):
        return PeerLayout.of(tree, convention, joints)
    model = convention
    check_model(model)
    widths = {model.names[j]: int(model.joints[j].nq) for j in range(1, model.njoints)}
    layout = PeerLayout.of(tree, "pinocchio", tuple(widths), widths)
    for i, _, _ in layout.places:
        name, joint = tree.joint_names[i], tree.joints[i]
        peer = model.joints[model.getJointId(name)]
        if peer.nv != joint.nv or peer.nq not in {1: (1, 2), 3: (4,)}.get(joint.nq, (joint.nq,)):
            raise ModelError(
                f"joint '{name}' is {joint.kind} in robot '{tree.name}', and a {kind_of(peer)} in the model."
            )
    return layout


def _order(tree: KinematicTree, joints: Sequence[str] | None) -> list[int]:
    """Indices of the joints of a tree that move, in the order given."""
    moving = [name for name, joint in zip(tree.joint_names, tree.joints, strict=True) if joint.nv]
    names = moving if joints is None else [joints] if isinstance(joints, str) else list(joints)
    for name in names:
        if name not in moving:
            raise UnknownModelNameError("moving joint", name, moving, f"robot '{tree.name}'")
    left_out = [name for name in moving if name not in names]
    if left_out or len(set(names)) < len(names):
        wrong = f"leave out {', '.join(left_out)}" if left_out else "have one twice"
        raise ModelError(
            f"robot '{tree.name}': the joints given {wrong}. Name each of its {len(moving)} moving joints once; what "
            "is locked on one side must be locked on the other."
        )
    return [tree.joint(name) for name in names]


def _inverse(P: Array) -> Array:
    return np.moveaxis(np.linalg.inv(np.moveaxis(P, (0, 1), (-2, -1))), (-2, -1), (0, 1))


def _batch(q: ArrayLike) -> tuple[int, ...]:
    try:
        shape = np.shape(q)
    except ValueError as error:
        raise InputError(f"q is not an array of numbers: {error}") from None
    if not shape:
        raise InputError("q is a single value, expected an array.")
    return shape[:-1]


def _spatial_first(x: Array, n_axes: int) -> Array:
    return np.moveaxis(x, range(-n_axes, 0), range(n_axes))


def _batch_first(x: Array, n_axes: int) -> Floats:
    return np.ascontiguousarray(np.moveaxis(x, range(n_axes), range(-n_axes, 0)))
