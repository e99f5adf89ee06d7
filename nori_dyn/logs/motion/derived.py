"""Motion that a log lacks, made of what it has: velocities and accelerations of joints, and their deflections."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from nori_dyn.components.presliding import deflections
from nori_dyn.errors import InputError
from nori_dyn.logs.clock import is_wrong
from nori_dyn.logs.formats.source import BLOCK
from nori_dyn.logs.mapping.binding import Binding, quoted
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.logs.motion.differentiation import Differentiator
from nori_dyn.logs.samples import Samples
from nori_dyn.model.joints import Joint
from nori_dyn.model.tree import KinematicTree
from nori_dyn.solve.over_ticks import joined
from nori_dyn.solve.plausibility.motion import HALF_A_TURN, step, unwrapped
from nori_dyn.typing import Floats, Indices

LOOKED_AT = 32
"""Blocks of a log, at most, of whose velocities the noise of joints is found."""


class DerivedMotion:
    """Makes what a log lacks of the motion of its joints, chunk by chunk.

    Attributes:
        velocities: those that are made of positions.
        differentiated: these, and the readings that are made of velocities.
        sources: the numbers of the record that are differentiated.
        dt: the time between samples that was taken to differentiate [s]; None before.

    Args:
        binding: what is taken of the log.
        by: how to differentiate; None differentiates nothing.
    """

    def __init__(self, binding: Binding, by: Differentiator | None) -> None:
        self._binding, self._record = binding, binding.record
        self.dt: float | None = None
        self.velocities = binding.derivable_velocities if by is not None and by.makes_velocities else ()
        self._readings = binding.derivable if by is not None else ()
        self.differentiated = self.velocities + self._readings
        self._known_dt = (by and by.dt) or (None if binding.rate is None else 1 / binding.rate)
        self._parts = () if by is None else tuple(self._of_joints(by))
        self.sources = set[int]().union(*(part.places(self._record) for part in self._parts))

    def _of_joints(self, by: Differentiator) -> Iterator[_Differentiated]:
        """Yield the freedoms of which velocities are made, and those of which they are read."""
        tree, record = self._record.tree, self._record
        own = [record.places[name] - record.qd.start for name in self.velocities]
        if own:
            joints = tuple(i for i, at in enumerate(tree.v_slices) if at.start in own and at.stop > at.start)
            yield _Differentiated(np.array(own), joints, replace(by, of_positions=True))
        others = np.setdiff1d(np.arange(tree.nv), own)
        if self._readings and len(others):
            yield _Differentiated(others, None, by)

    def learn(self, read: Callable[[], Iterable[Samples]]) -> str:
        """Learn the noise of joints, and return the note on it; "" where there is nothing.

        Args:
            read: reads the log.

        Raises:
            InputError: nothing says how far apart samples are, or there are none, or too few.
            FileFormatError: the log is damaged.
        """
        fitted = ((part, part.by.fitted(partial(self._excerpt, part, read))) for part in self._parts)
        self._parts = tuple(replace(part, by=by) for part, by in fitted)
        return "; ".join(filter(None, (part.by.remark() for part in self._parts)))

    def _excerpt(self, part: _Differentiated, read: Callable[[], Iterable[Samples]]) -> tuple[Floats, Floats, float]:
        """Times and what is differentiated of a log, parts of a long one, and the time between samples.

        Raises:
            InputError: nothing says how far apart samples are, or there are none.
            FileFormatError: the log is damaged.
        """
        parts: list[tuple[Floats, Floats]] = []
        dt, every = 0.0, 1
        for k, samples in enumerate(read()):
            if k % every:
                continue
            dt = dt or self._step(samples.t)
            even = np.asarray(dt * samples.numbers)
            parts.append((even if samples.t is None or part.by.dt is not None else samples.t, part.taken(samples)))
            if len(parts) > LOOKED_AT:
                parts, every = parts[::2], 2 * every
        if not parts:
            raise InputError(f"{self._binding.where}: holds no samples.")
        t, taken = (np.concatenate(each) for each in zip(*parts, strict=True))
        return t, part.read(taken, self._record.tree), dt

    def over(self, chunks: Iterator[Samples]) -> Iterator[Samples]:
        """Yield samples with what is made of their motion.

        Raises:
            InputError: fewer samples than the window of a filter, or nothing says how far apart they are.
        """
        chunks = self._with_derivatives(chunks) if self._parts else chunks
        return self._with_deflections(chunks) if self._binding.deflections else chunks

    def _with_derivatives(self, chunks: Iterable[Samples]) -> Iterator[Samples]:
        """Yield samples with what filters make of the motion of those around them."""
        window = max(part.by.window for part in self._parts)
        kept: Samples | None = None
        yielded = 0  # how many of what is kept have been yielded
        for chunk in chunks:
            kept = chunk if kept is None else joined([kept, chunk])
            until = len(kept) - window // 2
            if len(kept) - yielded >= BLOCK // 2 and until > max(yielded, window):
                yield self._filled(kept).at(slice(yielded, until))
                before = max(until - window, 0)
                kept, yielded = kept.at(slice(before, None)), until - before
        if kept is not None:
            yield self._filled(kept).at(slice(yielded, None))

    def _filled(self, samples: Samples) -> Samples:
        """Successive samples with their derivatives."""
        record = self._record
        self.dt = self.dt or self._step(samples.t)
        qd, qdd, y = samples.qd.copy(), np.zeros(samples.qd.shape), samples.y.copy()
        deviations, sigma = np.full(qd.shape, np.nan), None
        for part in self._parts:
            found = part.by.derivatives(samples.t, part.read(part.taken(samples), record.tree), self.dt)
            qdd[:, part.freedoms] = found.qdd
            if found.qd is not None:
                qd[:, part.freedoms] = found.qd
            if found.sigma is not None:
                deviations[:, part.freedoms] = found.sigma
                sigma = np.full(y.shape, np.nan)
        for name in self._readings:
            k, freedom = record.places[name] - record.y.start, record.freedoms[name]
            places, factors = list(freedom.places), np.array(freedom.factors)
            y[:, k] = qdd[:, places] @ factors
            if sigma is not None:
                sigma[:, k] = np.sqrt(deviations[:, places] ** 2 @ factors**2)
        return replace(samples, qd=qd, y=y, sigma=sigma)

    def _with_deflections(self, chunks: Iterable[Samples]) -> Iterator[Samples]:
        """Yield samples with what their positions make of the deflections of joints."""
        joints = DeflectedJoints(self._record, self._binding.deflections, self._known_dt)
        places = [place - self._record.y.start for place in joints.places]
        for chunk in chunks:
            y = chunk.y.copy()
            y[:, places] = joints.follow(chunk.t, chunk.q)
            yield replace(chunk, y=y)

    def _step(self, t: Floats | None) -> float:
        """Time between samples [s] for differentiation.

        Raises:
            InputError: nothing says it.
        """
        dt = self._known_dt or (None if t is None else step(t))
        if dt is None:
            lacking, n = self._binding.derivable, len(self._record.measurement_names)
            what = f"{len(lacking)} of {n} measurements: {quoted(lacking)}" if lacking else "velocities of joints"
            source = "the velocities" if lacking else "positions"
            raise InputError(
                f"{self._binding.where}: lacks {what}. To make them of {source}, the time between samples must be "
                "known: the log has no column 't' that increases. Give it: --dt 0.001, in seconds."
            )
        return dt


@dataclass(frozen=True, slots=True, eq=False)
class _Differentiated:
    """Freedoms whose motion is differentiated.

    Attributes:
        freedoms: which of qd.
        joints: those of whose positions velocities are made, in their order; None where velocities are read.
        by: what makes it.
    """

    freedoms: Indices
    joints: tuple[int, ...] | None
    by: Differentiator = field(repr=False)

    def taken(self, samples: Samples) -> Floats:
        """The numbers of samples that it is made of (N, m); nan where one is no number of a robot."""
        slices = samples.record.tree.q_slices
        of_q = None if self.joints is None else [samples.q[:, slices[i]] for i in self.joints]
        values = samples.qd[:, self.freedoms] if of_q is None else np.hstack(of_q)
        return np.where(is_wrong(values), np.nan, values)

    def read(self, taken: Floats, tree: KinematicTree) -> Floats:
        """What is differentiated (N, n), of the numbers of successive samples (N, m)."""
        if self.joints is None:
            return taken
        joints = [tree.joints[i] for i in self.joints]
        parts = np.split(taken, np.cumsum([joint.nq for joint in joints])[:-1], axis=1)
        return np.hstack([_travelled(joint, q) for joint, q in zip(joints, parts, strict=True)])

    def places(self, record: SampleRecord) -> set[int]:
        """The numbers of a record that are differentiated."""
        if self.joints is None:
            return {record.qd.start + k for k in self.freedoms.tolist()}
        return {k for i in self.joints for k in range(record.tree.nq)[record.tree.q_slices[i]]}


def _travelled(joint: Joint, q: Floats) -> Floats:
    """What has the velocity of a joint (N, nv) for its rate: positions (N, nq), of angles without jumps by a turn.

    Where the joint turns freely, the way that it has come from sample to sample, in its own axes.
    """
    found = np.full((len(q), joint.nv), np.nan)
    if "quaternion" in joint.coordinates:
        known = np.flatnonzero(np.isfinite(q).all(axis=1) & (np.linalg.norm(q[:, -4:], axis=1) > 0))
        found[known[:1]] = 0.0
        if len(known) > 1:
            found[known[1:]] = np.cumsum(joint.difference(q[known[:-1]].T, q[known[1:]].T), axis=1).T
        return found
    for k, kind in enumerate(joint.coordinates):
        is_known = np.isfinite(q[:, k])
        found[is_known, k] = unwrapped(q[is_known, k]) if kind == "angle" and is_known.any() else q[is_known, k]
    return found


class DeflectedJoints:
    """Joints whose deflections are made of their positions, sample by sample; at first they are zero.

    Attributes:
        places: where the deflections are among the numbers of a sample.

    Args:
        record: the numbers of a sample.
        names: the deflections that are made.
        dt: time between samples that have no times [s]; None where nothing tells it, and nothing creeps.
    """

    def __init__(self, record: SampleRecord, names: Sequence[str], dt: float | None = None) -> None:
        self.places = [record.places[name] for name in names]
        laws = [record.deflections[name] for name in names]
        self._distance, self._creep = (np.array([getattr(law, x) for _, law in laws]) for x in ("distance", "creep"))
        self._of_q = [record.tree.q_slices[body].start for body, _ in laws]
        self._turns = np.array([record.tree.joints[body].coordinates[0] == "angle" for body, _ in laws])
        self._dt = 0.0 if dt is None else dt
        self._z, self._q, self._t = np.zeros(len(names)), np.full(len(names), np.nan), np.nan

    def follow(self, t: Floats | None, q: Floats) -> Floats:
        """Deflections (N, n) of the next samples; one whose position is not known moves nothing.

        Args:
            t: their times (N,) [s]; None where they have none.
            q: their configurations (N, nq).
        """
        read = np.vstack([self._q, np.where(is_wrong(q), np.nan, q)[:, self._of_q]])
        last = np.maximum.accumulate(np.where(np.isfinite(read), np.arange(len(read))[:, None], 0), axis=0)
        read = np.take_along_axis(read, last, axis=0)
        travelled = np.nan_to_num(np.diff(read, axis=0))
        turns = self._turns & (np.fmax.reduce(np.abs(read), axis=0) <= HALF_A_TURN)
        travelled -= turns * 2 * math.pi * np.round(travelled / (2 * math.pi))
        elapsed = np.full(len(q), self._dt) if t is None else np.nan_to_num(np.diff(t, prepend=self._t)).clip(min=0.0)
        z = deflections(travelled, elapsed, self._distance, self._creep, self._z)
        if len(z):
            self._z, self._q, self._t = z[-1], read[-1], np.nan if t is None else t[-1]
        return z
