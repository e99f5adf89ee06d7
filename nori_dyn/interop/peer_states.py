"""States and forces of a robot as other programs write them, and back; `conventions` says what they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import checked
from nori_dyn.algebra.spatial import Transform, matvec, transpose
from nori_dyn.errors import InputError, ModelError, UnknownModelNameError, UnknownNameError
from nori_dyn.interop.conventions import CONVENTIONS, Convention, ConventionName
from nori_dyn.model.joints import Joint
from nori_dyn.model.kinematics import link_transforms, world_transforms
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Array, Floats


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
class PeerJoint:
    """Slices of the numbers of a joint in another program.

    Attributes:
        i: index of the joint in the tree.
        name: its name.
        joint: its model.
        q: where its configuration lies.
        v: where its freedoms lie.
        own_q, own_v: likewise in the tree.
    """

    i: int
    name: str
    joint: Joint
    q: slice
    v: slice
    own_q: slice
    own_v: slice


@dataclass(frozen=True, slots=True)
class PeerLayout:
    """Layout of the joints of a tree in another program.

    Attributes:
        tree: the robot.
        convention: whose numbers they are.
        name: what that is called.
        places: where each joint lies, in the order of that program; joints of no freedoms have none there.
    """

    tree: KinematicTree
    convention: Convention
    name: str
    places: tuple[PeerJoint, ...]

    @staticmethod
    def of(
        tree: KinematicTree,
        convention: str,
        joints: Sequence[str] | None = None,
        width: Callable[[str], int] | None = None,
    ) -> PeerLayout:
        """Layout of the joints of a tree in another program.

        Args:
            tree: the robot.
            convention: whose.
            joints: names of all joints in its order; the tree's own order without it.
            width: how many configuration numbers it has for a joint of a name; what the convention says without it.

        Raises:
            UnknownNameError: no such convention, or a name that is no joint of the tree.
            ModelError: a joint that the program does not have, or that `joints` leaves out.
        """
        if convention not in CONVENTIONS:
            raise UnknownNameError("convention", convention, CONVENTIONS)
        means = CONVENTIONS[convention]
        numbers = _order(tree, joints)
        models = [tree.joints[i] for i in numbers]
        for i, model in zip(numbers, models, strict=True):
            if model.kind in means.absent:
                raise ModelError(f"joint '{tree.joint_names[i]}' is {model.kind}, which {convention} does not have.")
        if width is None:
            widths = [means.width(model) for model in models]
        else:
            widths = [width(tree.joint_names[i]) for i in numbers]
        q, v = _slices(widths), _slices([model.nv for model in models])
        places = [
            PeerJoint(i, tree.joint_names[i], model, q[k], v[k], tree.q_slices[i], tree.v_slices[i])
            for k, (i, model) in enumerate(zip(numbers, models, strict=True))
        ]
        return PeerLayout(tree, means, convention, tuple(places))

    @property
    def nq(self) -> int:
        """Number of configuration numbers there."""
        return sum(place.q.stop - place.q.start for place in self.places)

    def to_peer(
        self,
        q: ArrayLike,
        qd: ArrayLike | None = None,
        qdd: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        fx: ArrayLike | None = None,
    ) -> PeerState:
        """Convert a state of the tree to this layout; see `to_convention`."""
        tree, means, batch = self.tree, self.convention, _batch(q)
        own_q = _spatial_first(tree.normalised(checked("q", q, (*batch, tree.nq))), 1)
        v, a, t = _arguments((*batch, tree.nv), qd=qd, qdd=qdd, tau=tau)
        self._check_rates(v, a)
        peer_q = np.zeros((self.nq, *batch))
        peer_v, peer_a, peer_t = (None if x is None else np.zeros_like(x) for x in (v, a, t))
        for place in self.places:
            q_i, own = own_q[place.own_q], place.own_v
            peer_q[place.q] = means.peer_q(place.joint, q_i, place.q.stop - place.q.start)
            P = means.velocity_map(place.joint, q_i)
            if v is not None and peer_v is not None:
                peer_v[place.v] = matvec(P, v[own])
            if a is not None and peer_a is not None:
                peer_a[place.v] = matvec(P, a[own]) + self._drift(place, q_i, v)
            if t is not None and peer_t is not None:
                peer_t[place.v] = matvec(transpose(_inverse(P)), t[own])
        wrenches = None if fx is None else self._peer_wrenches(own_q, checked("fx", fx, (*batch, tree.n_links, 6)))
        return PeerState(_batch_first(peer_q, 1), _maybe(peer_v), _maybe(peer_a), _maybe(peer_t), wrenches)

    def from_peer(
        self,
        q: ArrayLike,
        qd: ArrayLike | None = None,
        qdd: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        fx: ArrayLike | None = None,
    ) -> PeerState:
        """Convert a state in this layout to one of the tree; see `from_convention`."""
        tree, means, batch = self.tree, self.convention, _batch(q)
        peer_q = _spatial_first(checked("q", q, (*batch, self.nq)), 1)
        v, a, t = _arguments((*batch, tree.nv), qd=qd, qdd=qdd, tau=tau)
        self._check_rates(v, a)
        own_q = np.zeros((tree.nq, *batch))
        for place in self.places:
            own_q[place.own_q] = means.own_q(place.joint, place.name, peer_q[place.q])
        own_q = _spatial_first(tree.normalised(_batch_first(own_q, 1)), 1)
        own_v, own_a, own_t = (None if x is None else np.zeros_like(x) for x in (v, a, t))
        for place in self.places:
            q_i, own = own_q[place.own_q], place.own_v
            P = means.velocity_map(place.joint, q_i)
            if v is not None and own_v is not None:
                own_v[own] = matvec(_inverse(P), v[place.v])
            if a is not None and own_a is not None:
                own_a[own] = matvec(_inverse(P), a[place.v] - self._drift(place, q_i, own_v))
            if t is not None and own_t is not None:
                own_t[own] = matvec(transpose(P), t[place.v])
        shape = (*batch, means.first_row + len(self.places), 6)
        wrenches = None if fx is None else self._own_wrenches(own_q, checked("fx", fx, shape))
        return PeerState(_batch_first(own_q, 1), _maybe(own_v), _maybe(own_a), _maybe(own_t), wrenches)

    def _check_rates(self, qd: Array | None, qdd: Array | None) -> None:
        turning = [place.name for place in self.places if self.convention.turns(place.joint)]
        if turning and qdd is not None and qd is None:
            raise InputError(
                f"qdd is given without qd: the acceleration of joint '{turning[0]}' in the convention of {self.name} "
                "depends on the velocity."
            )

    def _drift(self, place: PeerJoint, q: Array, qd: Array | None) -> Array | float:
        return 0.0 if qd is None else self.convention.drift(place.joint, q, qd[place.own_v])

    def _peer_wrenches(self, q: Array, fx: Floats) -> Floats:
        tree, own = self.tree, _spatial_first(fx, 2).copy()
        X_up = link_transforms(tree, q)
        for i in reversed(range(tree.n_links)):
            if not tree.joints[i].nv and not tree.is_root(i):
                own[tree.parents[i]] += X_up[i].force_to_parent(own[i])
        at = self._link_places(q)
        peer = np.zeros((self.convention.first_row + len(self.places), *own.shape[1:]))
        for row, place in enumerate(self.places, self.convention.first_row):
            peer[row] = self.convention.peer_wrench(at[place.i], own[place.i])
        return _batch_first(peer, 2)

    def _own_wrenches(self, q: Array, fx: Floats) -> Floats:
        peer, at = _spatial_first(fx, 2), self._link_places(q)
        own = np.zeros((self.tree.n_links, *peer.shape[1:]))
        for row, place in enumerate(self.places, self.convention.first_row):
            own[place.i] = self.convention.own_wrench(at[place.i], peer[row])
        return _batch_first(own, 2)

    def _link_places(self, q: Array) -> dict[int, Transform]:
        """Transform from the world's to each link's coordinates."""
        if not self.convention.world_wrenches:
            return dict.fromkeys(range(self.tree.n_links), Transform.identity())
        return world_transforms(self.tree, link_transforms(self.tree, q))


def to_convention(
    tree: KinematicTree,
    convention: ConventionName,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    qdd: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    fx: ArrayLike | None = None,
    *,
    joints: Sequence[str] | None = None,
) -> PeerState:
    """Convert a state of a tree to another program's convention, see `nori_dyn.interop.conventions`.

    Args:
        tree: the robot.
        convention: "pinocchio", "mujoco", "featherstone", or "nori".
        q: configuration (..., nq).
        qd: velocity (..., nv).
        qdd: acceleration (..., nv); needs qd where the other's velocity turns with the body.
        tau: joint forces (..., nv).
        fx: external wrenches (..., n_links, 6), moment first, in link coordinates. On links whose joint has no
            freedoms they count as ones on the link that carries them.
        joints: names of all joints in the other's order; the tree's own order without it.

    Returns:
        q, qd, qdd, tau and fx of the other, None where not given.

    Raises:
        UnknownNameError: no such convention, or a name in `joints` that is no joint of the tree.
        ModelError: a joint that the other program does not have, or that `joints` leaves out.
        InputError: a wrong shape, a value that is not finite, a quaternion far from unit length, qdd without qd.
    """
    return PeerLayout.of(tree, convention, joints).to_peer(q, qd, qdd, tau, fx)


def from_convention(
    tree: KinematicTree,
    convention: ConventionName,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    qdd: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    fx: ArrayLike | None = None,
    *,
    joints: Sequence[str] | None = None,
) -> PeerState:
    """Convert a state in another program's convention to one of the tree: the inverse of `to_convention`.

    Args:
        tree: the robot.
        convention: whose the numbers are.
        q: configuration (..., n); all of these as `nori_dyn.interop.conventions` says.
        qd: velocity (..., nv).
        qdd: acceleration (..., nv); needs qd where the other's velocity turns with the body.
        tau: joint forces (..., nv).
        fx: external wrenches, a row a joint (..., n, 6); Pinocchio's have one more, the universe's, which is left out.
        joints: names of all joints in the order of the numbers; the tree's own order without it.

    Raises:
        UnknownNameError: no such convention, or a name in `joints` that is no joint of the tree.
        ModelError: a joint that the other program does not have, or that `joints` leaves out.
        InputError: a wrong shape, a value that is not finite, a quaternion far from unit length, qdd without qd.
    """
    return PeerLayout.of(tree, convention, joints).from_peer(q, qd, qdd, tau, fx)


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


def _slices(widths: Sequence[int]) -> list[slice]:
    return [slice(*ends) for ends in pairwise(accumulate(widths, initial=0))]


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


def _arguments(shape: tuple[int, ...], **values: ArrayLike | None) -> list[Array | None]:
    return [None if x is None else _spatial_first(checked(name, x, shape), 1) for name, x in values.items()]


def _spatial_first(x: Array, n_axes: int) -> Array:
    return np.moveaxis(x, range(-n_axes, 0), range(n_axes))


def _batch_first(x: Array, n_axes: int) -> Floats:
    return np.ascontiguousarray(np.moveaxis(x, range(n_axes), range(-n_axes, 0)))


def _maybe(x: Array | None) -> Floats | None:
    return None if x is None else _batch_first(x, 1)
