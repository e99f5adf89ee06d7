"""The state of a floating base: velocity, gravity and angular velocity as memory, and what reads them.

The root of the tree has no encoders. What a tick is given of it is a reference that anybody may choose: axes, by the
quaternion of q, which turn with the angular velocity w_ref of qd, in a frame that moves along, so that the linear part
of qd is zero. That is no approximation: forces do not depend on a frame that moves evenly (Galilei), and gravity is in
`a` itself, Nori (3a). In the axes of the reference, R from base coordinates to these,

    U   velocity of the origin of the base     dU/dt = R a + G + (R (w_ref - w)) x U
    G   gravity                                dG/dt = (R (w_ref - w)) x G
    w   angular velocity, base coordinates     dw/dt = angular part of a

where a is the acceleration of the base with gravity in it. All is linear but the two products. There U is the last
estimate, which stands in q where the position would, on which nothing depends; and G is that of the tree, (0, 0,
-9.81), from which a reference that follows the estimate is never far. Yaw about gravity and position are in nothing
that these sensors read, and so not in the memory.

Source: own derivation (tests/unit/measurements/test_floating_base.py); Barfoot, State Estimation for Robotics, ch. 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import FiniteFloat

from nori_dyn.algebra.crossing import as_transform
from nori_dyn.algebra.spatial import add, cross, join, matmul, matvec, skew, spread
from nori_dyn.errors import SensorConfigError
from nori_dyn.measurements.base import VariableReading
from nori_dyn.measurements.frame_reading import LinkReading, SensorSite, SiteRows, variable_reading
from nori_dyn.model.joints import MOTION, Free
from nori_dyn.model.kinematics import Kinematics, transform_between
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.variables import Unknown, VariableKey
from nori_dyn.typing import Array

BASE = "base"
"""The kind of the state of the base as variables."""

RATE = "base_rate"
"""The kind of its derivatives by time."""

UNITS = {"velocity": "m/s", "gravity": "m/s^2", "angular_velocity": "rad/s"}
"""The state, in an order in which each rate depends on what comes later only, and the unit of each."""

RATE_UNITS = {"velocity": "m/s^2", "gravity": "m/s^3", "angular_velocity": "rad/s^2"}
"""The unit of the derivative of each."""

SIGMAS = {"velocity": 10.0, "gravity": 20.0, "angular_velocity": 10.0}
"""Standard deviations at first by default: as good as nothing is known."""

GRAVITY_WALK = 0.003
"""How far each component of G walks in one second: products of two errors, which no rate has [m/s^2]."""

SIZE = "gravity_size"
"""The name of the row that says how large gravity is."""

SIZE_SIGMA = 0.02
"""Its standard deviation where the direction is known: as gravity differs from place to place on Earth [m/s^2]."""

COMPONENTS = {"velocity": ("x", "y", "z"), "gravity": ("x", "y", "z"), "angular_velocity": ("wx", "wy", "wz")}


def base_place(memory_names: Iterable[str]) -> int | None:
    """Where the state of the base begins among the numbers of the memory; None where it is none of it."""
    return next((k for k, name in enumerate(memory_names) if name.startswith(f"{BASE}:")), None)


def floating_root(tree: KinematicTree) -> int:
    """The link that is the floating base of a robot.

    Raises:
        SensorConfigError: its base is fixed, or it has several.
    """
    found = [i for i, joint in enumerate(tree.joints) if tree.is_root(i) and isinstance(joint, Free)]
    if len(found) != 1:
        what = "is fixed: load the robot with base='floating'" if not found else "is one of several"
        raise SensorConfigError(f"the base of robot '{tree.name}' {what}.")
    return found[0]


def root_numbers(tree: KinematicTree) -> list[int]:
    """Places among q and qd of the numbers of the floating base of a robot.

    Raises:
        SensorConfigError: its base is fixed, or it has several.
    """
    root = floating_root(tree)
    q, qd = tree.q_slices[root], tree.v_slices[root]
    return [*range(q.start, q.stop), *range(tree.nq + qd.start, tree.nq + qd.stop)]


ROWS = tuple(f"{name}.{component}" for name, parts in COMPONENTS.items() for component in parts)


@dataclass(frozen=True, slots=True)
class BaseRates:
    """The rows of the rates of the state of a floating base, see above: they hold exactly.

    Attributes:
        root: the base.
    """

    root: int

    name: ClassVar[str] = "base_rates"
    source: ClassVar[str] = "docs/design.md, 4.12"
    group: ClassVar[str] = "memory"
    components: ClassVar[tuple[str, ...]] = ROWS
    is_measured: ClassVar[bool] = False
    sigma: ClassVar[None] = None

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """The state and its rates, see `WithUnknowns`."""
        return tuple(
            Unknown(VariableKey(kind, self.root, name), COMPONENTS[name], (unit,) * 3, is_force=False)
            for kind, units in ((BASE, UNITS), (RATE, RATE_UNITS))
            for name, unit in units.items()
        )

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        R = _axes(at, self.root)
        zero = R * 0
        eye = zero + spread(np.eye(3), (3, 3), R.shape[2:])
        turning = [-matmul(skew(x), R) for x in self._turned(at, R.shape[2:])]
        root, none = self.root, np.concatenate([zero, zero], axis=1)
        of_a = np.concatenate([zero, -R], axis=1), none, np.concatenate([-eye, zero], axis=1)
        found: dict[VariableKey, Array] = {
            VariableKey("a", root): np.concatenate(of_a),
            VariableKey(BASE, root, "gravity"): np.concatenate([-eye, zero, zero]),
            VariableKey(BASE, root, "angular_velocity"): np.concatenate([*turning, zero]),
        }
        for place, name in enumerate(UNITS):
            found[VariableKey(RATE, root, name)] = np.concatenate([eye if k == place else zero for k in range(3)])
        return found

    def bias(self, at: Kinematics, y: Array) -> Array:
        w = matvec(_axes(at, self.root), at.v[self.root][:3])
        return join(*(-cross(w, x) for x in self._turned(at, w.shape[1:])), w * 0)

    def _turned(self, at: Kinematics, batch: tuple[int, ...]) -> tuple[Array, Array]:
        """U and G in the products (3, ...)."""
        U = np.asarray(as_transform(at.X_up[self.root]).r)
        return spread(U, (3,), batch), spread(np.asarray(at.tree.gravity, dtype=float), (3,), batch)


def gravity_size(root: int, gravity: Sequence[float]) -> Equation:
    """The row |G| = |g|, to first order about the tree's gravity g (3,), which is not zero.

    What it leaves out is of second order, trace P / (2 |g|) in the mean, with P the covariance of G across g. Its
    weight is an input of the tick, see `filtering.base_reference`.
    """
    size = float(np.linalg.norm(gravity))
    return VariableReading(
        name=SIZE,
        source="docs/design.md, 4.12",
        group="memory",
        components=("",),
        key=VariableKey(BASE, root, "gravity"),
        matrix=(np.asarray(gravity, dtype=float) / size)[None],
        value=(size,),
        sigma=(SIZE_SIGMA,),
        units=("m/s^2",),
    )


def _axes(at: Kinematics, root: int) -> Array:
    """R (3, 3, ...), from base coordinates to the axes of the reference."""
    return np.swapaxes(np.asarray(as_transform(at.X_up[root]).E), 0, 1)


@dataclass(frozen=True, slots=True)
class VelocityReading(SiteRows):
    """Rows of the velocity of a frame, by the state of the base and the velocities of joints.

    X (B (w - w_ref, R^T U) + v_i) - y = 0, with B from the base to the link, and v_i what qd gives it.

    Attributes:
        root: the base.
    """

    root: int

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        M = (self.place.X @ transform_between(at, self.place.body, self.root)).motion_matrix()[list(self.place.rows)]
        found: dict[VariableKey, Array] = {VariableKey(BASE, self.root, "angular_velocity"): M[:, :3]}
        if any(row >= 3 for row in self.place.rows):
            E = np.swapaxes(_axes(at, self.root), 0, 1)
            found[VariableKey(BASE, self.root, "velocity")] = matmul(
                spread(M[:, 3:], M[:, 3:].shape[:2], E.shape[2:]), E
            )
        return found

    def bias(self, at: Kinematics, y: Array) -> Array:
        X, rows, w = self.place.X, list(self.place.rows), at.v[self.root][:3]
        reference = transform_between(at, self.place.body, self.root).apply_motion(join(w, w * 0))
        v = add(at.v[self.place.body], -reference)
        return add(X.apply_motion(v)[rows], self.equation.bias(at, y))


class BaseReading(LinkReading):
    """A reading of the velocity of a frame on a robot whose base is state, `memory: {base: {of: base}}`."""

    spatial: ClassVar[tuple[str, ...]] = (*MOTION[:3], "vx", "vy", "vz")

    def on(self, tree: KinematicTree) -> Iterator[Equation]:
        root = floating_root(tree)
        for equation in super().on(tree):
            assert isinstance(equation, VelocityReading)
            units = tuple("rad/s" if name.startswith("w") else "m/s" for name in equation.components)
            yield replace(equation, root=root, equation=replace(equation.equation, units=units))

    def reads(self, place: SensorSite) -> Equation:
        rows = variable_reading(place, self, "docs/design.md, 4.12", VariableKey("a", place.body))
        return VelocityReading(rows, root=0)


class Gyroscope(BaseReading):
    """The angular velocity of a link, in the axes of a frame [rad/s].

        angular part of X v_i - y = 0

    Its offset drifts slowly, `memory: {base: {of: base}, bias: {of: offset, walk: 0.0001}}`:

        - {type: gyroscope, links: link1, sigma: 0.01, offset: {sigma: 0.05}}

    Source: own derivation (tests/unit/measurements/test_floating_base.py).
    """

    type: Literal["gyroscope"]
    components: list[Literal["wx", "wy", "wz"]] | None = None

    label: ClassVar[str] = "gyro"
    default: ClassVar[tuple[str, ...]] = MOTION[:3]


class ZeroVelocity(BaseReading):
    """A frame that stands: its velocity is zero, or another known one [rad/s, m/s].

        X v_i = 0

    A point that may turn unless `components` says more: of a flat sole all six. Its sigma is how fast it slips:

        - {type: zero_velocity, links: link3, sigma: 0.05}

    Source: Bloesch et al., State Estimation for Legged Robots, RSS 2012, for feet that stand.
    """

    type: Literal["zero_velocity"]
    components: list[Literal["wx", "wy", "wz", "vx", "vy", "vz"]] | None = None
    value: FiniteFloat | list[FiniteFloat] | None = 0.0

    label: ClassVar[str] = "standing"
    default: ClassVar[tuple[str, ...]] = ("vx", "vy", "vz")
