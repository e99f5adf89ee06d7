"""Parameters of a robot identified from its logs: `nd.identify`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from numpy.typing import ArrayLike

from nori_dyn.errors import InputError
from nori_dyn.identification.findings import Identification
from nori_dyn.identification.log_reader import IdentifyOptions
from nori_dyn.identification.run import IdentificationRun
from nori_dyn.io.sensor_configs import load_sensors
from nori_dyn.logs.differentiation import Differentiate, derivation
from nori_dyn.logs.log import Log, read_log
from nori_dyn.model.joints import Free
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import Missing
from nori_dyn.tables.progress import Watched, progress_bar

Given: TypeAlias = Log | str | os.PathLike[str]
"""A log as it is given."""

SENSORS = {False: "identification", True: "identification_floating"}
"""The shipped set of sensors that is taken where only a robot is given, by whether its base floats."""


def identify(
    logs: Given | Sequence[Given],
    system: System | KinematicTree,
    parameters: Sequence[str] = ("inertias", "friction", "rotors", "offsets"),
    *,
    held_out: Given | Sequence[Given] | float = 1 / 3,
    loaded: Given | Sequence[Given] = (),
    load_on: str | None = None,
    known: Mapping[str, float] | None = None,
    physical: bool = True,
    hulls: Mapping[str, ArrayLike] | None = None,
    robust: bool = False,
    moving: float | None = None,
    cutoff: float | None = None,
    differentiate: Differentiate = "auto",
    dt: float | None = None,
    missing: Missing = "refuse",
    curves: bool = False,
    backend: str = "auto",
    progress: Watched = None,
) -> Identification:
    """Return what logs say of a robot's parameters: inertias, friction, rotors, springs, offsets and gains of sensors.

    Every sensor of forces says something: joint torques, motor currents, force-torque sensors anywhere, plates. Which
    combinations of parameters they can tell at all is found exactly; within these, what the log leaves open stays next
    to what the model says.

    Args:
        logs: one log or several, as files or as `nd.read_log` returns them.
        system: the robot and its sensors; a robot alone has those of the set "identification", which are joint torques,
            or of "identification_floating" where its base floats. Accelerations of the
            joints are read, made of velocities (`differentiate`), or estimated from accelerometers.
        parameters: what to look for: words ("inertias", "friction", "rotors", "springs", "offsets", "gains"), names
            ("m:forearm", "viscous:elbow") or patterns ("I:*", "*:l_*"). All others are known from the model.
        held_out: the share at the end of each log that is left out of a first fit, on which that is judged; or other
            logs for that. What is returned is found from all of `logs`.
        loaded: further logs, in which the robot carries a load.
        load_on: the link that carries it. Its parameters are called "m:load", "mc:load.x", "I:load.xx" and so on, in
            the frame of that link.
        known: values of parameters that are known, by name, such as {"m:load": 2.5}.
        physical: whether to return inertias that bodies can have (needs the extra `identify`).
        hulls: for links, points (n_points, 3) in the link's frame [m], in whose convex hull its centre of mass is, for
            inertias that bodies can have; "load" is the load, in the frame of its link.
        robust: whether residuals that are far off count less (Huber); reads the logs several times.
        moving: speed [rad/s or m/s] above which a joint moves: its torque counts only then, as friction is whatever it
            takes to stand still; all count when None.
        cutoff: frequency [Hz] of a zero-phase low-pass over regressor and readings alike; none when None.
        differentiate: how accelerations are made of velocities, as in `estimate`.
        dt: time between samples [s]; that of the log's times when None.
        missing: "drop" leaves samples out that hold what is no number.
        curves: whether to keep readings over the time beside what is found, for a page: `nd.save_html`.
        backend: as for `compile`.
        progress: as for `plan`.

    Raises:
        InputError: the log lacks what is needed, the sensors say nothing of forces or of the motion, or gains of all
            sensors are looked for and nothing is known that tells their common factor.
        UnknownNameError: a parameter, joint or link that does not exist.
        MappingError: the mapping fits neither the log nor the robot.
        FileFormatError: the log is damaged.
        MissingExtraError: `physical` without the extra.

    Source: Atkeson, An and Hollerbach (1986); Gautier (1991); Lee, Wensing and Park (2020).

    Example:
        >>> arm = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))
        >>> t = np.arange(0.0, 10.0, 0.01)
        >>> motion = [f(w * t) * w**k for k, f in enumerate((np.sin, np.cos)) for w in (1.0, 2.3)]
        >>> q, qd = np.stack(motion[:2], axis=1), np.stack(motion[2:], axis=1)
        >>> qdd = -q * np.array([1.0, 2.3]) ** 2
        >>> tau = nd.compile(nd.rnea, arm).batch(q, qd, qdd)
        >>> np.savez("log.npz", t=t, q=q, qd=qd, qdd=qdd, tau=tau)
        >>> wrong = arm.replace(I=1.1 * arm.I)
        >>> found = nd.identify("log.npz", wrong, ["inertias"], physical=False)
        >>> print(max(fit.after for fit in found.fits) < 1e-6)
        True
    """
    job = IdentifyOptions(
        system=with_sensors(system) if isinstance(system, KinematicTree) else system,
        differentiation=derivation(differentiate, dt),
        dt=dt,
        moving=moving,
        cutoff=cutoff,
        missing=missing,
        backend=backend,
        is_robust=robust,
        is_physical=physical,
        hulls=dict(hulls or {}),
        has_curves=curves,
    )
    if moving is not None and not 0 <= moving < math.inf:
        raise InputError(f"the speed above which a joint moves is {moving:g}: it must be a number not below zero.")
    if hulls and not physical:
        raise InputError("hulls are for inertias that bodies can have: leave out physical=False, or the hulls.")
    share = 0.0 if not isinstance(held_out, float | int) else float(held_out)
    if not 0 <= share < 1:
        raise InputError(f"the share held out is {share:g}: it must be at least 0 and less than 1.")
    with progress_bar("identifying", progress) as stage:
        run = IdentificationRun(job, parameters, load_on, known or {}, stage)
        others = () if isinstance(held_out, float | int) else _logs(held_out)
        return run.identified(_logs(logs), _logs(loaded), others, share)


def with_sensors(tree: KinematicTree) -> System:
    """Return a robot with the sensors that are taken where none are named."""
    return System(tree, load_sensors(SENSORS[any(isinstance(joint, Free) for joint in tree.joints)]))


def _logs(given: Given | Sequence[Given]) -> list[Log]:
    each = [given] if isinstance(given, Log | str | os.PathLike) else given
    return [log if isinstance(log, Log) else read_log(log) for log in each]
