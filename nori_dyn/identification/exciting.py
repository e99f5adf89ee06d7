"""From a robot, its sensors and what is wanted to the problem of its most exciting motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as la

from nori_dyn.algebra.arrays import checked, numeric
from nori_dyn.algebra.ranges import width
from nori_dyn.errors import InputError, UnknownModelNameError
from nori_dyn.identification.base_parameters import BaseParameters, base_parameters
from nori_dyn.identification.criteria import criterion_named
from nori_dyn.identification.excitation import Excitation
from nori_dyn.identification.fourier import FourierSeries
from nori_dyn.identification.limits import MotionLimits, motion_limits
from nori_dyn.identification.motion_information import MotionInformation
from nori_dyn.identification.regression import Regression, regression
from nori_dyn.identification.torque_limits import Torques, moving_numbers, where_it_rests
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.joints import Free
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

STATES = 400
"""Random states that say how much each parameter moves the readings."""

DEPENDENT = 1e-9
"""Share of a column that other columns leave of it below which it depends on them, where joints stand still."""

OF_DRIVES = 0.01
"""Standard deviation of torques that are read, as a share of what the drive can give; 1 N m or 1 N where not known."""


@dataclass(frozen=True, slots=True, eq=False)
class Exciting:
    """The problem, and what it is about.

    Attributes:
        problem: the problem.
        base: which combinations of parameters the sensors tell.
        told: which of these the motion can tell, by their number.
        sigmas: the standard deviation of each row.
    """

    problem: Excitation
    base: BaseParameters
    told: tuple[int, ...]
    sigmas: dict[str, float]


def torques_read(tree: KinematicTree) -> SensorSet:
    """Return sensors of joint torques on a robot that nothing touches, but for what holds a floating base."""
    entries: list[dict[str, Any]] = [{"type": "joint_acceleration", "joints": "all"}]
    for joint, name in zip(tree.joints, tree.joint_names, strict=True):
        if joint.nv and not isinstance(joint, Free):
            effort = tree.drives[name].effort if name in tree.drives else np.inf
            sigma = OF_DRIVES * effort if np.isfinite(effort) else 1.0
            entries.append({"type": "joint_torque", "joints": [name], "sigma": sigma})
    floats = any(isinstance(joint, Free) for joint in tree.joints)
    held = [name for name, joint in zip(tree.names, tree.joints, strict=True) if isinstance(joint, Free)]
    links = {"except": held} if floats else "all"
    if len(held) < tree.n_links:
        entries.append({"type": "external_wrench", "links": links, "value": 0})
    return SensorSet.from_dict({"name": "joint torques", "measurements": entries})


def moving_joints(tree: KinematicTree, joints: Sequence[str] | None) -> tuple[int, ...]:
    """Return the bodies whose joints move: those that are named, or all of one freedom.

    Raises:
        UnknownModelNameError: a joint that the robot does not have.
        InputError: none moves, one has several freedoms, or loops and couplings hold them together.
    """
    if tree.closing_parts:
        names = ", ".join(part.name for part in tree.closing_parts[:4])
        raise InputError(
            f"robot '{tree.name}' has loops or couplings ({names}), so that its joints do not move each for itself. "
            "Load it without components, or lock the joints that follow others."
        )
    single = [i for i, joint in enumerate(tree.joints) if (joint.nq, joint.nv) == (1, 1)]
    if joints is None:
        found = single
    else:
        names_of = [joints] if isinstance(joints, str) else list(joints)
        known = [name for name, joint in zip(tree.joint_names, tree.joints, strict=True) if joint.nv]
        for name in names_of:
            if name not in known:
                raise UnknownModelNameError("moving joint", name, known, f"robot '{tree.name}'")
        found = sorted({tree.joint(name) for name in names_of})
        for i in found:
            if i not in single:
                raise InputError(
                    f"joint '{tree.joint_names[i]}' is {tree.joints[i].kind}, with {tree.joints[i].nv} freedoms: "
                    "joints of one are moved. Leave it out of `joints`; it stays where `at` says."
                )
    if not found:
        raise InputError(f"robot '{tree.name}': no joint of one freedom moves, so that there is nothing to excite.")
    return tuple(found)


def exciting(
    system: System,
    wanted: Sequence[str],
    series: FourierSeries,
    limits_told: dict[str, Any],
    criterion: str,
    joints: Sequence[str] | None,
    at: Any,
    earlier: Any,
    rate: float,
    seed: int,
    progress: Progress,
) -> Exciting:
    """Return the problem, see `nori_dyn.exciting_motion` for the arguments.

    Raises:
        NoriError: see there.
    """
    tree = system.tree
    judge = criterion_named(criterion)
    moving = moving_joints(tree, joints)
    still = tree.neutral_configuration() if at is None else tree.normalised(checked("at", at, (tree.nq,)))
    limits = motion_limits(tree, moving, **limits_told)
    progress("equations")
    found = regression(system, wanted, seed)
    stays = [name for k, name in enumerate(tree.joint_names) if tree.joints[k].nv and k not in moving]
    progress("base parameters")
    base = base_parameters(found, stays, seed)
    weights = _weights(found)
    numbers = moving_numbers(tree, moving)
    progress("compiling")
    information = MotionInformation.of(found, base.independent, numbers, weights)
    torques = Torques.of(tree, limits.torque, numbers)
    told, information = _told(information, limits, still, numbers, bool(stays), seed)
    if not told:
        raise InputError(
            "the motion of these joints tells nothing of the parameters that are wanted. Let other joints move, or ask "
            "for other parameters: `nd.identify` and its report say which a motion told."
        )
    information = _with_earlier(information, base, earlier)
    rest = where_it_rests(tree, limits, still, torques, seed)
    problem = Excitation(tree, moving, still, series, limits, information, judge, torques, rate, rest)
    sigmas = dict(zip(found.row_names, (1.0 / weights).tolist(), strict=True))
    return Exciting(problem, base, told, sigmas)


def _weights(found: Regression) -> Floats:
    """Return 1 / sigma of each row; without a sigma, as the most exact row that has one, or 1."""
    known: dict[str, float] = {}
    for row in found.system.sensor_rows:
        if width(row.weights):
            sizes = found.system.weights[list(row.weight_of_rows)]
            known.update(zip(row.component_names, np.sqrt(sizes).tolist(), strict=True))
    most = max((known[name] for name in found.row_names if name in known), default=1.0)
    return np.array([known.get(name, most) for name in found.row_names])


def _told(
    information: MotionInformation,
    limits: MotionLimits,
    still: Floats,
    numbers: tuple[list[int], list[int]],
    something_stands_still: bool,
    seed: int,
) -> tuple[tuple[int, ...], MotionInformation]:
    """Return which of the parameters motions tell, and their information in units of what moves the readings alike.

    Where joints stand still, as they do here and not just anywhere, fewer may be told.
    """
    of_q, of_v = numbers
    rng = np.random.default_rng(seed)
    q, qd, qdd = np.tile(still, (STATES, 1)), *np.zeros((2, STATES, limits.torque.size))
    q[:, of_q] = limits.middle + limits.room * rng.uniform(-1, 1, (STATES, len(of_q)))
    qd[:, of_v] = limits.speed * rng.uniform(-1, 1, (STATES, len(of_v)))
    qdd[:, of_v] = limits.acceleration * rng.uniform(-1, 1, (STATES, len(of_v)))
    V = information.left(q, qd, qdd)
    rows = V.reshape(-1, V.shape[2])
    size = np.linalg.norm(rows, axis=0)
    told = np.flatnonzero(size > DEPENDENT * size.max(initial=0.0))
    if something_stands_still and len(told):
        R, order = la.qr(rows[:, told] / size[told], mode="r", pivoting=True)
        rank = int((np.abs(np.diag(R)) > DEPENDENT).sum())
        told = np.sort(told[order[:rank]])
    units = np.zeros((len(size), len(told)))
    units[told, np.arange(len(told))] = np.sqrt(STATES) / size[told]
    return tuple(told.tolist()), information.in_units(units)


def _with_earlier(information: MotionInformation, base: BaseParameters, earlier: Any) -> MotionInformation:
    """Return the information with what an earlier log told.

    Raises:
        InputError: a square root of another width, or of other combinations of parameters.
    """
    if earlier is None:
        return information
    R0 = numeric("earlier", earlier)
    n, n_all = len(base.independent), len(base.parameters)
    if R0.ndim != 2 or R0.shape[1] not in (n, n_all) or not np.isfinite(R0).all():
        raise InputError(
            f"earlier has shape {R0.shape}: expected a square root (rows, {n}) of the information of the base "
            f"parameters, or (rows, {n_all}) of all parameters, of finite numbers."
        )
    if R0.shape[1] == n_all and n_all != n:
        independent = R0[:, list(base.independent)]
        others = R0[:, list(base.dependent)] - independent @ base.K
        if np.abs(others).max(initial=0.0) > 1e-6 * np.abs(R0).max(initial=0.0):
            raise InputError(
                "earlier tells of combinations of parameters that this motion does not: take the same robot, sensors "
                "and moving joints for both."
            )
        R0 = independent
    return replace(information, earlier=R0 @ information.units)
