"""Torques from outside as a filter estimates them: from the torques that are read and the joints' velocities.

Speeds persist, with accelerations as rates; what pushes walks: a torque at each joint, or a wrench on one link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import nori_dyn as nd
from nori_dyn.typing import Floats

UNKNOWN = 20.0
"""How large what pushes may be at first, as a standard deviation [N m, N]."""

EVERY = 20
"""Samples from one look at the deviations to the next."""


@dataclass(frozen=True, slots=True)
class FilterNoise:
    """What a filter takes for the noise of what is read, and the walk of what pushes.

    Attributes:
        noise: of the velocities [rad/s].
        sigma: of the torques that are read [N m].
        walk: of what pushes, a second [N m, N].
        at: the link that is pushed; any joint may be when None.
    """

    noise: float
    sigma: float
    walk: float | tuple[float, ...]
    at: str | None = None

    @property
    def sensors(self) -> nd.SensorSet:
        """The set of sensors."""
        torque: dict[str, Any] = {"type": "joint_torque", "joints": "all", "sigma": self.sigma}
        known: dict[str, Any] = {"type": "external_wrench", "links": "all", "value": 0}
        walk = list(self.walk) if isinstance(self.walk, tuple) else self.walk
        if self.at is None:
            torque["offset"] = {"sigma": UNKNOWN}
            push: Mapping[str, Any] = {"of": "offset", "walk": walk}
        else:
            known["links"] = {"except": [self.at]}
            push = {"of": f"fx:{self.at}", "walk": walk, "sigma": UNKNOWN}
        speed = {"of": "qd", "rate": "qdd", "noise": self.noise}
        content = {"name": "pushed", "measurements": [torque, known], "memory": {"speed": speed, "push": push}}
        return nd.SensorSet.from_dict(content)


@dataclass(frozen=True, slots=True, eq=False)
class Filtered:
    """What a filter says of the torques from outside.

    Attributes:
        torques: the estimates (n, nv) [N m].
        deviations: their standard deviations at every `EVERY`th sample (n / EVERY, nv).
        ratio: of what it read to what it was told of noise, see `Consistency`.
    """

    torques: Floats
    deviations: Floats
    ratio: float


def by_filter(tree: nd.KinematicTree, t: Floats, q: Floats, qd: Floats, tau: Floats, noise: FilterNoise) -> Filtered:
    """The torques from outside of an arm as a filter estimates them, each from the readings up to it.

    Args:
        tree: the robot.
        t: times (n,) [s].
        q: configurations (n, nq).
        qd: velocities (n, nv).
        tau: torques that are read (n, nv).
        noise: what the filter takes for the noise, and the walk of what pushes.
    """
    steps = np.diff(t, prepend=t[0])
    name = "offset" if noise.at is None else f"fx:{noise.at}"
    observer = nd.Tracker(nd.plan(nd.System(tree, noise.sensors), outputs=[name]), dt=float(np.median(steps)))
    pushes, spreads = [], []
    for k, dt in enumerate(steps.tolist()):
        observer.inputs.q[:], observer.inputs.qd[:], observer.inputs.y[:] = q[k], qd[k], tau[k]
        observer.tick(dt if k else None).raise_for_status()
        pushes.append(np.array(vars(observer.outputs)[name]))
        if k % EVERY == 0:
            state = observer.state
            own = state.places(name) if noise.at else [state.places(f"offset:tau:{one}")[0] for one in tree.joint_names]
            spreads.append(state.covariance[np.ix_(own, own)])
    found, P = np.array(pushes), np.array(spreads)
    if noise.at is None:
        return Filtered(-found, np.sqrt(np.diagonal(P, axis1=1, axis2=2)), observer.consistency.ratio)
    J = nd.jacobian(tree, q.T, noise.at)
    spread = np.sqrt(np.einsum("ijn,nik,kjn->nj", J[..., ::EVERY], P, J[..., ::EVERY]))
    return Filtered(np.einsum("ijn,ni->nj", J, found), spread, observer.consistency.ratio)
