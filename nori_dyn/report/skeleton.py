"""The robot of a log as a skeleton: lines from joint to joint, and what acts on them, at some samples of the log.

A page draws it in any projection, see `templates/robot.js`; a recording draws the same lines as capsules.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import median_filter
from scipy.spatial.transform import Rotation

from nori_dyn.model.joints import FORCE, Free
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import WORLD, KinematicTree
from nori_dyn.report.recorded import RecordedLog
from nori_dyn.report.time_plots import COLOURS
from nori_dyn.tables import number, unbroken
from nori_dyn.typing import Floats, Indices

MOST_NUMBERS = 120_000
"""Numbers of a drawing at all its samples, about; each takes 2.7 characters of a page."""

FRAMES = (20, 400)
"""Fewest and most samples at which a robot is drawn."""

LARGEST = 1000
"""Links of the largest robot that is drawn."""

MOST_ARROWS = 8
"""Arrows of a drawing, at most: those of the largest wrenches."""

MOST_SUSPECTS = 4
"""Suspects that are marked, at most."""

NEGLIGIBLE = 1e-6
"""Moment [N m] that is not drawn beside a force of 1 N."""

SIZE = 10_000
"""How far points and the tips of arrows are from the middle, in the units of what is written."""

MOST, UNKNOWN = 32767, -32768
"""The largest number that is written, to which tips of spikes are cut, and what is written of one that is not known."""

SPIKE = 5
"""Samples of a median by which spikes do not count for the scale of arrows."""

ARROW = 0.55
"""Length of the longest arrow, as a share of the robot's half size."""

SHORT = 1e-3
"""Length of a line [m] below which there is none."""

VIEW = (math.radians(-55), math.radians(14))
"""From where one looks at first: the turn about the vertical, and how far from above [rad]."""

ROOM = 84.0
"""How many units of the picture that is."""

SEEN = 99
"""Percentile of the tips of an arrow that are in the picture."""

FLOOR = 10
"""Percentile of the lowest points of the robot at which the ground is drawn."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """A force or a moment on a link.

    Attributes:
        label: what it is, and on what.
        mark: its colour and kind: "c0", "c0 moment".
        at: the point at which it begins.
        unit: of its size.
        full: the size that would be as long as `SIZE`.
    """

    label: str
    mark: str
    at: int
    unit: str
    full: float


@dataclass(frozen=True, slots=True)
class Disc:
    """The torque of a joint: a disc whose area says how large it is.

    Attributes:
        label: the joint.
        at: the point of the joint.
    """

    label: str
    at: int


@dataclass(frozen=True, slots=True)
class SuspectMark:
    """A sensor that does not fit the others at times.

    Attributes:
        label: its name.
        at: the point of its link.
        frames: the frames, first and last, in which it is the clearest suspect.
    """

    label: str
    at: int
    frames: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A robot at some samples, as a page draws it.

    Attributes:
        bones: the lines, each between two points.
        points: how many points there are.
        at: the frames along the time, in units of the plots.
        first: the frame that is shown at first, that of the largest forces or torques.
        arrows, discs, suspects: what is drawn on it.
        torque: the largest torque, in words; "" where there is none.
        scale: a round size of forces, in words, and how long it is in the picture; None where there are none.
        ground: height of the ground, and the width of its squares.
        numbers: of each frame in turn, 16 bits each, in base 64: the points; of each arrow its vector, and the three
            axes of the ellipsoid of two standard deviations; the size of each disc from 0 to `SIZE`; and how far the
            squares of the ground are moved.
        drawn: the paths of the bones and of the joints at first.
        summary: in words.
        has_spread: whether deviations of arrows are known.
    """

    bones: tuple[tuple[int, int], ...]
    points: int
    at: tuple[int, ...]
    first: int
    arrows: tuple[Arrow, ...]
    discs: tuple[Disc, ...]
    suspects: tuple[SuspectMark, ...]
    torque: str
    scale: tuple[str, float] | None
    ground: tuple[int, int]
    numbers: str
    drawn: tuple[str, str]
    summary: str
    has_spread: bool

    @property
    def data(self) -> dict[str, object]:
        """What a script needs to draw it at any time, from any side."""
        return {
            "bones": self.bones,
            "points": self.points,
            "at": self.at,
            "arrows": [{"at": each.at, "unit": each.unit, "full": each.full} for each in self.arrows],
            "discs": [each.at for each in self.discs],
            "suspects": [{"at": each.at, "frames": each.frames} for each in self.suspects],
            "ground": self.ground,
            "view": VIEW,
            "room": ROOM / SIZE,
            "size": SIZE,
            "numbers": self.numbers,
        }


def bone_ends(tree: KinematicTree, i: int) -> list[Floats]:
    """The ends of the lines of link i, in its coordinates (3,): joints of its children, or the tip of a last link."""
    ends = [np.asarray(tree.X_tree[child].r, dtype=float) for child in tree.children[i]]
    if not tree.children[i]:
        on_link = [np.asarray(frame.X.r, dtype=float) for frame in tree.frames.values() if frame.link == i]
        mass, moment = tree.I[i, 5, 5], np.array([tree.I[i, 2, 4], tree.I[i, 0, 5], tree.I[i, 1, 3]], dtype=float)
        ends = [max(on_link, key=np.linalg.norm, default=np.zeros(3))]
        if np.linalg.norm(ends[0]) < SHORT and mass > 0:
            ends = [moment / float(mass)]
    return [end for end in ends if np.linalg.norm(end) > SHORT]


def link_poses(tree: KinematicTree, q: Floats) -> tuple[dict[int, Floats], dict[int, Floats]]:
    """Rotations from world to link coordinates (n, 3, 3), and origins (n, 3), at configurations (n, nq)."""
    X_0, n = positions(tree, q.T).X_0, len(q)
    E = {i: np.moveaxis(np.broadcast_to(np.atleast_3d(X.E).astype(float), (3, 3, n)), 2, 0) for i, X in X_0.items()}
    r = {i: np.broadcast_to(np.reshape(np.asarray(X.r, dtype=float), (3, -1)), (3, n)).T for i, X in X_0.items()}
    return E, r


class _Points:
    """Points that are fixed to links, and the lines between them."""

    def __init__(self, tree: KinematicTree) -> None:
        self.bodies: list[int] = []
        self.places: list[Floats] = []
        self.bones: list[tuple[int, int]] = []
        self.origins: list[int] = []
        for i, joint in enumerate(tree.joints):
            is_moved = not all(joint.is_angular) or np.linalg.norm(tree.X_tree[i].r) > SHORT
            if tree.is_root(i):
                self.origins.append(self.add(i, np.zeros(3)))
                if not isinstance(joint, Free) and is_moved:
                    self.bones.append((self.add(WORLD, np.zeros(3)), self.origins[i]))
            elif is_moved:
                self.origins.append(self.add(i, np.zeros(3), self.origins[tree.parents[i]]))
            else:
                self.origins.append(self.origins[tree.parents[i]])
        for i in range(tree.n_links):
            if not tree.children[i]:
                for end in bone_ends(tree, i):
                    self.add(i, end, self.origins[i])

    def add(self, body: int, place: Floats, before: int | None = None) -> int:
        """Add a point of a link, by its place in coordinates of that (3,), at the end of a line from another."""
        self.bodies.append(body)
        self.places.append(place)
        if before is not None:
            self.bones.append((before, len(self.bodies) - 1))
        return len(self.bodies) - 1


def skeleton(log: RecordedLog, at: Callable[[int], int]) -> Skeleton | None:
    """The robot of a log; None where it is too large to be drawn, or nowhere.

    Args:
        log: the log.
        at: where a sample is along the time, in units of the plots.
    """
    tree = log.system.tree
    if tree.n_links > LARGEST:
        return None
    points, wrenches = _Points(tree), [*_wrenches(log)]
    places = [_point_of(points, tree, owner) for owner, *_ in wrenches]
    discs = [*_torques(log)] if not wrenches else []
    stride = 3 * len(points.bodies) + 12 * len(wrenches) + len(discs) + 2
    count = int(np.clip(MOST_NUMBERS // stride, *FRAMES))
    frames = np.unique(np.linspace(0, len(log) - 1, count).astype(np.intp))
    p, turns, moved = _placed(points, tree, log.q[frames])
    if not np.isfinite(p).all():
        return None
    middle = (p.min(axis=(0, 1)) + p.max(axis=(0, 1))) / 2
    half = float(np.linalg.norm(p - middle, axis=2).max()) or 1.0
    vectors, unknown = list[tuple[Floats, Floats]](), np.full(len(log), np.nan)
    for owner, _, _, names, largest in wrenches:
        E = turns[tree.frame(owner).link] @ np.asarray(tree.frame(owner).X.E, dtype=float).T
        scale = ARROW * half / largest
        vector = np.stack([log.estimates[name][frames] for name in names], axis=1)
        sigma = np.stack([log.deviations.get(name, unknown)[frames] for name in names], axis=1)
        sides = np.swapaxes(E * np.minimum(2 * scale * sigma, half)[:, None, :], 1, 2)
        vectors.append((scale * np.einsum("nij,nj->ni", E, vector), sides.reshape(len(frames), 9)))
    tips = [p[:, place] + vector - middle for place, (vector, _) in zip(places, vectors, strict=True)]
    reach = max([half, *(float(np.percentile(_without_spikes(np.linalg.norm(tip, axis=1)), SEEN)) for tip in tips)])
    torque = max((float(np.nanmax(np.abs(x), initial=0.0)) for _, x in discs), default=0.0) or 1.0
    square = _round_below(half / 2)
    floor = float(np.percentile(p[:, :, 2].min(axis=1), FLOOR))
    lengths = [(p - middle).reshape(len(frames), -1), *(each for pair in vectors for each in pair)]
    sizes = [np.abs(x[frames, None]) / torque for _, x in discs]
    table = np.hstack([*(each / reach for each in lengths), *sizes, (moved + middle[:2]) % square / reach]) * SIZE
    written = np.where(np.isfinite(table), np.rint(np.nan_to_num(table)).clip(-MOST, MOST), UNKNOWN)
    effort = [np.linalg.norm(vector, axis=1) for vector, _ in vectors] or [np.abs(x[frames]) for _, x in discs]
    total = _without_spikes(np.sum(effort, axis=0)) if effort else np.zeros(len(frames))
    ends = len(frames) // 20  # where filters have least to hold on to
    first = ends + int(total[ends : len(frames) - ends].argmax()) if total.any() else len(frames) // 2
    longest = ARROW * half / reach
    arrows = [
        Arrow(f"{what} on {unbroken(owner)}", mark, place, "N" if what == "force" else "N m", largest / longest)
        for (owner, what, mark, _, largest), place in zip(wrenches, places, strict=True)
    ]
    forces = [largest for _, what, _, _, largest in wrenches if what == "force"]
    size = _round_below(forces[0]) if forces else 0.0
    return Skeleton(
        bones=tuple(points.bones),
        points=len(points.bodies),
        at=tuple(map(at, frames.tolist())),
        first=first,
        arrows=tuple(arrows),
        discs=tuple(Disc(tree.joint_names[i], points.origins[i]) for i, _ in discs),
        suspects=tuple(_suspects(log, points, frames)),
        torque=f"{number(torque, 2)} N m" if discs else "",
        scale=(f"{size:g} N", ROOM * longest * size / forces[0]) if forces else None,
        ground=(round(SIZE * (floor - middle[2]) / reach), round(SIZE * square / reach)),
        numbers=base64.b64encode(written.astype("<i2").tobytes()).decode(),
        drawn=_drawn(points.bones, (p[first] - middle) / reach),
        summary=f"{tree.name} as a skeleton, {len(frames):,} times of the log",
        has_spread=any(name in log.deviations for *_, names, _ in wrenches for name in names),
    )


def _wrenches(log: RecordedLog) -> list[tuple[str, str, str, tuple[str, ...], float]]:
    """The forces and moments that are drawn: on what, which, its mark, the names of its numbers, the largest of all."""
    found = []
    for owner in log.wrench_frames:
        for what, part in (("force", FORCE[3:]), ("moment", FORCE[:3])):
            names = tuple(f"fx:{owner}.{component}" for component in part)
            size = np.linalg.norm([log.estimates[name] for name in names], axis=0)
            found.append((owner, what, names, float(_without_spikes(size).max())))
    most = {what: max((size for _, w, _, size in found if w == what), default=0.0) for what in ("force", "moment")}
    forces = [each for each in found if each[1] == "force" and each[3] > 0]
    shown = {owner: k for k, (owner, *_) in enumerate(sorted(forces, key=lambda each: -each[3])[:MOST_ARROWS])}
    return [
        (owner, what, f"c{k % COLOURS}{' moment' * (what == 'moment')}", names, most[what])
        for owner, k in shown.items()
        for own, what, names, size in found
        if own == owner and size > NEGLIGIBLE * most["force"]
    ]


def _without_spikes(x: Floats) -> Floats:
    """Sizes (N,) by a running median; what is not known is 0."""
    return np.asarray(median_filter(np.nan_to_num(x, posinf=0.0), size=SPIKE, mode="nearest"))


def _torques(log: RecordedLog) -> Iterator[tuple[int, Floats]]:
    """Yield the joints of one freedom whose torques are estimated, with these (N,)."""
    for i, name in enumerate(log.system.tree.joint_names):
        x = log.estimates.get(f"tau:{name}")
        if x is not None and log.units.get(f"tau:{name}") == "N m":
            yield i, x


def _point_of(points: _Points, tree: KinematicTree, owner: str) -> int:
    """The point of a frame or a link, which is added where there is none."""
    frame = tree.frame(owner)
    place = np.asarray(frame.X.r, dtype=float)
    for k, (body, known) in enumerate(zip(points.bodies, points.places, strict=True)):
        if body == frame.link and np.linalg.norm(known - place) < SHORT:
            return k
    origin = points.origins[frame.link]
    return points.add(frame.link, place, origin) if np.linalg.norm(place) > SHORT else origin


def _placed(points: _Points, tree: KinematicTree, q: Floats) -> tuple[Floats, Floats, Floats]:
    """Where points are (n, n_points, 3), how links are turned (n_links, n, 3, 3), how far the root has moved (n, 2).

    The third axis is upwards; points are where they are seen from above the root of a robot that moves freely.
    """
    E, r = link_poses(tree, q)
    down = np.asarray(tree.gravity, dtype=float)
    U = Rotation.align_vectors([[0.0, 0.0, -1.0]], [down])[0].as_matrix() if np.any(down[:2]) else np.eye(3)
    places = zip(points.bodies, points.places, strict=True)
    p = np.stack([(r[body] + place @ E[body]) @ U.T for body, place in places], axis=1)
    turns = np.stack([U @ np.swapaxes(E[i], 1, 2) for i in range(tree.n_links)])
    moved = (r[0] @ U.T)[:, :2] if isinstance(tree.joints[0], Free) else np.zeros((len(q), 2))
    p[:, :, :2] -= moved[:, None]
    return p, turns, moved


def _suspects(log: RecordedLog, points: _Points, frames: Indices) -> Iterator[SuspectMark]:
    """Yield the suspects that are at a link."""
    for sensor, own in [*log.suspects.items()][:MOST_SUSPECTS]:
        body = log.body_of(sensor)
        if body is not None:
            ends = np.array([(each.first, each.stop) for each in own if each.is_first])
            spans = np.searchsorted(frames, ends)
            spans[:, 1] = np.maximum(spans[:, 1] - 1, spans[:, 0])
            yield SuspectMark(unbroken(sensor), points.origins[body], tuple(map(tuple, spans.tolist())))


def _round_below(size: float) -> float:
    """The largest round number that is no larger."""
    decade = 10.0 ** math.floor(math.log10(size))
    return max(factor * decade for factor in (1, 2, 5) if factor * decade <= size)


def _drawn(bones: Sequence[tuple[int, int]], p: Floats) -> tuple[str, str]:
    """The paths of the bones and of the joints, of points (n_points, 3), as they are seen at first."""
    turn, above = VIEW
    right = np.array([-math.sin(turn), math.cos(turn), 0.0])
    up = np.array([-math.sin(above) * math.cos(turn), -math.sin(above) * math.sin(turn), math.cos(above)])
    at = [f"{x:.1f} {-y:.1f}" for x, y in (p @ np.stack([right, up], axis=1) * ROOM).tolist()]
    return "".join(f"M{at[i]}L{at[j]}" for i, j in bones), "".join(f"M{each}h0" for each in dict.fromkeys(at))
