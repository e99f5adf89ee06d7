"""The kinematic tree: an immutable robot of rigid bodies in topological order."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cached_property, partial
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import checked, numeric
from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import InputError, ModelError, UnknownModelNameError, naming
from nori_dyn.model.joints import DriveLimits, Joint
from nori_dyn.tables import Shown
from nori_dyn.typing import Array, Floats

WORLD = -1
"""The parent of a body on the world; ask `is_root`, never index with it."""

GRAVITY = (0.0, 0.0, -9.81)

QUATERNION_TOLERANCE = 1e-3
"""Quaternions this close to unit length are normalised; others are refused as an error of input."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A named frame fixed to a body, or to the world.

    Attributes:
        link: index of the body, or WORLD.
        X: transform from the body's coordinates to the frame's.
    """

    link: int
    X: Transform

    @property
    def on_world(self) -> bool:
        """Whether the frame does not move."""
        return self.link == WORLD


@dataclass(frozen=True, slots=True, eq=False)
class NamedFrame:
    """A frame with a name: one of a tree's, or another, such as a sensor's.

    Attributes:
        name: for people.
        frame: where it is.
    """

    name: str
    frame: Frame


class RobotComponent(Protocol):
    """What a robot has beside rigid bodies on joints: a motor, friction, a spring, a coupling, a loop, a tendon.

    It is data by name, as a sensor is. Bound to a tree it yields its parts, its share of the equations: see
    `nori_dyn.system.parts`.
    """

    @property
    def type(self) -> str:
        """The kind of component: "rotor"."""

    @property
    def name(self) -> str:
        """Its name; required where the component adds variables, else possibly ""."""

    def on(self, tree: KinematicTree) -> Iterable[Any]:
        """Yield its parts on a robot, each a `nori_dyn.system.parts.Part`; every name is checked here.

        Raises:
            ModelError: an unknown name, or impossible values.
        """

    def to_dict(self) -> dict[str, Any]:
        """The content of its config."""

    def random_configurations(self, tree: KinematicTree, rng: np.random.Generator, n: int) -> Floats:
        """Random configurations (n, nq) of a robot with all of its loops and couplings closed."""


@runtime_checkable
class Closing(Protocol):
    """A part that holds positions together: a loop or a coupling. Where its rows hold, its gap stays as it is."""

    @property
    def name(self) -> str:
        """Its name: "loop:bar"."""

    def gap(self, at: Any) -> Array:
        """Gap (rows, ...) [m, rad] at a `Kinematics`: zero where the part is closed."""

    def gap_rate(self, at: Any) -> Array:
        """Jacobian (rows, nv, ...) of the gap at a `Kinematics`."""


@dataclass(frozen=True, eq=False)
class KinematicTree(Shown):
    """A robot: body i moves on its parent through joint i, and components add motors, friction, loops and more.

    Attributes:
        name: the robot's name.
        names: link names (n_links), in topological order: a parent comes before its children.
        joint_names: name of the joint that carries each link (n_links).
        parents: index of each link's parent, WORLD for a root (n_links).
        joints: joint models (n_links).
        X_tree: transform from the parent's link frame to the frame where the joint sits (n_links), RBDA ch. 4.2.
        I: spatial inertias (n_links, 6, 6) in link coordinates, angular first.
        frames: further frames by name: lumped links, and named frames of the model file.
        gravity: gravitational acceleration (3,) [m/s^2] in world axes.
        notes: changes of the model by the loader, for people.
        components: motors, friction, loops and others, see `nori_dyn.components`.
        drives: limits of the drives of joints, by joint, where the model file has them.

    Raises:
        ModelError: arrays that do not fit, parents not in topological order, names used twice, a component that does
            not fit.

    Example:
        >>> nd.autotree(3)
        KinematicTree('autotree(3, 1, 0, 1)', 3 links, nq=3, nv=3)
        >>> nd.autotree(3).replace(gravity=(0.0, 0.0, -1.62)).gravity  # on the moon
        (0.0, 0.0, -1.62)
    """

    name: str
    names: tuple[str, ...]
    joint_names: tuple[str, ...]
    parents: tuple[int, ...]
    joints: tuple[Joint, ...]
    X_tree: tuple[Transform, ...]
    I: Floats
    frames: Mapping[str, Frame] = field(default_factory=dict)
    gravity: tuple[float, float, float] = GRAVITY
    notes: tuple[str, ...] = ()
    components: tuple[RobotComponent, ...] = ()
    drives: Mapping[str, DriveLimits] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.names)
        if n == 0:
            raise ModelError(
                f"robot '{self.name}' has no moving link: every joint is fixed or locked. "
                "Let a joint move, or load it with base='floating' (--base floating), which frees its root."
            )
        sizes = {len(self.joint_names), len(self.parents), len(self.joints), len(self.X_tree), len(self.I)}
        if sizes != {n}:
            raise ModelError(f"robot '{self.name}': {n} links, but its other lists have {sorted(sizes)} entries.")
        for i, parent in enumerate(self.parents):
            if not WORLD <= parent < i:
                raise ModelError(
                    f"link '{self.names[i]}' (number {i}) has parent number {parent}: "
                    "a parent must come before its children."
                )
        for what, names in (("link", self.names), ("joint", self.joint_names)):
            for name in names:
                if names.count(name) > 1:
                    raise ModelError(f"robot '{self.name}' has two {what}s named '{name}'.")
        I = np.array(self.I, dtype=float)
        if I.shape != (n, 6, 6):
            raise ModelError(f"robot '{self.name}': spatial inertias of shape {I.shape}, expected {(n, 6, 6)}.")
        for name, inertia, X in zip(self.names, I, self.X_tree, strict=True):
            for what, numbers in (("spatial inertia", inertia), ("place on its parent", np.append(X.E, X.r))):
                if not np.isfinite(numbers).all():
                    raise ModelError(f"robot '{self.name}', link '{name}': its {what} is not finite.")
        for name, frame in self.frames.items():
            if not WORLD <= frame.link < n:
                raise ModelError(f"frame '{name}' is fixed to link number {frame.link}, of {n} links.")
        I.flags.writeable = False
        object.__setattr__(self, "I", I)
        object.__setattr__(self, "X_tree", tuple(map(_read_only, self.X_tree)))
        frames = {name: Frame(frame.link, _read_only(frame.X)) for name, frame in self.frames.items()}
        object.__setattr__(self, "frames", MappingProxyType(frames))
        object.__setattr__(self, "drives", MappingProxyType(dict(self.drives)))
        object.__setattr__(self, "gravity", _vector_of_gravity(self.gravity))
        object.__setattr__(self, "components", tuple(self.components))
        self._check_components()

    def _check_components(self) -> None:
        names: set[str] = set()
        for number, component in enumerate(self.components, start=1):
            what = f"component {number} ({component.type}{f' {component.name!r}' if component.name else ''})"
            if component.name in names:
                raise ModelError(
                    f"robot '{self.name}', {what}: another component has that name. Rename one of the two."
                )
            names |= {component.name} - {""}
            with naming(f"robot '{self.name}', {what}"):
                list(component.on(self))

    def __reduce__(self) -> tuple[Any, ...]:
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        views = {"frames": dict(self.frames), "drives": dict(self.drives)}  # a view of a mapping is not sent
        return partial(type(self), **parts | views), ()

    def __repr__(self) -> str:
        return f"KinematicTree('{self.name}', {self.n_links} links, nq={self.nq}, nv={self.nv})"

    @property
    def n_links(self) -> int:
        """Number of moving links."""
        return len(self.names)

    @property
    def nominal_I(self) -> Floats:
        """Spatial inertias whose weight friction depends on; other than `I` only while `I` is identified."""
        return self.I

    @cached_property
    def nq(self) -> int:
        """Number of configuration numbers."""
        return sum(joint.nq for joint in self.joints)

    @cached_property
    def nv(self) -> int:
        """Number of freedoms."""
        return sum(joint.nv for joint in self.joints)

    @cached_property
    def q_slices(self) -> tuple[slice, ...]:
        """Where each joint's configuration lies in q."""
        return one_after_the_other(joint.nq for joint in self.joints)

    @cached_property
    def v_slices(self) -> tuple[slice, ...]:
        """Where each joint's freedoms lie in qd, qdd and tau."""
        return one_after_the_other(joint.nv for joint in self.joints)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children mu_i of each body."""
        children: list[list[int]] = [[] for _ in self.names]
        for i, parent in enumerate(self.parents):
            if not self.is_root(i):
                children[parent].append(i)
        return tuple(map(tuple, children))

    def is_root(self, i: int) -> bool:
        """Whether body i moves on the world."""
        return self.parents[i] == WORLD

    def link(self, name: str) -> int:
        """The index of a moving link.

        Raises:
            UnknownModelNameError: no moving link has that name.
        """
        if name in self._link_index:
            return self._link_index[name]
        if name in self.frames:
            frame = self.frames[name]
            carrier = "the world" if frame.on_world else f"link '{self.names[frame.link]}'"
            raise UnknownModelNameError(f"moving link ('{name}' is fixed to {carrier});", name, self.names, self.name)
        raise UnknownModelNameError("link", name, self.names, f"robot '{self.name}'")

    def joint(self, name: str) -> int:
        """The index of the link that a joint carries.

        Raises:
            UnknownModelNameError: no moving joint has that name.
        """
        if name not in self._joint_index:
            raise UnknownModelNameError("moving joint", name, self.joint_names, f"robot '{self.name}'")
        return self._joint_index[name]

    def frame(self, name: str) -> Frame:
        """A frame by name: of a link, or fixed to a link or the world.

        Raises:
            UnknownModelNameError: nothing has that name.
        """
        if name in self._link_index:
            return Frame(self._link_index[name], Transform.identity())
        if name not in self.frames:
            raise UnknownModelNameError("frame", name, (*self.names, *self.frames), f"robot '{self.name}'")
        return self.frames[name]

    @cached_property
    def _link_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def _joint_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.joint_names)}

    def constant(self, X: Transform) -> Transform:
        """A constant transform over the scalar of the tree; as it is, where that is floats."""
        return X

    def depths(self) -> tuple[int, ...]:
        """The number of joints between each body and the world (n_links)."""
        depths: list[int] = []
        for i, parent in enumerate(self.parents):
            depths.append(1 if self.is_root(i) else depths[parent] + 1)
        return tuple(depths)

    def subtree(self, i: int) -> tuple[int, ...]:
        """Body i and all that it carries, in topological order."""
        carried = {i}
        for k in range(i + 1, self.n_links):
            if self.parents[k] in carried:
                carried.add(k)
        return tuple(sorted(carried))

    def neutral_configuration(self) -> Floats:
        """The configuration (nq,) at which each joint transform is the identity.

        Example:
            >>> ball = nd.tools.random_tree(1, seed=0, kinds=["spherical"])
            >>> print(ball.neutral_configuration())  # x, y, z, w
            [0. 0. 0. 1.]
        """
        return np.concatenate([joint.neutral() for joint in self.joints])

    def random_configuration(self, rng: np.random.Generator | int | None = None) -> Floats:
        """A random configuration (nq,), within the joint limits where there are any that leave room.

        Loops and couplings are closed in it; limits of joints that these move may then be left.

        Args:
            rng: a generator, or a seed for one.

        Raises:
            NotClosedError: loops that cannot be closed: names the one that stays open.

        Example:
            >>> print(np.round(nd.autotree(3).random_configuration(0), 2))
            [ 0.86 -1.45 -2.88]
        """
        q: Floats = self.random_configurations(1, rng)[0]
        return q

    def random_configurations(self, n: int, rng: np.random.Generator | int | None = None) -> Floats:
        """Random configurations (n, nq), each as `random_configuration` returns it: quicker with loops."""
        rng = np.random.default_rng(rng)
        if self.closing_parts:
            return self.components[0].random_configurations(self, rng, n)
        return np.array([self.draw(rng) for _ in range(n)]).reshape(n, self.nq)

    def draw(self, rng: np.random.Generator) -> Floats:
        """A random configuration (nq,), whose loops and couplings may be open."""
        return np.concatenate([joint.random(rng) for joint in self.joints])

    @cached_property
    def closing_parts(self) -> tuple[Closing, ...]:
        """Its closing constraints: loops and couplings."""
        parts = (part for component in self.components for part in component.on(self))
        return tuple(part for part in parts if isinstance(part, Closing))

    def integrate(self, q: Floats, qd: Floats, dt: float = 1.0) -> Floats:
        """The configuration reached from q by the constant velocity qd in a time dt [s]: (nq,) or (nq, N).

        Raises:
            InputError: a wrong shape, or not real numbers.
        """
        q, qd = _states("q", q, self.nq), _states("qd", qd, self.nv)
        return np.concatenate([joint.integrate(q[s], dt * qd[v]) for joint, s, v in self._parts()])

    def difference(self, start: Floats, end: Floats) -> Floats:
        """The constant velocity (nv,) that leads from one configuration to the other in a second.

        Raises:
            InputError: a wrong shape, or not real numbers.
        """
        start, end = _states("start", start, self.nq), _states("end", end, self.nq)
        return np.concatenate([joint.difference(start[s], end[s]) for joint, s, _ in self._parts()])

    def _parts(self) -> Iterator[tuple[Joint, slice, slice]]:
        return zip(self.joints, self.q_slices, self.v_slices, strict=True)

    @cached_property
    def quaternions(self) -> tuple[slice, ...]:
        """Where unit quaternions lie in q."""
        return tuple(slice(s.stop - 4, s.stop) for joint, s, _ in self._parts() if "quaternion" in joint.coordinates)

    def checked_configuration(self, q: ArrayLike) -> Floats:
        """Check a configuration (nq,), and normalise its quaternions.

        Raises:
            InputError: a wrong shape, a value that is not finite, a quaternion far from unit length.
        """
        return self.normalised(checked("q", q, (self.nq,)))

    def normalised(self, q: Floats) -> Floats:
        """Configurations (..., nq) with their quaternions brought to unit length.

        Raises:
            InputError: a quaternion is further than 1e-3 from unit length: names its joint.
        """
        if not self.quaternions:
            return q
        q = q.copy(order="K")
        for part in self.quaternions:
            norm = np.linalg.norm(q[..., part], axis=-1, keepdims=True)
            wrong = ~(np.abs(norm - 1) <= QUATERNION_TOLERANCE)  # so that NaN is wrong too
            if wrong.any():
                joint = next(i for i, s in enumerate(self.q_slices) if s.stop == part.stop)
                raise InputError(
                    f"q: the quaternion (x, y, z, w) of joint '{self.joint_names[joint]}', "
                    f"q[{part.start}:{part.stop}], has length {norm[wrong][0]:.6g} instead of 1."
                )
            q[..., part] /= norm
        return q

    def replace(self, **changes: Any) -> KinematicTree:
        """A copy with some attributes changed."""
        return replace(self, **changes)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that the dynamics depend on: two trees with equal ones have equal equations."""
        hasher = hashlib.sha256()
        frames = {name: [f.link, f.X.E.tolist(), f.X.r.tolist()] for name, f in sorted(self.frames.items())}
        joints = [[joint.kind, asdict(joint) if is_dataclass(joint) else {}] for joint in self.joints]
        text: list[Any] = [self.names, self.joint_names, self.parents, joints, frames, self.gravity]
        text += [[component.to_dict() for component in self.components]] if self.components else []
        hasher.update(json.dumps(text).encode())
        for X in self.X_tree:
            hasher.update(np.ascontiguousarray(X.E).tobytes() + np.ascontiguousarray(X.r).tobytes())
        hasher.update(self.I.tobytes())
        return hasher.hexdigest()


def _read_only(X: Transform) -> Transform:
    E, r = np.array(X.E, dtype=float), np.array(X.r, dtype=float)
    E.flags.writeable = r.flags.writeable = False
    return Transform(E, r)


def one_after_the_other(sizes: Iterable[int]) -> tuple[slice, ...]:
    """Where parts of some sizes lie, one after the other."""
    ends = [0, *accumulate(sizes)]
    return tuple(slice(start, end) for start, end in pairwise(ends))


def _vector_of_gravity(given: object) -> tuple[float, float, float]:
    """Three finite numbers.

    Raises:
        ModelError: it is something else.
    """
    try:
        x, y, z = checked("gravity", given, (3,))  # type: ignore[arg-type]
    except InputError:
        down = -abs(given) if isinstance(given, int | float) and 0 < abs(given) < math.inf else GRAVITY[2]
        raise ModelError(
            f"gravity must be three finite numbers [m/s^2] in world axes, whose z points upwards, not {given!r:.60}. "
            f"Write gravity=(0, 0, {down:g})."
        ) from None
    return float(x), float(y), float(z)


def _states(name: str, value: ArrayLike, size: int) -> Floats:
    """The numbers (size,) of a state or (size, N) of many."""
    array = numeric(name, value)
    if array.shape[:1] != (size,) or array.ndim > 2:
        raise InputError(f"{name} has shape {array.shape}, expected ({size},) or ({size}, N).")
    return array
