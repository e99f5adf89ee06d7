"""Where a robot is touched: which link, by which force, at which point of its surface, with probabilities.

A tracker judges "link k is touched" by a wrench w of six free numbers, whose posterior is N(w_k, P_k). A touch is a
force f at a point x of the link's surface, w = A(x) f with A = [x x; 1], that pushes within the cone of friction. So
each link's probability is multiplied by

    g_k = integral of p(w | a force on the surface of k) N(w; w_k, P_k) / N(w; 0, P_0) dw

over points, P_0 being the variance of wrenches that the tracker takes. Given x all is Gaussian in f: with the
information S = A^T P_k^-1 A, and the wrench that is nearest to w_k among those of x at the distance chi,

    g_k = mean over points of  share |S|^(-1/2) exp(-chi^2 / 2)  times  |P_k|^(-1/2) sigma_m^3

where `share` is the probability that f is within the cone, over the cone's part of all directions. Points that count
are those that the line of action {x : x x f = m} meets. As w_k holds all readings since the touch began, so does g_k: a
tick multiplies by g_k over what it was before.

Source: own derivation (tests/unit/filtering/test_localization.py). For points as particles: Manuelli and Tedrake,
Localizing external contact using proprioceptive sensors: the contact particle filter, IROS 2016.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from nori_dyn.algebra.spatial import Transform, skew, stack
from nori_dyn.errors import InputError, PlanError
from nori_dyn.filtering.hypothesis_steps import HypothesisSteps
from nori_dyn.filtering.square_root import Posterior
from nori_dyn.filtering.tracked import Recognised
from nori_dyn.filtering.tracker import TrackerBase
from nori_dyn.measurements.touch import from_base
from nori_dyn.model.kinematics import positions
from nori_dyn.model.surface import Surface
from nori_dyn.model.tree import WORLD, KinematicTree
from nori_dyn.program.functions import compile
from nori_dyn.system.builder import Weights
from nori_dyn.system.inputs import Missing
from nori_dyn.system.variables import TOUCH
from nori_dyn.tables import Shown, listed
from nori_dyn.typing import Array, Floats

LIKELY = 1e-6
"""Probability of a state below which its surface is not looked at."""

FARTHEST = 500.0
"""The largest size of the logarithm of g_k: exp of it is a number."""

TINY = 1e-300
"""What the probability of a state counts for at least."""

ROUNDING = 1e-12
"""The share of a pivot of S that counts at least."""

WRENCHES = np.hstack(
    [np.vstack([np.column_stack([skew(-e), np.zeros(3)]), np.outer(e, [0, 0, 0, 1])]) for e in np.eye(3)]
)
"""A(x) = [x x; 1] as a matrix (6, 3 x 4) of (x, 1): of each force along an axis e the moment x x e = -e x x, and e."""

FRICTION = 1.0
"""Coefficient of friction by default: a touch pushes within 45 degrees of the normal."""


class PointOfContact(NamedTuple):
    """Where on a link a touch is, if it is on that link.

    Attributes:
        point: on average (3,) [m].
        deviation: root mean square distance from there [m].
        force: at the point (3,) [N].
    """

    point: Floats
    deviation: float
    force: Floats


@dataclass(frozen=True, slots=True, eq=False)
class LinkContact:
    """What is known of a touch if it is on a link.

    Attributes:
        link: its name.
        probability: that it is touched.
        wrench: on the link (6,), angular first [N m, N]: of six free numbers.
        covariance: of the wrench (6, 6).
        point: where its line of action meets the surface, on average over where it may be (3,) [m]; None of a link
            without a surface.
        deviation: how far from there it is expected, root mean square [m]; inf without a surface.
        force: the force at the point (3,) [N]; that of the wrench without a surface.

    Frame: that of the link.
    """

    link: str
    probability: float
    wrench: Floats
    covariance: Floats
    point: Floats | None
    deviation: float
    force: Floats

    @staticmethod
    def of(link: str, probability: float, R: Floats, z: Floats, at: PointOfContact | None) -> LinkContact:
        """That of a posterior, R w = z + noise of unit variance."""
        root = np.linalg.inv(R)
        wrench = root @ z
        return LinkContact(link, probability, wrench, root @ root.T, *(at or (None, np.inf, wrench[3:])))


@dataclass(frozen=True, eq=False, repr=False)
class LocalizedContact(Shown):
    """Where a robot is touched at a tick, if anywhere.

    Attributes:
        probabilities: of each link that it is touched.
        links: what is known of the touch on each likely link, the likeliest first.
        tracked: the tracker's estimate, by wrenches of six free numbers.

    Example:
        >>> arm = nd.autotree(4, skew=1.0).replace(gravity=(0.0, 0.0, 0.0))
        >>> torques = {"type": "joint_torque", "joints": "all", "sigma": 0.05}
        >>> memory = {"speed": {"of": "qd", "rate": "qdd", "noise": 0.001}}
        >>> content = {"name": "arm", "measurements": [torques], "memory": memory, "touch": {"links": "all"}}
        >>> plan = nd.plan(arm, nd.SensorSet.from_dict(content), outputs=["fx"])
        >>> tracker = nd.Tracker(plan, dt=0.001, hypotheses=nd.Hypotheses())
        >>> from nori_dyn.model.surface import box
        >>> hull = nd.tools.Surface.of(box([1.0, 0.1, 0.1]) + [0.5, 0.0, 0.0], spacing=0.05)
        >>> localizer = nd.tools.ContactLocalizer(tracker, dict.fromkeys(arm.names, hull))
        >>> found = [localizer.step(np.zeros(4), np.zeros(4), np.zeros(4)) for _ in range(10)][-1]
        >>> found.link is None, found.free > 0.5, list(found.probabilities)
        (True, True, ['link1', 'link2', 'link3', 'link4'])
    """

    probabilities: Mapping[str, float]
    links: tuple[LinkContact, ...]
    tracked: Recognised

    @property
    def free(self) -> float:
        """The probability that no link is touched."""
        return max(0.0, 1.0 - sum(self.probabilities.values()))

    @property
    def contact(self) -> LinkContact | None:
        """The likeliest touch; None where none is as likely as that there is none."""
        return next((one for one in self.links if one.probability > self.free), None)

    @property
    def link(self) -> str | None:
        """The link that is touched, most likely; None where there is none."""
        return self.contact.link if self.contact else None

    def __repr__(self) -> str:
        return (
            f"LocalizedContact({self.link or 'free'}, probability {max(self.free, *self.probabilities.values()):.3g})"
        )


class ContactLocalizer:
    """Tells which link is touched, by which force and where; not to be shared between threads.

    Attributes:
        tracker: the tracker; the probabilities of its states are those with surfaces.
        surfaces: of the links.
        friction: the coefficient of friction.

    Args:
        tracker: a tracker with hypotheses, of sensors with `touch`.
        surfaces: by the name of the link, see `nd.tools.surfaces`; a touch on a link that has none is any wrench.
        friction: see above.

    Raises:
        PlanError: the sensors have no `touch`; no link that may be touched has a surface.
        InputError: the tracker has a lag; contacts are given, not recognised; a coefficient that is not positive.

    Source: own derivation (tests/unit/filtering/test_localization.py).

    Example:
        >>> arm = nd.autotree(4, skew=1.0)
        >>> torques = {"type": "joint_torque", "joints": "all", "sigma": 0.05}
        >>> base = {"type": "force_torque", "joints": "joint1", "sigma": 0.1}
        >>> memory = {"speed": {"of": "qd", "rate": "qdd", "noise": 0.001}}
        >>> content = {"name": "arm", "measurements": [torques, base], "memory": memory, "touch": {"links": "all"}}
        >>> plan = nd.plan(arm, nd.SensorSet.from_dict(content), outputs=["fx"])
        >>> tracker = nd.Tracker(plan, dt=0.001, hypotheses=nd.Hypotheses())
        >>> from nori_dyn.model.surface import box
        >>> hull = nd.tools.Surface.of(box([1.0, 0.1, 0.1]) + [0.5, 0.0, 0.0], spacing=0.02)
        >>> localizer = nd.tools.ContactLocalizer(tracker, dict.fromkeys(arm.names, hull))

        An arm that stands still, pushed with 20 N at the side of its third link:

        >>> true = [{"type": "joint_acceleration", "joints": "all"}, {"type": "external_wrench", "links": "all"}]
        >>> held = nd.plan(nd.System(arm, nd.SensorSet.from_dict({"name": "held", "measurements": true})), ["tau", "f"])
        >>> q, zero, fx = np.array([0.1, 0.4, -0.3, 0.2]), np.zeros(4), np.zeros((4, 6))
        >>> fx[2] = *np.cross([0.7, 0.05, 0.0], [0.0, -20.0, 0.0]), 0.0, -20.0, 0.0
        >>> truth = held.solver().solve(q, zero, np.concatenate([zero, fx.ravel()]))
        >>> y = np.concatenate([truth.tau, truth.f[0]])
        >>> found = [localizer.step(q, zero, y) for _ in range(30)][-1]
        >>> found.link, bool(found.contact.deviation < 0.02)
        ('link3', True)
        >>> bool(np.linalg.norm(found.contact.point - [0.7, 0.05, 0.0]) < 0.02)
        True
    """

    def __init__(
        self, tracker: TrackerBase[Recognised], surfaces: Mapping[str, Surface], friction: float = FRICTION
    ) -> None:
        steps = tracker.steps
        if not isinstance(steps, HypothesisSteps):
            raise InputError(
                "contacts are given here: give a tracker that recognises them, hypotheses=nd.Hypotheses()."
            )
        if tracker.lag:
            raise InputError("touches are located at the last tick: give a tracker without a lag.")
        steps.surfaces = self._touched = TouchedSurfaces(steps, surfaces, friction)
        self.tracker, self.surfaces, self.friction = tracker, dict(surfaces), friction

    def step(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        y: ArrayLike | Mapping[str, Any],
        dt: float | None = None,
        weights: Weights = None,
        missing: Missing = "refuse",
    ) -> LocalizedContact:
        """Say where the robot is touched at a tick, from its readings and all before; see `Tracker.step`.

        Raises:
            InputError: see `Tracker.step`.
            SingularSystemError: see `Tracker.step`.
        """
        tracked = self.tracker.step(q, qd, y, dt, weights, missing)
        return LocalizedContact(self._touched.of_links(tracked), self._touched.links, tracked)


class TouchedSurfaces:
    """What the surfaces of links say of a touch, beside a tracker's steps.

    Attributes:
        links: what is known of the touch on each likely link after the last tick, the likeliest first.

    Args:
        steps: the steps of a tracker with hypotheses, of sensors with `touch`.
        surfaces: by the name of the link.
        friction: the coefficient of friction.

    Raises:
        PlanError: the sensors have no `touch`; no link that may be touched has a surface.
        InputError: a coefficient that is not positive.
    """

    def __init__(self, steps: HypothesisSteps, surfaces: Mapping[str, Surface], friction: float = FRICTION) -> None:
        if not friction > 0:
            raise InputError(f"friction is {friction!r}: a coefficient of friction is a positive number.")
        system, touched = steps.tick.system, steps.touched
        if not touched:
            raise PlanError(
                f"sensors '{system.sensors.name}' have no links that may be touched: touch: {{links: all}}."
            )
        own = {system.tree.frame(name).link: PointsOfContact(surface, friction) for name, surface in surfaces.items()}
        self._poses = compile(poses_from_base, system.tree)
        links = [[name for name in state if name in touched] for state in steps.model.states]
        self._links = [names[0] if len(names) == 1 else "" for names in links]
        self._bodies = [system.tree.frame(name).link if name else WORLD for name in self._links]
        self._points = [own.get(body) for body in self._bodies]
        if not any(self._points):
            raise PlanError(f"none of the links that may be touched has a surface: {listed(touched, 6)}.")
        memory = steps.tick.coordinates.memory
        of_touch = [one.variable.kind == TOUCH for one in memory for _ in one.mean]
        self._size = len(of_touch)
        self._order = None if all(of_touch[-6:]) else np.argsort([*of_touch, 2], kind="stable")
        sigma = next(one.sigma for one in memory if one.variable.kind == TOUCH) or ()
        self._log_size = float(np.log(sigma[:3]).sum())
        self.begin(steps)

    def begin(self, steps: HypothesisSteps) -> None:
        """Go back to before the first tick."""
        self._before, self._logs = steps.probabilities.copy(), np.zeros(len(self._links))
        self.links: tuple[LinkContact, ...] = ()

    @property
    def contact(self) -> LinkContact | None:
        """The touch in the likeliest state; None where none is."""
        first = next(iter(self.links), None)
        return first if first is not None and first.probability == self._before.max() else None

    @property
    def point(self) -> Floats | None:
        found = self.contact
        return None if found is None or found.point is None else np.array([*found.point, found.deviation])

    def of_links(self, tracked: Recognised) -> dict[str, float]:
        """The probability that each link is touched."""
        return {name: tracked.probability_of(name) for name in dict.fromkeys(name for name in self._links if name)}

    def locate(self, steps: HypothesisSteps, q: Floats, dt: float) -> None:
        """Multiply the probabilities of states by what surfaces say, after a tick at a configuration (nq,).

        Args:
            steps: those that took the tick.
            q: see above.
            dt: time since the tick before [s].
        """
        own, p = np.zeros(len(self._links)), steps.probabilities
        if steps.ticks:  # how much of each state is the same at the tick before; a touch that begins has no log g
            T = steps.model.transitions(dt)
            own = self._before * np.diagonal(T) / (self._before @ T)
        before = np.log(np.maximum(own * np.exp(self._logs) + 1.0 - own, TINY))
        found: dict[int, tuple[Floats, Floats, PointOfContact | None]] = {}
        logs, poses = before.copy(), np.asarray(self._poses(q))
        for h in np.flatnonzero(p >= LIKELY).tolist():
            after = steps.hypothesis_step.posterior(h) if self._links[h] else None
            if after is None:
                continue
            X = Transform(poses[self._bodies[h], :, :3], poses[self._bodies[h], :, 3])
            R, z = self._wrench(after, X)
            points = self._points[h]
            found[h] = R, z, None
            if points is not None:
                log, where = points.evidence(R, z)
                logs[h] = np.clip(log + self._log_size, -FARTHEST, FARTHEST)
                found[h] = R, z, where
        each = np.log(np.maximum(p, TINY)) + logs - before
        p[:] = np.exp(each - each.max())
        p /= p.sum()
        self._before, self._logs = p.copy(), logs
        order = sorted(found, key=lambda h: -p[h])
        self.links = tuple(LinkContact.of(self._links[h], float(p[h]), *found[h]) for h in order)

    def _wrench(self, after: Posterior, X: Transform) -> tuple[Floats, Floats]:
        """R (6, 6) and z (6,) of the wrench of a touch in link coordinates, R w = z + noise of unit variance.

        Args:
            after: what is known in a state.
            X: the transform from the base to the link.
        """
        k = self._size
        known = np.column_stack([after.R[-k:, -k:], after.z[-k:]])
        if self._order is not None:  # it is not the last part of the state
            known = np.asarray(np.linalg.qr(known[:, self._order], mode="r"))
        last = known[k - 6 : k, k - 6 :]
        return last[:, :6] @ X.inverse().force_matrix(), last[:, 6]


def poses_from_base(tree: KinematicTree, q: Array) -> Array:
    """E and r of the transform from the base to each link (n_links, 3, 4), see `from_base`."""
    at = positions(tree, q)
    each = [from_base(at, i) for i in range(tree.n_links)]
    return stack(*(np.concatenate([X.E, X.r[:, None]], axis=1) for X in each))


class PointsOfContact:
    """Points of a surface as places of a touch.

    Args:
        surface: the surface.
        friction: the coefficient of friction.
    """

    def __init__(self, surface: Surface, friction: float) -> None:
        self.points, self._normals, self._friction = surface.points, surface.normals.T.copy(), friction
        self._affine = np.vstack([surface.points.T, np.ones(len(surface.points))])
        cosine = 1 / np.sqrt(1 + friction**2)
        self._log_share = -float(np.log((1 - cosine) / 2))

    def evidence(self, R: Floats, z: Floats) -> tuple[float, PointOfContact]:
        """Logarithm of g of a posterior, R w = z + noise of unit variance, up to log sigma_m^3, and where the touch is.

        Args:
            R: (6, 6), in link coordinates.
            z: (6,).
        """
        RA = ((R @ WRENCHES).reshape(-1, 4) @ self._affine).reshape(6, 3, -1)
        S = {(i, j): np.einsum("rn,rn->n", RA[:, i], RA[:, j]) for i in range(3) for j in range(i + 1)}
        # S = L L^T
        a = np.sqrt(S[0, 0])
        b, c = S[1, 0] / a, S[2, 0] / a
        d = np.sqrt(np.maximum(S[1, 1] - b * b, ROUNDING * S[1, 1]))
        e = (S[2, 1] - b * c) / d
        f = np.sqrt(np.maximum(S[2, 2] - c * c - e * e, ROUNDING * S[2, 2]))

        def forward(v: Floats) -> Floats:
            first = v[0] / a
            second = (v[1] - b * first) / d
            return np.stack([first, second, (v[2] - c * first - e * second) / f])

        x = forward(np.tensordot(z, RA, 1))
        chi_square = z @ z - np.einsum("kn,kn->n", x, x)
        x[2] /= f
        x[1] = (x[1] - e * x[2]) / d
        x[0] = (x[0] - b * x[1] - c * x[2]) / a
        n, mu = self._normals, self._friction
        pushes = -np.einsum("kn,kn->n", x, n)
        slides = np.sqrt(np.square(x + pushes * n).sum(axis=0))
        deviation = np.sqrt(np.square(forward(n)).sum(axis=0))
        inside = log_ndtr((mu * pushes - slides) / (np.sqrt(1 + mu * mu) * deviation))
        logs = inside - chi_square / 2 - np.log(a * d * f)
        top = logs.max()
        weights = np.exp(logs - top)
        log = top + np.log(weights.mean()) + self._log_share + np.linalg.slogdet(R)[1]
        weights /= weights.sum()
        point = weights @ self.points
        away = weights @ np.square(self.points - point).sum(axis=1)
        return float(log), PointOfContact(point, float(np.sqrt(away)), x @ weights)
