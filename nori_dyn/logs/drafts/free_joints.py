"""Drafts of the pose and the velocity of a free joint: columns that move as they do, whatever they are called."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.spatial.transform import Rotation

from nori_dyn.logs.drafts.drafting import DraftEntry, Drafting
from nori_dyn.logs.drafts.families import WORDS, Family, inertial_kind, kind_of, words_of
from nori_dyn.logs.drafts.unnamed import PLACED, is_unit
from nori_dyn.logs.mapping.log_mapping import Axes
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats

RATES = {"vel", "velocity", "velocities", "v", "qd", "dq", "acc", "acceleration", "force", "torque", "twist", "speed"}
"""Words in the names of vectors that are no positions."""

FITS = 0.3
"""What may be left of the rate of a pose, of its size, where a column is taken for it."""

UPRIGHT = 0.7
"""Cosine of the tilt up to which a base stands upright."""

SPAN = 0.2
"""Time over which rates are averaged [s]: poses of motion capture are noisy."""

WHOLE = 7, 13
"""Numbers of an array that is a pose, and of one with a velocity, as simulators write them."""

AXES: Mapping[tuple[bool, bool], Axes] = {(False, False): "body", (True, True): "world", (False, True): "mujoco"}
"""The axes of a velocity, by whether the angular part is in those of the world, and whether the linear is."""

OWN = {"q": (7,), "qd": (3, 3)}
"""The first numbers of arrays of all of a robot's positions, and velocities: those of its free joint."""

Columns: TypeAlias = tuple[str, ...]
"""Names of columns."""


def split(families: Iterable[Family], tree: KinematicTree) -> Iterator[Family]:
    """Yield families; those of all of q, or qd, of a robot with a free joint in two: its numbers, and the others'."""
    n, is_free = sum(joint.nq == joint.nv == 1 for joint in tree.joints), tree.joints[0].nq == 7
    for family in families:
        sizes = OWN.get(kind_of(family) or ("qd" if family.words == ("v",) else ""), ())
        if family.joints is None and sizes and len(family.columns) == sum(sizes) + n and is_free:
            ends = np.cumsum([0, *sizes]).tolist()
            yield from (Family(f"{family.pattern}:{a}", family.columns[a:b], None) for a, b in pairwise(ends))
            family = replace(family, columns=family.columns[ends[-1] :])
        yield family


def poses(of: Drafting, rate: float | None) -> Iterator[DraftEntry]:
    """Yield the pose of a free joint, and its velocity: the vectors that are the rates of the pose.

    Args:
        of: what has been found.
        rate: how many samples a second [Hz] a log without times has, where that is known.
    """
    tree, record = of.record.tree, of.record
    free = [name for name, joint in zip(tree.joint_names, tree.joints, strict=True) if joint.nq == 7]
    vectors = {stem.lower(): own for stem, own in of.vectors() if not {*own} & of.taken and {*own} <= of.values.keys()}
    likely = [*_poses(of, vectors)] if free else []
    if not likely:
        return
    moving = ((pose, _velocity(of, *pose, vectors, rate)) for pose in likely)
    (place, turned, order), velocity = next((found for found in moving if found[1] is not None), (likely[0], None))
    entry: dict[str, object] = {"of": f"q:{free[0]}", "from": [*place, *turned]}
    why = "a position, and four numbers of size one"
    if order:
        entry, why = entry | {"orientation": order}, f"{why}, {order}"
        if velocity is None:
            why += f", if not {'xyzw' if order == 'wxyz' else 'wxyz'}: no velocity tells"
    lies = _lying(_z_axis(of, turned, order))
    yield DraftEntry(entry, why + lies, (*place, *turned), record.groups[f"q:{free[0]}"], bool(order or lies))
    if velocity is not None and f"qd:{free[0]}" in record.groups:
        columns, axes = velocity
        entry = {"of": f"qd:{free[0]}", "from": [*columns], "axes": axes}
        yield DraftEntry(entry, f"as the pose moves, in axes '{axes}'", columns, record.groups[f"qd:{free[0]}"])


def _poses(of: Drafting, vectors: dict[str, Columns]) -> Iterator[tuple[Columns, Columns, str]]:
    """Yield likely positions, orientations and the orders of these, "" where letters tell it.

    The vectors of arrays with a velocity are added to the others.
    """
    untaken = [family for family in of.families if not {*family.columns} & of.taken]
    for family in untaken:
        columns = family.columns
        for place, quaternion in PLACED:
            if len(columns) in WHOLE and _is_unit(of.values, columns[quaternion]):
                vectors |= {f"{family.pattern}:{k}": columns[k : k + 3] for k in range(7, len(columns), 3)}
                yield from ((columns[place], columns[quaternion], order) for order in _orders(of, columns[quaternion]))
    places = {stem: own for stem, own in vectors.items() if _is_place(words_of(stem))}
    turned = [*_lettered(of), *((family.pattern, family.columns) for family in untaken if len(family.columns) == 4)]
    for stem, columns in turned:
        apart = {each: own for each, own in places.items() if not {*own} & {*columns}}
        beside = {each: own for each, own in apart.items() if of.are_together(own + columns)}
        if beside and _is_unit(of.values, columns):
            orders = [""] if f"{stem}w" in columns[3].lower() else _orders(of, columns)
            near = difflib.get_close_matches(stem.lower(), beside, n=len(beside), cutoff=0.0)
            yield from ((beside[each], columns, order) for each in near for order in orders)


def _is_place(words: Sequence[str]) -> bool:
    return not RATES & {*words} and (bool(WORDS["q"] & {*words}) or not inertial_kind(words))


def _lettered(of: Drafting) -> Iterator[tuple[str, Columns]]:
    """Yield four columns each that are called x, y, z, w, and their stems."""
    for name in of.names:
        for match in filter(None, [re.fullmatch(r"(.*)([wW])((?:_[A-Za-z]+)?\]?)", name)]):
            letters = "xyzw" if match[2] == "w" else "XYZW"
            columns = tuple(f"{match[1]}{letter}{match[3]}" for letter in letters)
            if {*columns} <= {*of.names} - of.taken:
                yield match[1].lower(), columns


def _is_unit(values: Mapping[str, Floats], columns: Columns) -> bool:
    """Whether columns are a vector of size one."""
    return {*columns} <= values.keys() and is_unit([values[column] for column in columns])


def _orders(of: Drafting, columns: Columns) -> list[str]:
    """The orders of a quaternion without letters, the likelier first: most stand, hardly turn, and are real.

    Flags have none.
    """
    values = np.array([of.values[column] for column in columns])
    if np.isin(values, (0.0, 1.0)).all():
        return []
    real_first = ["wxyz", "xyzw"] if np.argmax(np.nanmedian(np.abs(values), axis=1)) == 0 else ["xyzw", "wxyz"]
    return sorted(real_first, key=lambda order: bool(_z_axis(of, columns, order)[2] < UPRIGHT))


def _z_axis(of: Drafting, columns: Columns, order: str) -> Floats:
    """Where the z axis of a body points in the world (3,), mostly, by its quaternion; nan where it has none."""
    values = np.array([of.values[column] for column in columns]).T
    values = values[np.linalg.norm(values, axis=1) > 0]  # nor a number
    turned = Rotation.from_quat(np.roll(values, -1, axis=1) if order == "wxyz" else values)
    found: Floats = np.median(turned.apply([0.0, 0.0, 1.0]), axis=0) if len(values) else np.full(3, np.nan)
    return found


def _lying(up: Floats) -> str:
    """What to ask of a base whose z axis points along x, y or downwards; "" of one that stands, or leans."""
    k = int(np.argmax(np.abs(up)))
    if not abs(up[k]) > UPRIGHT or (k == 2 and up[k] > 0):
        return ""
    sign = "-" if up[k] < 0 else ""
    gravity = ",".join(f"{-9.81 * np.sign(up[k]) if i == k else 0:g}" for i in range(3))
    return f"; the z axis of the base points along {sign}{'xyz'[k]} of the world: if that is up, --gravity {gravity}"


def _velocity(
    of: Drafting, place: Columns, turned: Columns, order: str, vectors: Mapping[str, Columns], rate: float | None
) -> tuple[Columns, Axes] | None:
    """The columns of the velocity, angular first, and its axes: those whose numbers are the rates of the pose."""
    position, quaternions = (np.array([of.values[column] for column in own]).T for own in (place, turned))
    t = of.times.get(place[0], None if rate is None else np.arange(len(position)) / rate)
    if t is None or not 2 < len(t) == len(position) or not (np.diff(t) > 0).all():
        return None
    if not (np.linalg.norm(quaternions, axis=1) > 0).all():  # nor a number
        return None
    rates = _rates(t, position, np.roll(quaternions, -1, axis=1) if order == "wxyz" else quaternions)
    span = min(max(round(SPAN / float(np.median(np.diff(t)))), 1), len(t) - 2)
    rest = [own for own in vectors.values() if not {*own} & {*place, *turned}]
    read = {own: np.array([of.values[column] for column in own]).T[1:-1] for own in rest}
    likely = {key: min((_left(read[own], rate, span), own) for own in rest) for key, rate in rates.items() if rest}
    both = ((likely["angular", a], likely["linear", b], axes) for (a, b), axes in AXES.items() if likely)
    fitting = [
        (angular[0] + linear[0], (*angular[1], *linear[1]), axes)
        for angular, linear, axes in both
        if max(angular[0], linear[0]) < FITS**2
    ]
    return min(fitting)[1:] if fitting else None


def _rates(t: Floats, position: Floats, quaternions: Floats) -> dict[tuple[str, bool], Floats]:
    """Angular and linear velocities (N - 2, 3) of a pose, in axes of the body, and of the world where that is true.

    Args:
        t: times (N,) [s].
        position: of the body (N, 3) [m].
        quaternions: its orientation (N, 4), x y z w.
    """
    R = Rotation.from_quat(quaternions)
    step, middle = (t[2:] - t[:-2])[:, None], R[1:-1]
    angular = (R[:-2].inv() * R[2:]).as_rotvec() / step
    linear = (position[2:] - position[:-2]) / step
    return {
        ("angular", False): angular,
        ("angular", True): middle.apply(angular),
        ("linear", True): linear,
        ("linear", False): middle.inv().apply(linear),
    }


def _left(read: Floats, rate: Floats, span: int) -> float:
    """The share of the square of a rate (N, 3) that a reading leaves, means over a span of samples compared."""
    if read.shape != rate.shape:
        return np.inf
    off, size = (sliding_window_view(x, span, axis=0).mean(axis=-1) for x in (read - rate, rate))
    return float(np.nanmean(off**2)) / max(float(np.mean(size**2)), 1e-12)
