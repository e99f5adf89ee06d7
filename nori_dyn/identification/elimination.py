"""Unknown wrenches eliminated from the rows of samples, so that what is left depends on parameters alone.

Of one sample W phi + N w + c = 0, with rows that hold exactly and rows of noisy readings. Exact rows first give as much
of w as they can, w = -N_e^+ (W_e phi + c_e) + Z u, with Z what they leave open; then u is what makes the noisy rows
least, in units of their deviations. What is left, A (W phi + c) with the annihilator A of N, is weighted least squares
over w, sample by sample: row by row it is the residual of each reading at the best wrenches.

The residual of row k varies as its noise times s_k = (A A^T)_kk: that share of a sample is left to parameters.

Source: Lawson and Hanson, ch. 20; Frisch and Waugh (1933).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nori_dyn.identification.regression import Regression, RegressorLayout, row_by_row
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.system.side_by_side import SideBySide
from nori_dyn.typing import Booleans, Floats, Indices

TOLERANCE = 1e-8
"""Singular values below this, relative to the largest, are those of wrenches that the rows do not feel."""

LEAST_SHARE = 1e-6
"""Share of a row below which unknown wrenches explain whatever it reads."""


def annihilator(N: Floats, is_exact: Booleans) -> Floats:
    """The matrices A (n, rows, rows) with A N = 0 that leave of rows what no wrench explains.

    Args:
        N: the factors of unknown wrenches (n, rows, k), in units of the deviations of the rows.
        is_exact: which rows hold exactly (rows,).
    """
    A = np.zeros((*N.shape[:2], N.shape[1]))
    exact, noisy = np.flatnonzero(is_exact), np.flatnonzero(~is_exact)
    N_e, N_n = N[:, exact], N[:, noisy]
    U, s, Vt = np.linalg.svd(N_e, full_matrices=False)
    felt = s > TOLERANCE * np.max(np.linalg.norm(N, axis=1), axis=1, initial=0.0)[:, None]
    U, V = U * felt[:, None, :], np.swapaxes(Vt * felt[:, :, None], 1, 2)
    A[:, exact[:, None], exact] = np.eye(len(exact)) - U @ np.swapaxes(U, 1, 2)
    of_exact = N_n @ V / np.where(felt, s, 1.0)[:, None, :] @ np.swapaxes(U, 1, 2)
    open_ = N_n - N_n @ V @ np.swapaxes(V, 1, 2)
    U, s, _ = np.linalg.svd(open_, full_matrices=False)
    U = U * (s > TOLERANCE * np.max(np.linalg.norm(N_n, axis=1), axis=1, initial=0.0)[:, None])[:, None, :]
    left = np.eye(len(noisy)) - U @ np.swapaxes(U, 1, 2)
    A[:, noisy[:, None], noisy] = left
    A[:, noisy[:, None], exact] = -left @ of_exact
    return A


@dataclass(frozen=True, slots=True, eq=False)
class Motion:
    """The motion of a robot at successive samples, and what its sensors read.

    Attributes:
        q: positions (n, nq).
        qd: velocities (n, nv).
        qdd: accelerations (n, nv).
        y: the readings of all contact states, each once (n, ny); of other states than its own they may be no numbers.
        state: the number of the contact state of each (n,).
        t: times [s] (n,), or numbers.
    """

    q: Floats
    qd: Floats
    qdd: Floats
    y: Floats
    state: Indices
    t: Floats

    def at(self, chosen: slice | Booleans) -> Motion:
        """A selection of the samples."""
        return Motion(*(getattr(self, each.name)[chosen] for each in fields(self)))


class SampleRows(NamedTuple):
    """Rows of samples without unknown wrenches.

    Attributes:
        entries: the numbers of W and c in their layout (n, ...).
        read: what each row reads (n, rows), 0 of those that read nothing.
        late: by how much rows change with the delay of readings (n, ...), in the order of `EliminatedRows.of_delays`.
        counts: 1 where a row counts (n, rows), 0 elsewhere, and where nothing is left of it.
        shares: of a sample that each row is (n, rows): what unknown wrenches leave of it.
        t: times (n,).
    """

    entries: Floats
    read: Floats
    late: Floats
    counts: Floats
    shares: Floats
    t: Floats


@dataclass(frozen=True, eq=False)
class StateRows:
    """The rows of a contact state.

    Attributes:
        program: the entries of W, N and c, of q, qd, qdd and y.
        layout: where they belong.
        place: for each row of all states which of this one it is (all rows,), or how many it has where it is none.
        y: which of all readings are its own (ny,).
        reads: for each row the number of its reading among all, -1 where it takes none (rows,).
        is_exact: whether each holds exactly (rows,).
        group: for each row the number of those that it shares unknown wrenches with (rows,).
    """

    program: CompiledFunction
    layout: RegressorLayout
    place: Indices
    y: Indices
    reads: Indices
    is_exact: Booleans
    group: Indices

    @staticmethod
    def of(regression: Regression, columns: Sequence[int], names: Sequence[str], y: Indices, backend: str) -> StateRows:
        """The rows of a regression, some columns of it, by the names of all rows and where its readings are."""
        (program, layout), own = regression.program(columns, backend), regression.row_names
        n, _, m = layout.shape
        felt, by = np.array(layout.of_N, dtype=np.intp).reshape(-1, 2).T
        joined = sp.coo_array((np.ones(len(felt)), (felt, n + by)), shape=(n + m, n + m))
        return StateRows(
            program,
            layout,
            np.array([own.index(name) if name in own else n for name in names], dtype=np.intp),
            y,
            np.array([y[reading] if reading >= 0 else -1 for reading in regression.reads], dtype=np.intp),
            np.array(regression.is_exact),
            connected_components(joined, directed=False)[1][:n].astype(np.intp),
        )

    def entries(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Row and column of what is in W without wrenches; row and reading, by its row, of what is late with it."""
        all_rows = np.argsort(self.place, kind="stable")[: len(self.reads)].tolist()
        of_W, of_delays = list[tuple[int, int]](), list[tuple[int, int]]()
        for row, place in enumerate(all_rows):
            others = np.flatnonzero(self.group == self.group[row]).tolist()
            of_W += [(place, column) for j in others for column in self.layout.rows[j][1]]
            of_delays += [(place, all_rows[j]) for j in others if self.reads[j] >= 0]
        return of_W, of_delays

    def elimination(self, N: Floats, weights: Floats) -> Floats:
        """The matrices A (n, rows, rows) that leave of rows what no wrench explains, in units of 1 / `weights`.

        Args:
            N: the factors of the wrenches (n, rows, k).
            weights: 1 over the deviation of each row (n, rows), 0 where it does not count.
        """
        A = np.zeros((*N.shape[:2], N.shape[1]))
        A[:, range(N.shape[1]), range(N.shape[1])] = 1.0
        felt = np.unique([row for row, _ in self.layout.of_N]).astype(np.intp)
        if len(felt):
            A[:, felt[:, None], felt] = annihilator(weights[:, felt, None] * N[:, felt], self.is_exact[felt])
        return A


@dataclass(frozen=True, eq=False)
class EliminatedRows:
    """The rows of all contact states, unknown wrenches eliminated.

    Attributes:
        names: of the rows.
        layout: of W and c.
        of_delays: row and reading, by its row, of each entry of `SampleRows.late`.
        states: the rows of each contact state.
    """

    names: tuple[str, ...]
    layout: RegressorLayout
    of_delays: tuple[tuple[int, int], ...]
    states: tuple[StateRows, ...]

    @staticmethod
    def of(regressions: Sequence[Regression], columns: Sequence[int], backend: str) -> EliminatedRows:
        """The rows of the regressions of contact states, some columns of them."""
        names = row_names(regressions)
        places = SideBySide([each.system for each in regressions], "identification").y_indices
        of = zip(regressions, places, strict=True)
        states = tuple(StateRows.of(each, columns, names, y, backend) for each, y in of)
        entries = [each.entries() for each in states]
        of_W, of_delays = (tuple(dict.fromkeys(place for each in entries for place in each[k])) for k in range(2))
        return EliminatedRows(names, RegressorLayout(of_W, (), (len(names), len(columns), 0)), of_delays, states)

    @cached_property
    def delays(self) -> tuple[tuple[list[int], list[int]], ...]:
        """For each row which entries of `SampleRows.late` are its own, and of which readings, by their rows."""
        return row_by_row(self.of_delays, len(self.names))

    def samples(self, motion: Motion, rates: Floats, sigma: Floats, counts: Floats) -> SampleRows:
        """Rows of n samples.

        Args:
            motion: the samples.
            rates: how fast readings change (n, ny).
            sigma: deviation of each row (rows,).
            counts: 1 where a row counts (n, rows), 0 elsewhere.
        """
        n, rows = len(motion.q), len(self.names)
        widths = len(self.layout.of_W) + rows, rows, len(self.of_delays), rows, rows
        found = [np.zeros((n, width), order="F") for width in widths]
        for state in np.unique(motion.state).tolist():
            own = motion.state == state
            part = self._of_state(self.states[state], motion.at(own), rates[own], sigma, counts[own])
            for whole, each in zip(found, part, strict=True):
                whole[own] = each
        entries, read, late, counts, shares = found
        return SampleRows(entries, read, late, counts, shares, motion.t)

    def _of_state(
        self, own: StateRows, motion: Motion, rates: Floats, sigma: Floats, counts: Floats
    ) -> tuple[Floats, ...]:
        """All but the times of `SampleRows`, of samples in one contact state; arguments as those of `samples`."""
        state = motion.q, motion.qd, motion.qdd, motion.y[:, own.y]
        W, N, c = own.layout.dense(np.asarray(own.program.batch(*state, order="F")))
        n, rows = c.shape
        has, is_read = own.place < rows, own.reads >= 0
        size, weights = np.ones(rows + 1), np.zeros((n, rows + 1))  # the last is no row
        size[own.place[has]] = sigma[has]
        weights[:, own.place[has]] = counts[:, has]
        A = np.zeros((n, rows + 1, rows + 1))
        A[:, :rows, :rows] = own.elimination(N, (weights / size)[:, :rows])
        left = np.zeros((n, rows + 1, W.shape[2] + 1))
        left[:, :rows] = A[:, :rows, :rows] @ (np.concatenate([W, c[:, :, None]], axis=2) / size[:rows, None])
        left *= size[:, None]
        shares = np.sum(A**2, axis=2)
        weights[shares < LEAST_SHARE] = 0.0
        read, rate = np.zeros((2, n, rows + 1))
        read[:, :rows][:, is_read] = motion.y[:, own.reads[is_read]]
        rate[:, :rows][:, is_read] = rates[:, own.reads[is_read]]
        at, to = own.place[np.array(self.of_delays, dtype=np.intp).reshape(-1, 2).T]
        row, column = np.array(self.layout.of_W, dtype=np.intp).reshape(-1, 2).T
        return (
            np.concatenate([left[:, own.place[row], column], left[:, own.place, -1]], axis=1),
            read[:, own.place],
            A[:, at, to] * (size[at] / size[to]) * rate[:, to],
            weights[:, own.place],
            shares[:, own.place],
        )


def row_names(regressions: Iterable[Regression]) -> tuple[str, ...]:
    """Names of the rows of several regressions, each once."""
    return tuple(dict.fromkeys(name for each in regressions for name in each.row_names))
