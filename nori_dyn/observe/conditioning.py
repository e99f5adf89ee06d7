"""Conditioning over the workspace: how near the sensors come to not sufficing, and what their noise does to outputs.

Expected standard deviations are what the noise of the sensors does to numbers of d. Rows that hold exactly restrict the
sources s (external wrenches and joint accelerations) to s = B z; of what is left,
the weighed rows M s give the covariance P = B (B^T M^T W M B)^-1 B^T with W = diag(1 / sigma^2), and a number o s of d
has the variance o P o^T. With sqrt(W) M B = Q R that is |R^-T B^T o^T|^2, without a product of M by itself. What no row
sees is kept out of B, and a number that it moves has no finite deviation. Errors of equations of motion that are noisy
are further sources, each read as zero up to its sigma.

Source: own derivation (tests/unit/observe/test_conditioning.py); Bjoerck, Numerical Methods for Least Squares Problems,
ch. 5.1.3 for the null-space method, 4.4 for the order of rows and columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg as la

from nori_dyn.errors import InputError
from nori_dyn.observe.numeric import RANK_TOLERANCE, Reduction, checked_configurations
from nori_dyn.observe.sweep import Workers, sweep
from nori_dyn.planning.outputs import Output, resolve_outputs
from nori_dyn.program.layout import as_rows, output_names, sums_of
from nori_dyn.system.builder import System
from nori_dyn.system.given import check_system
from nori_dyn.system.sources import NONE, Reduced
from nori_dyn.tables import Shown
from nori_dyn.tables.progress import Watched, progress_bar
from nori_dyn.typing import Floats, Indices

OUTPUTS = ("tau",)
"""What deviations are given of, unless told otherwise."""

SWEPT = 200
"""Random configurations, unless told otherwise."""

WORST = 10
"""Most configurations that are kept as the worst."""


@dataclass(frozen=True, slots=True, eq=False)
class Conditioning(Shown):
    """How well sensors determine d over many configurations.

    Attributes:
        configurations: where it was looked at (N, nq).
        ranks: rank of D at each (N,).
        smallest: smallest singular value of the reduced matrix M in natural units, relative to the largest (N,): the
            margin, from 1 (far from losing rank) to 0, where rank is lost.
        n_variables: number of unknowns, full rank.
        outputs: names of numbers of d, "tau:l_knee" (n_outputs).
        units: the SI unit of each (n_outputs).
        sigma: expected standard deviation of each output at each configuration [the output's unit] (N, n_outputs), of
            sensors whose noise is that of their sigmas; infinite where it is not determined; None where no sensor has
            a sigma.
        worst: numbers of the worst configurations, the worst first (at most `WORST`).
        poses: what the configurations are, in words.
    """

    configurations: Floats
    ranks: Indices
    smallest: Floats
    n_variables: int
    outputs: tuple[str, ...]
    units: tuple[str, ...]
    sigma: Floats | None
    worst: Indices
    poses: str = "configurations"

    def __repr__(self) -> str:
        return f"Conditioning({len(self.ranks)} configurations, {len(self.lacking)} lack rank)"

    @property
    def condition_numbers(self) -> Floats:
        """Condition numbers of M (N,), infinite where rank is lost."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self.smallest)

    @property
    def lacking(self) -> Indices:
        """Numbers of the configurations that lack rank."""
        return np.flatnonzero(self.ranks < self.n_variables)

    @property
    def median_sigma(self) -> Floats | None:
        """Median over the configurations of the deviation of each output (n_outputs,); None where no row has one."""
        return None if self.sigma is None else np.asarray(np.median(self.sigma, axis=0))

    @property
    def worst_sigma(self) -> Floats | None:
        """Largest deviation of each output over the configurations (n_outputs,); None where no row has one."""
        return None if self.sigma is None else np.asarray(self.sigma.max(axis=0))


def together(parts: Sequence[Conditioning], poses: str) -> Conditioning:
    """What was found of systems of the same robot and outputs, such as its contact states, as if at further poses.

    Args:
        parts: what was found of each; deviations are those of all, or none.
        poses: what the configurations are, in words.
    """
    ranks, smallest = (np.concatenate([getattr(part, name) for part in parts]) for name in ("ranks", "smallest"))
    sigmas = [part.sigma for part in parts if part.sigma is not None]
    return replace(
        parts[0],
        configurations=np.concatenate([part.configurations for part in parts]),
        ranks=ranks,
        smallest=smallest,
        sigma=np.concatenate(sigmas) if len(sigmas) == len(parts) else None,
        worst=np.lexsort((ranks, smallest))[:WORST],
        poses=poses,
    )


def conditioning(
    system: System,
    configurations: Any = None,
    outputs: Sequence[str] | None = None,
    n: int = SWEPT,
    seed: int = 0,
    workers: Workers = None,
    progress: Watched = None,
) -> Conditioning:
    """Assess how well the rows of a system determine d over many configurations.

    The same configurations give the same numbers wherever they are computed, on any number of workers.

    Args:
        system: the system; it may have any number of rows, weighed or not.
        configurations: where to look (N, nq), such as those of a log; `n` random ones within joint limits when None.
        outputs: what expected standard deviations are given of, as for `nd.plan`: "tau", "fx:l_sole"; all torques when
            None.
        n: number of random configurations.
        seed: seed of everything random.
        workers: number of processes on this machine, all cores when None, and none where there is little to do; or an
            executor of `concurrent.futures`, such as that of a cluster.
        progress: True to show it, or what receives its stages, see `nori_dyn.tables.progress`; on a terminal when None.

    Raises:
        WrongKindError: not a system.
        InputError: configurations of the wrong shape, or not finite; no configurations, or no workers.
        UnknownOutputError: an output that the system does not have.
        SweepError: workers that fail.

    Source: own derivation (tests/unit/observe/test_conditioning.py).

    Example:
        >>> motion = {"type": "joint_acceleration", "joints": "all", "sigma": 0.1}
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> sensors = nd.SensorSet.from_dict({"name": "noisy", "measurements": [motion, unloaded]})
        >>> found = nd.conditioning(nd.System(nd.autotree(2), sensors), [[0.0, 0.0], [0.0, 2.0]])
        >>> found.outputs
        ('tau:joint1', 'tau:joint2')
        >>> print(np.round(found.sigma, 2))  # the elbow straight, and bent
        [[0.28 0.09]
         [0.13 0.04]]
    """
    check_system(system, "nd.conditioning")
    wanted = resolve_outputs(system, OUTPUTS if outputs is None else outputs)
    names, units = output_names(system, wanted)
    Q = configurations_of(system, configurations, n, seed)
    with progress_bar(f"conditioning of {system.tree.name}", progress) as stage:
        stage("natural units")
        reduction = Reduction(system, seed)
        has_sigmas = any(row.equation.sigma for row in system.rows)
        deviations = OutputDeviations(reduction, wanted) if has_sigmas else None
        found = sweep(partial(_assessed, reduction, deviations), Q, workers, stage)
        ranks, margins, sigmas = (np.concatenate(parts) for parts in zip(*found, strict=True))
        smallest = np.where(ranks == system.shape[1], margins, 0.0)
        return Conditioning(
            configurations=Q,
            ranks=ranks,
            smallest=smallest,
            n_variables=system.shape[1],
            outputs=names,
            units=units,
            sigma=sigmas if has_sigmas else None,
            worst=np.lexsort((margins, ranks, smallest))[:WORST],
            poses="random poses within joint limits" if configurations is None else "poses given",
        )


def configurations_of(system: System, given: Any, n: int, seed: int) -> Floats:
    """The configurations given (N, nq), or n random ones within joint limits.

    Raises:
        InputError: configurations of the wrong shape, or not finite; none at all.
    """
    tree = system.tree
    if given is not None:
        Q = checked_configurations(given, tree.nq)
        if not len(Q):
            raise InputError("there are no configurations: at least one is needed.")
        return Q
    if n < 1:
        raise InputError(f"n is {n}: there must be at least one configuration to look at.")
    rng = np.random.default_rng(seed)
    return tree.random_configurations(n, rng)


Assessed: TypeAlias = tuple[Indices, Floats, Floats]
"""At some configurations the ranks of D, the smallest singular values of M that count, and the deviations."""


def _assessed(reduction: Reduction, deviations: OutputDeviations | None, Q: Floats) -> Assessed:
    """Ranks, margins and deviations at configurations (n, nq), the latter of size 0 where there are none."""
    ranks, margins, sigmas = list[int](), list[float](), list[Floats]()
    for found in reduction.at_each(Q, NONE if deviations is None else deviations.noisy):
        at = reduction.rank_of(found.M)
        ranks.append(at.rank)
        margins.append(at.smallest)
        if deviations is None:
            sigmas.append(np.zeros(0))
            continue
        short = reduction.system.shape[1] - at.rank
        unseen = reduction.unseen_sources(found.M, short) if short else np.zeros((0, found.M.shape[1]))
        sigmas.append(deviations.at(found, unseen))
    return np.array(ranks, dtype=np.intp), np.array(margins), np.array(sigmas)


MOVED = 1e-7
"""Share of a number of d, in natural units, above which the null space is taken to move it."""

ROUNDING = 1e-12
"""Share of a number of d, in natural units, that is left by rounding where exact rows determine it."""


class OutputDeviations:
    """Standard deviations of numbers of d, of sensors whose noise is that of their sigmas.

    Attributes:
        noisy: rows of D that are noisy equations of motion.
        weighed_rows: the other rows that are weighed.

    Args:
        reduction: the system; some of its rows have a sigma.
        outputs: what is asked for.
    """

    def __init__(self, reduction: Reduction, outputs: Sequence[Output]) -> None:
        system = reduction.system
        sums = [terms for output in outputs for terms in sums_of(system, output)]
        self._reduction, self._directions = reduction, as_rows(sums, system.shape[1])
        roots = np.zeros(system.shape[0])  # 1 / sigma, and 0 where a row holds exactly
        roots[~system.exact_rows] = np.sqrt(system.weights[system.weight_of_rows])
        is_noisy = roots > 0
        is_noisy[reduction.split.measured] = False
        self.noisy = np.flatnonzero(is_noisy)
        self._roots, self._error_sigmas = roots[reduction.split.measured], 1.0 / roots[self.noisy]
        self.weighed_rows = reduction.split.measured[self._roots > 0]

    def at(self, found: Reduced, unseen: Floats) -> Floats:
        """The deviations (n_outputs,) at a configuration, in the units of d; infinite where not determined.

        Args:
            found: the system there, with the errors of its `noisy` rows.
            unseen: sources that no row sees, in natural units, orthonormal (dimension, n_sources).
        """
        A, along, d = self._whiten(found, unseen)
        size = np.linalg.norm(d, axis=1)
        moved = np.linalg.norm(d[:, : unseen.shape[1]] @ unseen.T, axis=1) > MOVED * size
        return np.where(moved, np.inf, _root_of_variance(A, along))

    def whiten(self, found: Reduced) -> tuple[Floats, Floats]:
        """The weighed rows, divided by their sigmas, over what exact rows leave free, and the outputs over it.

        Args:
            found: the system there, with the errors of its `noisy` rows.

        Returns:
            The rows (n, k): those in `weighed_rows`, then those of the errors; and the outputs (n_outputs, k).
        """
        return self._whiten(found, np.zeros((0, len(self._reduction.split.sources))))[:2]

    def _whiten(self, found: Reduced, unseen: Floats) -> tuple[Floats, Floats, Floats]:
        """The rows that `whiten` gives, `unseen` left out, and the outputs in natural units."""
        scale = np.concatenate([self._reduction.column_scale, self._error_sigmas])
        M = np.hstack([found.M, found.M_errors]) * scale
        d = self._directions @ np.hstack([found.X, found.X_errors]) * scale
        n_errors = len(self.noisy)
        hidden = np.hstack([unseen, np.zeros((len(unseen), n_errors))])
        exact = self._roots == 0
        B = la.null_space(np.vstack([(self._reduction.row_scale[:, None] * M)[exact], hidden]), rcond=RANK_TOLERANCE)
        errors = np.eye(n_errors, len(scale), len(scale) - n_errors)
        along = d @ B
        along[np.linalg.norm(along, axis=1) <= ROUNDING * np.linalg.norm(d, axis=1)] = 0.0
        return np.vstack([(self._roots[:, None] * M)[~exact], errors]) @ B, along, d


def _root_of_variance(A: Floats, rows: Floats) -> Floats:
    """|R^-T r^T| of each row r (n, k), with A = Q R (m, k) of full rank; infinite where that is not so."""
    k = A.shape[1]
    heavy_first = A[np.argsort(-np.abs(A).max(axis=1, initial=0.0), kind="stable")]
    padded = np.vstack([heavy_first, np.zeros((max(0, k - len(A)), k))])
    if not k:
        return np.zeros(len(rows))
    R, order = la.qr(padded, mode="r", pivoting=True, check_finite=False)
    R = R[:k]
    R[np.diag_indices(k)] = np.where(np.diagonal(R) == 0.0, np.finfo(float).tiny, np.diagonal(R))
    with np.errstate(over="ignore", invalid="ignore"):
        sigma = np.linalg.norm(la.solve_triangular(R, rows[:, order].T, trans="T"), axis=0)
    return np.where(np.isfinite(sigma), sigma, np.inf)
