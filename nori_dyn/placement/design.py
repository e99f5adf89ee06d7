"""The best sensors: those from which the outputs are known most precisely, by A- or D-optimality.

With A_s the whitened rows of a choice s over what exact rows leave free, and x_s whether it is taken, the covariance of
the outputs C z is C F^-1 C^T with the information F = A_0^T A_0 + sum of x_s A_s^T A_s. A is its trace, the sum of the
variances; D is the logarithm of its determinant; both are means over configurations. Few choices are all tried; of
many, a set that suffices is improved by further ones and by exchanges. Both criteria are convex in x, so the relaxed
problem with 0 <= x_s <= 1 bounds the best possible: at any x the linear part of the criterion does, at its least over
all that the rules allow.

Source: Pukelsheim, Optimal Design of Experiments, ch. 5-6; Frank and Wolfe (1956); Fedorov (1972) for exchanges.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.linalg as la

from nori_dyn.errors import InputError, NoPlacementError, SensorConfigError
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.conditioning import configurations_of
from nori_dyn.observe.deviations import OutputDeviations
from nori_dyn.observe.numeric import Reduction
from nori_dyn.placement.candidates import Candidates, Choices
from nori_dyn.placement.cover import EQUAL_COSTS, CoverProblem, cheapest
from nori_dyn.placement.purchase import Purchase
from nori_dyn.planning.outputs import resolve_outputs
from nori_dyn.system.given import check_tree
from nori_dyn.tables import Shown
from nori_dyn.tables.progress import Progress, Watched, progress_bar
from nori_dyn.typing import Floats, Indices

Criterion = Literal["A", "D"]

CONFIGURATIONS = 8
"""Random configurations over which the criterion is averaged, unless told otherwise."""

MOST_SETS = 4000
"""Sets up to which all are tried."""

RELAXED_STEPS = 60
"""Steps of the relaxed problem, for the bound."""

CLOSE = 1e-3
"""Share of the criterion at which the bound is close enough."""

CLOSE_TO_DEPENDENT = 1e-9
"""Share of an output below which it depends on others."""

SECONDS_TO_START = 20.0
"""Time for a first set that determines the outputs."""

VAGUE = 1e-10
"""What is known of everything beforehand, as a share of the largest information, so that F is never singular."""


@dataclass(frozen=True, slots=True, eq=False)
class Design(Shown):
    """The sensors from which the outputs are known most precisely.

    Attributes:
        chosen: the choices, in the order of the candidates.
        cost: what they cost together.
        criterion: "A" or "D".
        value: the criterion: sum of the variances of the outputs [their units squared], or the logarithm of the
            determinant of their covariance; mean over the configurations.
        bound: no choice within the rules has less.
        method: how they were found, in words.
        outputs: numbers of d that are judged.
        units: the SI unit of each.
        n_independent: how many of them the determinant is of: those that exact rows neither make known nor tie to the
            others.
        sigma: expected standard deviation of each of them, root mean square over the configurations (n_outputs,).
        sensors: the set of them and of what is there anyway.
        costs: of each that is chosen.
        bought: the robot with them, and how exact the outputs are expected to be.
    """

    chosen: tuple[str, ...]
    cost: float
    criterion: Criterion
    value: float
    bound: float
    method: str
    outputs: tuple[str, ...]
    units: tuple[str, ...]
    n_independent: int
    sigma: Floats
    sensors: SensorSet
    costs: Mapping[str, float]
    bought: Purchase

    def __repr__(self) -> str:
        return f"Design({len(self.chosen)} sensors, criterion '{self.criterion}', value {self.value:g})"

    @property
    def gap(self) -> float:
        """How much smaller standard deviations could be at best, as a share: root mean square, or geometric mean."""
        if self.criterion == "A":
            return 1.0 - math.sqrt(max(self.bound, 0.0) / self.value) if self.value > 0 else 0.0
        return 1.0 - math.exp(min(self.bound - self.value, 0.0) / (2 * self.n_independent))


def best_sensors(
    tree: KinematicTree,
    candidates: Candidates,
    k: int | None = None,
    outputs: Sequence[str] = ("tau",),
    criterion: Criterion = "A",
    configurations: Any = None,
    n: int = CONFIGURATIONS,
    seed: int = 0,
    progress: Watched = None,
) -> Design:
    """The choice of sensors, at most k and within the budget, from which outputs are known most precisely.

    Args:
        tree: the robot.
        candidates: what there is to choose from; each with a sigma.
        k: the largest number of choices, those that have to be taken included; None where a budget limits them.
        outputs: kinds or names of variables, as `nori_dyn.plan` takes them.
        criterion: "A" for the sum of variances, which wants outputs of one unit; "D" for the determinant of the
            covariance, of as many outputs as are independent, in any units.
        configurations: over which to average (N, nq); `n` random ones within joint limits when None.
        n: number of random configurations.
        seed: seed of everything random.
        progress: True to show it, or what is told of it, see `nori_dyn.tables.progress`; on a terminal when None.

    Raises:
        WrongKindError: not a robot.
        SensorConfigError: candidates that do not fit the robot, or without a sigma.
        UnknownOutputError: an output that does not exist.
        InputError: neither k nor a budget, a k below 1, another criterion, configurations of the wrong shape.
        NoPlacementError: no allowed choice determines the outputs.

    Example:
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> motion = {"type": "joint_acceleration", "joints": "all", "sigma": 0.5}
        >>> imu = {"type": "accelerometer", "links": "link2", "sigma": 0.1}
        >>> candidates = nd.placement.Candidates.from_dict({
        ...     "name": "shop", "measurements": [unloaded], "candidates": {"measurements": [motion, imu]}
        ... })
        >>> found = nd.placement.best_sensors(nd.autotree(2), candidates, 2)
        >>> found.chosen
        ('qdd:joint2', 'acc:link2')
        >>> print(np.round(found.sigma, 2))  # of tau:joint1 and tau:joint2 [N m]
        [0.16 0.17]
    """
    check_tree(tree, "nd.placement.best_sensors", "candidates")
    if criterion not in ("A", "D"):
        raise InputError(f"criterion is '{criterion}': it is 'A' (sum of variances) or 'D' (determinant).")
    if k is None and candidates.budget is None:
        raise InputError("how many sensors? Give k, or a budget in the candidates: more of them are always better.")
    if k is not None and k < 1:
        raise InputError(f"k is {k}: at least one sensor is to be chosen.")
    with progress_bar(f"placing sensors on {tree.name}", progress) as stage:
        choices = candidates.on(tree)
        _check_sigmas(choices)
        Q = configurations_of(choices.system, configurations, n, seed)
        stage("information of each sensor")
        judged = _Criterion.of(choices, outputs, criterion, Q, seed)
        search = _ExchangeSearch(
            choices, len(choices.sensors) if k is None else k, CoverProblem.of(choices, outputs, seed), judged
        )
        start = search.start(stage)
        tried = search.of_all()
        exhaustive = tried is not None
        chosen = tried or search.by_exchanges(start, stage)
        value = judged.value(chosen)
        bound = value if exhaustive else min(value, search.bound(chosen, stage))
        bought = Purchase.of(choices, chosen, outputs, configurations, n, seed)
        final = bought.expected
        assert final.sigma is not None
        return Design(
            chosen=chosen,
            cost=choices.cost(chosen),
            criterion=criterion,
            value=value,
            bound=bound,
            method="all sets tried" if exhaustive else "exchanges; the bound is that of the relaxed problem",
            outputs=final.outputs,
            units=final.units,
            n_independent=len(judged.at[0].outputs) if criterion == "D" else len(final.outputs),
            sigma=np.sqrt(np.mean(final.sigma**2, axis=0)),
            sensors=choices.sensor_set(chosen),
            costs={name: choices.costs[name] for name in chosen},
            bought=bought,
        )


def _check_sigmas(choices: Choices) -> None:
    """Check that all candidates have noise.

    Raises:
        SensorConfigError: one has none.
    """
    for name, sensors in choices.sensors.items():
        if any(sensor.sigma is None for sensor in sensors):
            raise SensorConfigError(
                f"candidates '{choices.candidates.name}': '{name}' has no sigma, so it would be known exactly and "
                "nothing could be better. Give its standard deviation."
            )


@dataclass(frozen=True, slots=True, eq=False)
class _InformationAt:
    """What sensors tell at a configuration, over k numbers z that exact rows leave free.

    Attributes:
        present: the information of what is there anyway (k, k).
        information: that of each choice (n_choices, k, k).
        outputs: C (n_outputs, k).
    """

    present: Floats
    information: Floats
    outputs: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Criterion:
    """How well outputs are known, of any weights x of the choices: the mean over some configurations.

    Attributes:
        names: the choices.
        kind: "A" or "D".
        at: the configurations.
    """

    names: tuple[str, ...]
    kind: Criterion
    at: tuple[_InformationAt, ...]

    @staticmethod
    def of(choices: Choices, outputs: Sequence[str], kind: Criterion, Q: Floats, seed: int) -> _Criterion:
        """The criterion at configurations (N, nq)."""
        system = choices.system
        reduction = Reduction(system, seed)
        deviations = OutputDeviations(reduction, resolve_outputs(system, outputs))
        names = tuple(choices.sensors)
        numbers = {name: k for k, name in enumerate(names)}
        owners = np.full(system.shape[0], -1)
        for key, name in choices.rows.items():
            owners[system.row(key).slice] = numbers[name]
        weighed = owners[deviations.weighed_rows]
        at = []
        independent: Indices | None = None
        for found in reduction.at_each(Q, deviations.noisy):
            A, C = deviations.whiten(found)
            if independent is None:
                independent = _independent(C) if kind == "D" else np.arange(len(C))
            at.append(_at(A, C[independent], weighed, len(names)))
        return _Criterion(names, kind, tuple(at))

    def value(self, chosen: Iterable[str]) -> float:
        """The criterion of some choices."""
        taken = set(chosen)
        return self.relaxed(np.array([float(name in taken) for name in self.names]))[0]

    def relaxed(self, x: Floats, slope: bool = False) -> tuple[float, Floats]:
        """The criterion of weights x (n_choices,), and its derivative by them where asked for."""
        total, derivative = 0.0, np.zeros(len(x))
        for at in self.at:
            F = at.present + np.tensordot(x, at.information, axes=1)
            G = la.cho_solve(la.cho_factor(F), at.outputs.T)  # F^-1 C^T
            covariance = at.outputs @ G
            if self.kind == "A":
                total += float(np.trace(covariance))
            else:
                total += float(np.linalg.slogdet(covariance)[1])
            if slope:
                inner = G @ G.T if self.kind == "A" else G @ np.linalg.solve(covariance, G.T)
                derivative -= np.tensordot(at.information, inner, axes=2)
        return total / len(self.at), derivative / len(self.at)


def _at(A: Floats, C: Floats, owners: Indices, n: int) -> _InformationAt:
    """The information of whitened rows A (rows, k), by the number of the choice that each is of; -1 is none."""
    k = A.shape[1]
    information = np.zeros((n, k, k))
    for s in range(n):
        rows = A[: len(owners)][owners == s]
        information[s] = rows.T @ rows
    rest = np.vstack([A[: len(owners)][owners < 0], A[len(owners) :]])
    vague = VAGUE * np.square(np.linalg.norm(A, axis=1)).max(initial=0.0)
    return _InformationAt(rest.T @ rest + vague * np.eye(k), information, C)


def _independent(C: Floats) -> Indices:
    """The numbers of rows of C (n_outputs, k) that are independent, in their order."""
    size = np.linalg.norm(C, axis=1)
    R, order = la.qr((C / np.where(size > 0, size, 1.0)[:, None]).T, mode="r", pivoting=True)
    rank = int(np.sum(np.abs(np.diagonal(R)) > CLOSE_TO_DEPENDENT))
    return np.sort(order[:rank])


@dataclass(frozen=True, slots=True, eq=False)
class _ExchangeSearch:
    """The search for the best choices that the rules allow.

    Attributes:
        choices: the candidates on the robot.
        k: the largest number of them.
        problem: which of them determine the outputs.
        criterion: how well.
    """

    choices: Choices
    k: int
    problem: CoverProblem
    criterion: _Criterion

    def allows(self, chosen: Sequence[str]) -> bool:
        """Whether the rules allow some choices."""
        budget = self.choices.candidates.budget
        is_cheap = budget is None or self.choices.cost(chosen) <= budget * (1 + EQUAL_COSTS)
        return len(chosen) <= self.k and is_cheap and self.choices.is_allowed(chosen)

    def start(self, progress: Progress) -> tuple[str, ...]:
        """Choices within the rules that determine the outputs.

        Raises:
            NoPlacementError: none were found.
        """
        self.problem.check()
        few = replace(self.problem, choices=replace(self.choices, costs=dict.fromkeys(self.choices.sensors, 1.0)))
        for problem in (few, self.problem):
            chosen = cheapest(problem, SECONDS_TO_START, progress)[0]
            if self.allows(chosen):
                return chosen
        budget = self.choices.candidates.budget
        within = f"at most {self.k} sensors" + ("" if budget is None else f" and a budget of {budget:g}")
        fewest = cheapest(few, SECONDS_TO_START, progress)[0]
        raise NoPlacementError(
            f"candidates '{self.choices.candidates.name}': {within}: no choice was found that determines the outputs. "
            f"The fewest that do are {len(fewest)}, for {self.choices.cost(fewest):g}; the cheapest cost "
            f"{self.choices.cost(chosen):g}."
        )

    def of_all(self) -> tuple[str, ...] | None:
        """The best of all choices; None where they are too many to try."""
        free = [name for name in self.choices.sensors if name not in self.choices.must]
        sizes = range(min(self.k - len(self.choices.must), len(free)) + 1)
        if sum(math.comb(len(free), size) for size in sizes) > MOST_SETS:
            return None
        sets = [(*self.choices.must, *some) for size in sizes for some in itertools.combinations(free, size)]
        judged = [
            (self.criterion.value(chosen), self.choices.in_order(chosen)) for chosen in sets if self.allows(chosen)
        ]
        return next(chosen for _, chosen in sorted(judged) if self.problem.suffices(chosen))

    def by_exchanges(self, start: tuple[str, ...], progress: Progress) -> tuple[str, ...]:
        """Choices that no further one and no exchange of one improves."""
        chosen, value = start, self.criterion.value(start)
        while True:
            progress(f"exchanges, {len(chosen)} sensors")
            judged = sorted((self.criterion.value(other), other) for other in self._neighbours(chosen))
            least = value - EQUAL_COSTS * max(1.0, abs(value))
            better = (other for other in judged if other[0] < least and self.problem.suffices(other[1]))
            found = next(better, None)
            if found is None:
                return chosen
            value, chosen = found

    def _neighbours(self, chosen: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The choices with one more; where the rules allow none, those with one exchanged for another."""
        others = [name for name in self.choices.sensors if name not in chosen]
        more = [self.choices.in_order((*chosen, name)) for name in others]
        if allowed := [some for some in more if self.allows(some)]:
            return allowed
        fewer = [[name for name in chosen if name != gone] for gone in chosen if gone not in self.choices.must]
        swapped = [self.choices.in_order((*some, name)) for some in fewer for name in others]
        return [some for some in swapped if self.allows(some)]

    def bound(self, chosen: tuple[str, ...], progress: Progress) -> float:
        """Lower bound of the criterion over weights 0 <= x <= 1 within the rules, by the method of Frank and Wolfe."""
        from scipy.optimize import minimize_scalar

        x = np.array([float(name in chosen) for name in self.choices.sensors])
        best = -math.inf
        for step in range(RELAXED_STEPS):
            progress("bound", step / RELAXED_STEPS)
            value, slope = self.criterion.relaxed(x, slope=True)
            corner = self._corner(slope)
            best = max(best, value + float(slope @ (corner - x)))
            if value - best <= CLOSE * abs(value):
                break
            found = minimize_scalar(
                lambda t, x=x, ahead=corner - x: self.criterion.relaxed(x + t * ahead)[0],
                bounds=(0, 1),
                method="bounded",
            )
            x = x + found.x * (corner - x)
        return best

    def _corner(self, slope: Floats) -> Floats:
        """The weights within the rules at which a linear function is least."""
        from scipy.optimize import linprog

        names = list(self.choices.sensors)
        rows, most = [np.ones(len(names))], [float(self.k)]
        if (budget := self.choices.candidates.budget) is not None:
            rows.append(np.array([self.choices.costs[name] for name in names]))
            most.append(budget)
        for some in self.choices.at_most_one:
            rows.append(np.array([float(name in some) for name in names]))
            most.append(1.0)
        limits = [(1.0 if name in self.choices.must else 0.0, 1.0) for name in names]
        return np.asarray(linprog(slope / np.abs(slope).max(), np.array(rows), most, bounds=limits).x)
