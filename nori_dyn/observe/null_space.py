"""What sensors do not see: the null space of D as named vectors, taken apart into what is independent, and in words.

External wrenches, joint accelerations and the forces that components add determine everything else, so each null vector
is described by those of them, its sources, that it moves. Sources that no null vector ties together are separate. What
is true of a group holds at every configuration at which it was looked at.

External wrenches on links are expressed in the frames in which sensors read them.

Source: own derivation (tests/unit/observe/test_numeric.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from nori_dyn.algebra.ranges import numbers_in, width
from nori_dyn.algebra.spatial import Transform
from nori_dyn.measurements.binding import without_offset
from nori_dyn.model.kinematics import Kinematics, positions
from nori_dyn.model.tree import NamedFrame
from nori_dyn.observe.numeric import Reduction
from nori_dyn.system.builder import System
from nori_dyn.system.rows import RowBlock
from nori_dyn.system.variables import Variable, VariableKey, kind_in_words
from nori_dyn.typing import Booleans, Floats

NEGLIGIBLE = 1e-7
"""Share of the largest of its kind below which a number is taken as zero."""

SHOWN = 4
"""Most names that are listed."""


@dataclass(frozen=True, slots=True, eq=False)
class NullVector:
    """A change of d that no row sees.

    Attributes:
        coefficients: how much each number of d changes by its name, "fx:l_sole.mz"; absent ones do not. Sources come
            first.
        words: what it is, or belongs to.
    """

    coefficients: Mapping[str, float]
    words: str

    def __str__(self) -> str:
        parts = [f"{value:+.3g} {name}" for name, value in self.coefficients.items()]
        return " ".join(parts[:SHOWN]) + (f" and {len(parts) - SHOWN} more" if len(parts) > SHOWN else "")


@dataclass(frozen=True, slots=True, eq=False)
class UnobservableSubspace:
    """An independent part of the null space.

    Attributes:
        words: what it is.
        links: links whose external wrench it moves.
        joints: joints whose acceleration it moves.
        added: names of variables of components that it moves, "loop:bar".
        vectors: a basis of it, at the first configuration looked at.
    """

    words: str
    links: tuple[str, ...]
    joints: tuple[str, ...]
    added: tuple[str, ...]
    vectors: tuple[NullVector, ...]

    @property
    def dimension(self) -> int:
        """Number of independent null vectors."""
        return len(self.vectors)


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """The vectors (n, k) of an independent part, and the sources that they move: fx, qdd, and those of components."""

    vectors: Floats
    wrenches: tuple[Variable, ...]
    accelerations: tuple[Variable, ...]
    added: tuple[Variable, ...]

    @property
    def sources(self) -> tuple[Variable, ...]:
        """All of them."""
        return (*self.wrenches, *self.accelerations, *self.added)

    @property
    def key(self) -> tuple[int, ...]:
        """What tells it from the others of one configuration."""
        return tuple(v.slice.start for v in self.sources)


def unseen(
    reduction: Reduction,
    configurations: Sequence[Floats],
    dimension: int,
    moved: Booleans | None = None,
) -> tuple[UnobservableSubspace, ...]:
    """The independent parts of the null space, the largest last.

    Args:
        reduction: the system.
        configurations: where to look; vectors are those at the first.
        dimension: that of the null space at each of them.
        moved: the numbers of d that it moves (n,), where that is known exactly.
    """
    if not dimension:
        return ()
    system = reduction.system
    looks = []
    for q in configurations:
        d = reduction.null_space(q, dimension)
        d = d if moved is None else d * moved[:, None]
        looks.append((positions(system.tree, q), _groups(system, d)))
    return tuple(
        sorted((_describe_group(system, group, looks) for group in looks[0][1]), key=lambda part: part.dimension)
    )


def _groups(system: System, d: Floats) -> list[_Group]:
    """Vectors d (n, k) by the connected sets of sources that they move."""
    moved = [v for v in system.variables if v.is_source and d[v.slice].any()]
    touched = [np.abs(d[v.slice]).max(axis=0) > 0 for v in moved]
    rows, columns = np.nonzero(touched)
    n, k = len(moved), d.shape[1]
    edges = coo_array((np.ones(len(rows)), (rows, columns + n)), shape=(n + k, n + k))
    _, labels = connected_components(edges, directed=False)
    groups = []
    for label in dict.fromkeys(labels[n:].tolist()):
        own = [v for v, part in zip(moved, labels[:n], strict=True) if part == label]
        wrenches, accelerations = (tuple(v for v in own if v.kind == kind) for kind in ("fx", "qdd"))
        added = tuple(v for v in own if v.key.component)
        if own:
            groups.append(_Group(d[:, labels[n:] == label], wrenches, accelerations, added))
    return groups


def _describe_group(
    system: System, group: _Group, looks: Sequence[tuple[Kinematics, list[_Group]]]
) -> UnobservableSubspace:
    """A group in words that hold wherever the same group was seen."""
    same = [(at, other) for at, others in looks for other in others if other.key == group.key]
    if group.added:
        words = _describe_added(group)
    elif group.accelerations:
        words = _describe_motion(system, group)
    else:
        words = _describe_wrenches(system, group, same)
    names = system.variable_names
    order = [*numbers_in(v.slice for v in group.sources).tolist(), *range(len(names))]
    vectors = []
    for d in group.vectors.T:
        shown = {names[k]: float(d[k]) for k in dict.fromkeys(order) if d[k] != 0.0}
        vectors.append(NullVector(MappingProxyType(shown), words))
    return UnobservableSubspace(
        words,
        tuple(v.owner for v in group.wrenches),
        tuple(v.owner for v in group.accelerations),
        tuple(v.name for v in group.added),
        tuple(vectors),
    )


def list_names(names: Sequence[str], most: int | None = SHOWN) -> str:
    """Names as in a sentence; of more than so many, and one, the first and how many others."""
    if most is not None and len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _describe_motion(system: System, group: _Group) -> str:
    """Unobservable accelerations, and wrenches with them, in words."""
    k = group.vectors.shape[1]
    freedoms = sum(len(v.components) for v in group.accelerations)
    if group.wrenches:
        return f"{k} {_combinations(k)} of {' and '.join(_moved(group))}"
    tree, (what,) = system.tree, _moved(group)
    if k < freedoms:
        what = f"{k} {_combinations(k)} of {what}"
    if len(group.accelerations) == 1:
        what += " and of all that it carries"
    idle = [v for v in group.accelerations if not tree.I[list(tree.subtree(v.body))].any()]
    if len(idle) == len(group.accelerations):
        return what + ", which moves no inertia: no force depends on it"
    return what + ", with the corresponding forces"


def _describe_added(group: _Group) -> str:
    """Unobservable forces of components, and wrenches and accelerations with them, in words."""
    k = group.vectors.shape[1]
    alike: dict[tuple[str, str], list[str]] = {}
    n_moved = 0
    for variable in group.added:
        moved = np.abs(group.vectors[variable.slice]).max(axis=1) > 0
        n_moved += int(moved.sum())
        components = ", ".join(name for name, there in zip(variable.components, moved, strict=True) if there)
        alike.setdefault((variable.kind, "" if moved.all() else f"{components} of "), []).append(f"'{variable.owner}'")
    parts = [f"{some}the {kind_in_words(kind)} {list_names(names)}" for (kind, some), names in alike.items()]
    is_each = n_moved == k and not group.accelerations and not group.wrenches
    parts += _moved(group)
    return list_names(parts) if is_each else f"{k} {_combinations(k)} of {list_names(parts)}"


def _moved(group: _Group) -> Iterator[str]:
    """Yield the accelerations, and the external wrenches, that a group moves, in words."""
    kinds = ("the acceleration{} of", "s", group.accelerations), ("the external wrench{} on", "es", group.wrenches)
    for words, plural, moved in kinds:
        if moved:
            yield f"{words.format(plural * (len(moved) > 1))} {list_names([v.owner for v in moved])}"


def _combinations(k: int) -> str:
    return "combination" if k == 1 else "independent combinations"


def _describe_wrenches(system: System, group: _Group, same: Sequence[tuple[Kinematics, _Group]]) -> str:
    """Unobservable external wrenches, in words of their geometry."""
    k = group.vectors.shape[1]
    readings = wrench_readings(system)
    places = [place_of(system, variable.body, readings) for variable in group.wrenches]  # their normals are z axes
    names = list_names([place.name for place in places])
    if len(places) == 1:
        (variable,) = group.wrenches
        whole = width(variable.slice) == k
        moved = np.abs(group.vectors[variable.slice]).max(axis=1) > 0
        parts = [name for name, there in zip(variable.components, moved, strict=True) if there]
        if whole:
            return f"the external wrench on {names}"
        combined = "" if len(parts) == k else f"{k} {_combinations(k)} of "
        return f"{combined}{', '.join(parts)} of the external wrench on {variable.owner}"  # components are the link's
    looks = [_Look.at(at, other, places) for at, other in same]
    if not all(look.cancels for look in looks):
        return f"{k} {_combinations(k)} of the external wrenches on {names}"
    if len(places) > 2:
        return (
            f"any external wrenches on {names} that cancel"
            if k == 6 * (len(places) - 1)
            else f"{k} {_combinations(k)} of external wrenches on {names} that cancel"
        )
    against = f"{places[0].name} against {places[1].name}"
    if k == 6:
        return f"any internal wrench, {against}"
    if all(look.couples == k for look in looks):
        if k > 1:
            return f"internal couples about {k} axes, {against}"
        if all(look.is_normal(0) and look.is_normal(1) for look in looks):
            return f"a couple about the common normal, {against}: only the sum of the two is seen"
        number = next((i for i in (0, 1) if all(look.is_normal(i) for look in looks)), None)
        return f"a couple about {'one axis' if number is None else f'the normal of {places[number].name}'}, {against}"
    if all(look.are_lines for look in looks):
        in_planes = all(look.in_plane(0) and look.in_plane(1) for look in looks)
        if k == 1 and all(look.joins for look in looks):
            return f"an internal force along the line through {names}"
        if k == 1 and in_planes:
            return f"an internal force along the line in which the planes of {names} meet"
        if k == 3 and in_planes:
            return f"any internal force in the common plane of {names}"
        if k == 1:
            return f"an internal force along one line, {against}"
    couples = {look.couples for look in looks}
    of_them = f", {couples.pop()} of them pure couples" if len(couples) == 1 and couples != {0} else ""
    return f"an internal wrench, {against}" if k == 1 else f"{k} independent internal wrenches, {against}{of_them}"


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """The wrenches of a group at one configuration, in world coordinates.

    Attributes:
        cancels: whether their sum is zero.
        couples: number of independent ones without a force.
        are_lines: whether all are forces along lines, but for couples.
        wrenches: on the first link (6, k), about the origin of its place.
        normals, origins: of the places (2, 3).
        length: of the robot [m], by which couples compare to forces.
    """

    cancels: bool
    couples: int
    are_lines: bool
    wrenches: Floats
    normals: Floats
    origins: Floats
    length: float

    @staticmethod
    def at(at: Kinematics, group: _Group, places: Sequence[NamedFrame]) -> _Look:
        """A group as it is at a configuration."""
        X_0 = at.X_0
        W = [X_0[v.body].force_to_parent(group.vectors[v.slice]) for v in group.wrenches]
        X = [place.frame.X @ X_0[v.body] for v, place in zip(group.wrenches, places, strict=True)]
        normals, origins = np.array([X_i.E[2] for X_i in X]), np.array([X_i.r for X_i in X])
        length = max(float(np.linalg.norm(origins - origins[0], axis=1).max()), 1e-3)
        shift = Transform(np.eye(3), origins[0])
        first, total = (_shift_wrenches(shift, wrench, length) for wrench in (W[0], np.sum(W, axis=0)))
        largest = max(np.abs(_shift_wrenches(shift, wrench, length)).max() for wrench in W)
        basis = np.linalg.qr(first)[0]
        values = np.linalg.svd(basis[3:], compute_uv=False)
        power = basis[:3].T @ basis[3:]
        return _Look(
            cancels=bool(np.abs(total).max() <= NEGLIGIBLE * largest),
            couples=int(np.sum(values <= NEGLIGIBLE)) + max(0, first.shape[1] - 3),
            are_lines=bool(np.abs(power + power.T).max() <= NEGLIGIBLE),
            wrenches=first,
            normals=normals,
            origins=origins,
            length=length,
        )

    def is_normal(self, i: int) -> bool:
        """Whether the couple is about the normal of a place."""
        m = self.wrenches[:3, 0] / np.linalg.norm(self.wrenches[:3, 0])
        return bool(np.linalg.norm(np.cross(m, self.normals[i])) <= NEGLIGIBLE)

    def in_plane(self, i: int) -> bool:
        """Whether the lines lie in the plane of a place: no force across it, no moment along it."""
        W = _shift_wrenches(Transform(np.eye(3), (self.origins[i] - self.origins[0]) / self.length), self.wrenches, 1.0)
        n = self.normals[i]
        across, along = n @ W[3:], W[:3] - np.outer(n, n @ W[:3])
        return bool(max(np.abs(across).max(), np.abs(along).max()) <= NEGLIGIBLE * np.abs(W).max())

    @property
    def joins(self) -> bool:
        """Whether the line of the force goes through both places."""
        f = self.wrenches[3:, 0] / np.linalg.norm(self.wrenches[3:, 0])
        across = np.cross(f, (self.origins[1] - self.origins[0]) / self.length)
        small = NEGLIGIBLE * np.abs(self.wrenches).max()
        return bool(np.linalg.norm(across) <= NEGLIGIBLE and np.abs(self.wrenches[:3]).max() <= small)


def _shift_wrenches(shift: Transform, W: Floats, length: float) -> Floats:
    """Wrenches (6, k) about a further origin, their moments in units of a length [m]."""
    moved = np.asarray(shift.force_matrix() @ W, dtype=float)
    moved[:3] /= length
    return moved


Readings = Mapping[int, tuple[RowBlock, ...]]


def wrench_readings(system: System) -> Readings:
    """For each link the rows that read the external wrench on it, and nothing else."""
    at = positions(system.tree, system.tree.neutral_configuration())
    found: dict[int, list[RowBlock]] = {i: [] for i in range(system.tree.n_links)}
    for row in system.sensor_rows:
        keys = set(without_offset(row.equation).blocks(at))
        if len(keys) == 1 and (key := keys.pop()).kind == "fx":
            found[key.body].append(row)
    return {i: tuple(rows) for i, rows in found.items()}


def place_of(system: System, body: int, readings: Readings) -> NamedFrame:
    """The first frame other than the link's own in which a sensor reads the external wrench on a link, or that.

    Args:
        system: the system.
        body: the link.
        readings: what `wrench_readings` returns.
    """
    frames = (row.frame for row in readings[body])
    name = system.tree.names[body]
    return next((frame for frame in frames if frame is not None), NamedFrame(name, system.tree.frame(name)))


def partly_seen(system: System) -> tuple[NamedFrame, ...]:
    """The places at which links feel external wrenches that no rows of their own make fully known."""
    readings = wrench_readings(system)
    at = positions(system.tree, system.tree.neutral_configuration())
    found = []
    for body, rows in readings.items():
        key = VariableKey("fx", body)
        own = [np.asarray(row.equation.blocks(at)[key], dtype=float) for row in rows]
        if np.linalg.matrix_rank(np.vstack([np.zeros((1, 6)), *own])) < 6:
            found.append(place_of(system, body, readings))
    return tuple(found)
