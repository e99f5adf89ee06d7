"""Deflections of joints before they slide, made of the positions of successive samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nori_dyn.components.presliding import deflections
from nori_dyn.logs.clock import is_wrong
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.solve.plausibility.motion import HALF_A_TURN
from nori_dyn.typing import Floats


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
