"""How precisely outputs are known with some sensors: A- and D-optimality, and what every set that precise obeys.

With A_s the whitened rows of a choice s over what exact rows leave free, and x_s whether it is taken, the covariance of
the outputs C z is C F^-1 C^T with the information F(x) = A_0^T A_0 + sum of x_s A_s^T A_s. A is its trace, the sum of
the variances; D is the logarithm of its determinant; both are means over configurations and contact states.

The precision p, n / A or exp(-D / n) of n outputs, is a concave function of F, and p(c F) = c p(F). So its tangent at
any x bounds it: every set y obeys p(y) <= p_0 + sum of w_s y_s, w_s the derivative of p by x_s at x and p_0 the part of
what is there anyway. Sets that are at least so precise obey a linear inequality, which is what integer programs take.

Source: Pukelsheim, Optimal Design of Experiments, ch. 5-6, for concavity (information functions).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.linalg as la

from nori_dyn.algebra.ranks import independent_columns
from nori_dyn.errors import InputError, SensorConfigError
from nori_dyn.observe.conditioning import OutputDeviations
from nori_dyn.observe.numeric import RANK_TOLERANCE, Reduction
from nori_dyn.placement.candidates import Choices, Offered
from nori_dyn.placement.cases import Inequality
from nori_dyn.planning.outputs import Output, resolve_outputs
from nori_dyn.typing import Floats, Indices

Kind = Literal["A", "D"]

CLOSE_TO_DEPENDENT = 1e-9
"""Share of an output below which it depends on others."""

VAGUE = 1e-12
"""What is known of everything beforehand, as a share of the information of all choices, so that F is never singular."""

CLOSE_TO_LIMIT = 1e-7
"""Share by which a tangent is moved away, so that rounding of an integer program cuts off no set that obeys it."""

BETTER = 1e-6
"""Share of a deviation from which on another is more precise."""

AVERAGED = 8
"""Random configurations over which the criterion is averaged, unless told otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class _Information:
    """What sensors tell at M configurations, over k numbers z that exact rows leave free.

    Attributes:
        present: the information of what is there anyway (M, k, k).
        choices: that of each choice (n_choices, M k k); that of all with what is there anyway is I.
        outputs: C (M, n_outputs, k).
    """

    present: Floats
    choices: Floats
    outputs: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Criterion:
    """How well outputs are known, of any weights x of the choices: the mean over configurations and contact states.

    Attributes:
        names: the choices.
        kind: "A" or "D".
        at: the configurations in each contact state, those of one size together.
    """

    names: tuple[str, ...]
    kind: Kind
    at: tuple[_Information, ...]

    @staticmethod
    def of(choices: Choices, outputs: Sequence[str], kind: Kind, Q: Floats, seed: int) -> Criterion:
        """The criterion at configurations (N, nq).

        Raises:
            InputError: another criterion.
            SensorConfigError: a candidate without a sigma.
            UnknownOutputError: an output that does not exist.
        """
        if kind not in ("A", "D"):
            raise InputError(f"criterion is '{kind}': it is 'A' (sum of variances) or 'D' (determinant).")
        for name, sensors in choices.sensors.items():
            if any(sensor.sigma is None for sensor in sensors):
                raise SensorConfigError(
                    f"candidates '{choices.candidates.name}': '{name}' has no sigma, so it would be known exactly and "
                    "nothing could be better. Give its standard deviation."
                )
        names = tuple(choices.sensors)
        at: dict[tuple[int, ...], list[tuple[Floats, Floats, Floats]]] = {}
        for offered in choices.offered:
            for found in _each(offered, resolve_outputs(offered.system, outputs), names, kind, Q, seed):
                at.setdefault(found[2].shape, []).append(found)
        stacked = [[np.stack(parts) for parts in zip(*group, strict=True)] for group in at.values()]
        return Criterion(
            names, kind, tuple(_Information(F, A.swapaxes(0, 1).reshape(len(names), -1), C) for F, A, C in stacked)
        )

    def weights(self, chosen: Iterable[str]) -> Floats:
        """The weights (n_choices,) of some choices: 1 where they are taken."""
        taken = set(chosen)
        return np.array([float(name in taken) for name in self.names])

    def value(self, chosen: Iterable[str]) -> float:
        """The criterion of some choices."""
        return self.relaxed(self.weights(chosen))[0]

    def relaxed(self, x: Floats, slope: bool = False) -> tuple[float, Floats]:
        """The criterion of weights x (n_choices,), and its derivative by them where asked for."""
        total, derivative = 0.0, np.zeros(len(x))
        for at in self.at:
            F = at.present + (x @ at.choices).reshape(at.present.shape)
            G = np.linalg.solve(F, at.outputs.swapaxes(1, 2))  # F^-1 C^T
            covariance = at.outputs @ G
            if self.kind == "A":
                total += float(np.trace(covariance, axis1=1, axis2=2).sum())
            else:
                total += float(np.linalg.slogdet(covariance)[1].sum())
            if slope:
                half = G.swapaxes(1, 2)
                inner = G @ (half if self.kind == "A" else np.linalg.solve(covariance, half))
                derivative -= at.choices @ inner.ravel()
        n = sum(len(at.outputs) for at in self.at)
        return total / n, derivative / n

    @property
    def n_outputs(self) -> float:
        """How many outputs are judged; the mean over contact states of what is independent, for "D"."""
        sizes = [at.outputs.shape[:2] for at in self.at]
        return float(sum(M * n for M, n in sizes) / sum(M for M, _ in sizes))

    def deviation(self, value: float) -> float:
        """The standard deviation that a value stands for: root mean square of the outputs, or geometric mean."""
        if self.kind == "A":
            return math.sqrt(value / self.n_outputs) if value > 0 else 0.0
        return math.exp(value / (2 * self.n_outputs)) if self.n_outputs else 0.0


def _each(
    offered: Offered, outputs: Sequence[Output], names: Sequence[str], kind: Kind, Q: Floats, seed: int
) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield what sensors tell at each of some configurations (N, nq) in a contact state, see `_Information`."""
    system = offered.system
    reduction = Reduction(system, seed)
    deviations = OutputDeviations(reduction, outputs)
    numbers = {name: k for k, name in enumerate(names)}
    owners = np.full(system.shape[0], -1)
    for key, name in offered.rows.items():
        owners[system.row(key).slice] = numbers[name]
    weighed = owners[deviations.weighed_rows]
    independent: Indices | None = None
    for found in reduction.at_each(Q, deviations.noisy):
        A, C = deviations.whiten(found)
        if independent is None:
            independent = np.sort(independent_columns(C.T, CLOSE_TO_DEPENDENT)) if kind == "D" else np.arange(len(C))
        yield _at(A, C[independent], weighed, len(names))


def _at(A: Floats, C: Floats, owners: Indices, n: int) -> tuple[Floats, Floats, Floats]:
    """The information of whitened rows A (rows, k), by the number of the choice that each is of, and the outputs.

    A number of -1 is that of no choice.
    """
    k = A.shape[1]
    _, size, V = la.svd(np.vstack([A, np.zeros((max(0, k - len(A)), k))]), full_matrices=False)
    natural = V.T / np.maximum(size, RANK_TOLERANCE * size.max(initial=np.finfo(float).tiny))  # F of all becomes I
    A, C = A @ natural, C @ natural
    information = np.zeros((n, k, k))
    for s in range(n):
        rows = A[: len(owners)][owners == s]
        information[s] = rows.T @ rows
    rest = np.vstack([A[: len(owners)][owners < 0], A[len(owners) :]])
    return rest.T @ rest + VAGUE * np.eye(k), information, C


@dataclass(frozen=True, slots=True, eq=False)
class DeviationLimit:
    """The largest deviation of the outputs, with all chosen sensors at work.

    Attributes:
        criterion: what it is of.
        most: the largest deviation.
    """

    criterion: Criterion
    most: float

    def outcome(self, chosen: Iterable[str]) -> Precision:
        """How precise outputs are with some choices."""
        return Precision(self, self.criterion.weights(chosen))

    def failing(self, chosen: Sequence[str]) -> tuple[str, ...] | None:
        """None where some choices are precise enough; nothing needs to fail where they are not."""
        return None if self.outcome(chosen).suffices else ()


@dataclass(frozen=True, slots=True, eq=False)
class Precision:
    """How precise outputs are with some choices.

    Attributes:
        limit: what is asked for.
        x: which choices are taken (n_choices,).
    """

    limit: DeviationLimit
    x: Floats

    @property
    def deviation(self) -> float:
        """The deviation of the outputs."""
        criterion = self.limit.criterion
        return criterion.deviation(criterion.relaxed(self.x)[0])

    @property
    def suffices(self) -> bool:
        """Whether they are precise enough."""
        return self.deviation <= self.limit.most

    def beside(self, name: str) -> Precision:
        """How precise they are with a further choice."""
        return Precision(self.limit, np.where(np.array(self.limit.criterion.names) == name, 1.0, self.x))

    def next(self, allowed: Iterable[str], costs: Mapping[str, float]) -> str | None:
        """The choice that lowers the logarithm of the deviation most for its cost; what costs nothing first."""
        now = math.log(self.deviation)
        gains = {name: now - math.log(self.beside(name).deviation) for name in allowed}
        helping = [name for name, gain in gains.items() if gain > 0]
        return min(helping, key=lambda name: (costs[name] / gains[name], name), default=None)

    def inequality(self, names: Iterable[str] | None = None) -> Inequality:
        """The tangent of the precision, of all choices or some, as a share of what is lacking."""
        criterion = self.limit.criterion
        value, slope = criterion.relaxed(self.x, slope=True)
        if criterion.kind == "A":
            precision, w = criterion.n_outputs / value, -criterion.n_outputs / value**2 * slope
        else:
            precision = math.exp(-value / criterion.n_outputs)
            w = -precision / criterion.n_outputs * slope
        lacking = self.limit.most**-2 - max(precision - float(w @ self.x), 0.0)
        own = dict(zip(criterion.names, np.clip(w / lacking, 0.0, 1.0).tolist(), strict=True))
        wanted = criterion.names if names is None else names
        return Inequality({name: own[name] for name in wanted if own[name] > 0}, 1.0 - CLOSE_TO_LIMIT)

    def inequalities(self, failed: Sequence[str]) -> Iterator[Inequality]:
        """Yield the tangent; and that one more of the others is needed, as all that are taken do not suffice."""
        yield self.inequality()
        yield Inequality({name: 1 for name, x in zip(self.limit.criterion.names, self.x, strict=True) if not x}, 1)
