"""The parameters of an identification: those of a robot and of a load that some logs carry, free or known.

Each log depends on combinations beta of the robot's parameters, beta = G phi. A load on a link adds its own ten
to those of the link, in the logs that carry it. Known values are moved to the right-hand side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.identification.base_parameters import BaseParameters
from nori_dyn.identification.moments import LEAST, Moments
from nori_dyn.identification.parameters import INERTIAL, Kind, Parameter, Parameters, ten_parameters
from nori_dyn.identification.physical import pull_back, with_known
from nori_dyn.identification.prior import ParameterPrior
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Booleans, Floats, Indices

LOAD = "load"
"""What the parameters of a load are of."""

ROUNDING = 1e-9
"""Relative size of numbers that are zero but for rounding, among factors of combinations."""


USUAL: Mapping[Kind, float] = {"mu": 0.2}
"""Prior deviations of what is alike of all drives: the friction of gears by their load is some hundredths of that."""


@dataclass(frozen=True, eq=False)
class IdentificationProblem:
    """The parameters of an identification: free ones and known ones.

    Attributes:
        base: which combinations of the robot's parameters are identifiable; gains are not among these.
        load_on: the link that carries a load, in the logs that do; None where there is none.
        known: parameters whose values are known.
        robots: names of the robots of one type that the logs are of.
        own: the parameters that each of these has of its own, by their places among the robot's; the others are shared.
    """

    base: BaseParameters
    load_on: str | None
    known: Mapping[str, float]
    robots: tuple[str, ...] = ("",)
    own: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, value in self.known.items():
            if name not in self._all_names:
                raise UnknownNameError("parameter", name, self._all_names, "what is known")
            if not np.isfinite(value):
                raise InputError(f"the known value of '{name}' is {value}: it must be a finite number.")

    @property
    def tree(self) -> KinematicTree:
        """The robot."""
        return self.parameters.tree

    @property
    def parameters(self) -> Parameters:
        """The parameters of the robot, known ones included."""
        return self.base.parameters

    @cached_property
    def all_parameters(self) -> tuple[Parameter, ...]:
        """The parameters of the robot, the first of a fleet; those of the load; then the own ones of other robots."""
        load = ten_parameters(LOAD) if self.load_on is not None else ()
        others = (replace(self.parameters.each[k], robot=name) for name in self.robots[1:] for k in self.own)
        return (*self.parameters.each, *load, *others)

    def own_of(self, robot: int) -> Indices:
        """Which of all parameters are the own ones of a robot of the fleet."""
        first = len(self.parameters) + (10 if self.load_on is not None else 0) + (robot - 1) * len(self.own)
        return np.array(self.own, dtype=np.intp) if robot == 0 else first + np.arange(len(self.own))

    @cached_property
    def _all_names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.all_parameters)

    @cached_property
    def free(self) -> Indices:
        """Which of these are free."""
        found = [k for k, name in enumerate(self._all_names) if name not in self.known]
        return np.array(found, dtype=np.intp)

    @cached_property
    def before(self) -> Floats:
        """What each is taken to be before, known values included."""
        own = {name: value for name, value in self.known.items() if name in self.parameters.place}
        of_robot, _ = with_known(self.parameters, own)
        values = np.zeros(len(self.all_parameters))
        values[: len(of_robot)] = of_robot
        for robot in range(1, len(self.robots)):
            values[self.own_of(robot)] = self.parameters.prior[[*self.own]]
        for name, value in self.known.items():
            values[self._all_names.index(name)] = value
        return values

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The columns of the regressor that are computed: independent ones, and gains."""
        return (*self.base.independent, *self.parameters.of_kinds("gain"))

    @cached_property
    def G(self) -> Floats:
        """Those columns' factors over the parameters of the robot: beta = G phi."""
        gains = self.parameters.of_kinds("gain")
        of_gains = np.zeros((len(gains), len(self.parameters)))
        of_gains[np.arange(len(gains)), gains] = 1.0
        return np.vstack([self.base.G, of_gains])

    def over_all(self, is_loaded: bool, robot: int = 0) -> Floats:
        """The columns' factors over all parameters (columns, n), in a log of a robot, with the load or without."""
        n = len(self.parameters)
        found = np.zeros((len(self.G), len(self.all_parameters)))
        found[:, :n] = self.G
        if self.load_on is not None and is_loaded:
            for k, each in enumerate(ten_parameters(self.load_on)):
                if each.name in self.parameters.place:
                    found[:, n + k] = self.G[:, self.parameters.place[each.name]]
        if robot:
            found[:, list(self.own)] = 0.0
            found[:, self.own_of(robot)] = self.G[:, list(self.own)]
        return found

    @cached_property
    def combinations(self) -> tuple[tuple[str, int, Floats], ...]:
        """The identifiable ones: name, the parameter that stands for it, and factors over all; each once of a fleet."""
        found = []
        for robot, name in enumerate(self.robots):
            for k, row in enumerate(self.over_all(is_loaded=False, robot=robot)[: len(self.base.G)]):
                if not robot or row[self.own_of(robot)].any():
                    found.append((self.base.names[k] + (f"@{name}" if robot else ""), self.base.independent[k], row))
        return tuple(found)

    def gains_of(self, rows: Sequence[str]) -> tuple[int, ...]:
        """Column of the gain of each row, by its name; -1 where it has none."""
        names = [self.parameters.names[k] for k in self.columns]
        return tuple(names.index(f"gain:{row}") if f"gain:{row}" in names else -1 for row in rows)

    def over_free(self, is_loaded: bool, robot: int = 0) -> tuple[Floats, Floats]:
        """Matrix E and shift of a log: beta = E (free ones) + shift."""
        over_all = self.over_all(is_loaded, robot)
        fixed = np.setdiff1d(np.arange(over_all.shape[1]), self.free)
        return over_all[:, self.free], over_all[:, fixed] @ self.before[fixed]

    @cached_property
    def identifiable(self) -> Floats:
        """The identifiable directions, orthonormal, over the free parameters (rank, n_free).

        Where there is a load, by logs with it and without; of a fleet, by logs of all robots.
        """
        states = (False, True) if self.load_on is not None else (False,)
        E = np.vstack([self.over_free(*of)[0] for of in product(states, range(len(self.robots)))])
        _, s, Vt = np.linalg.svd(E, full_matrices=False)
        return np.asarray(Vt[s > ROUNDING * s.max(initial=0.0)])

    @cached_property
    def identifiable_alone(self) -> Booleans:
        """Whether each parameter is identifiable by itself (n,), were the motion as rich as it can be."""
        found = np.zeros(len(self.all_parameters), dtype=bool)
        found[self.free] = 1.0 - np.sum(self.identifiable**2, axis=0) < ROUNDING
        return found

    @property
    def base_of_free(self) -> Floats:
        """The identifiable combinations of free parameters (k, n_free); what is in none, by itself."""
        n = len(self.all_parameters)
        own = np.reshape([row for *_, row in self.combinations], (-1, n))[:, self.free]
        alone = np.eye(own.shape[1])[~own.any(axis=0)]
        return np.vstack([own[own.any(axis=1)], alone])

    def whole(self, values: Floats) -> Floats:
        """All parameters, for values of the free ones."""
        found = self.before.copy()
        found[self.free] = values
        return found

    def prior(self, logs: Sequence[Sequence[Moments]], declared: Mapping[str, tuple[float, float]]) -> ParameterPrior:
        """Prior of the free parameters.

        Inertias: by the metric of physical inertias, a deviation as large as the inertia itself. Others: a deviation as
        large as what would explain all that a sensor reads by that parameter alone, or as it is of drives. Of a reading
        with an unknown gain that is what the model asks for, if that is more.

        Args:
            logs: moments of each row of each log, by which parameters can be only so large.
            declared: mean and standard deviation of parameters, by name.
        """
        n = len(self.all_parameters)
        model = self.tree.replace(I=self.parameters.inertias(self.before[: len(self.parameters)]))
        metric = pull_back(Parameters(model, self.parameters.each))
        rows = [np.pad(metric, ((0, 0), (0, n - len(self.parameters))))]
        of = [self.tree.names[i] for i in self.parameters.links() for _ in range(10)]
        before = self.before.copy()
        sizes = self._sizes(logs)
        for k, each in enumerate(self.all_parameters):
            if k >= len(self.parameters) or each.kind not in INERTIAL:
                largest = USUAL.get(each.kind, math.inf)
                name = each.name.partition("@")[0]
                before[k], size = declared.get(name, (before[k], min(sizes[k], largest)))
                rows.append(np.eye(n)[k : k + 1] / size)
                of.append(each.name if name in declared else "")
        L = np.vstack(rows)
        return ParameterPrior(before[self.free], L[:, self.free], tuple(of))

    def _sizes(self, logs: Sequence[Sequence[Moments]]) -> Floats:
        """Size of each parameter if it explained all that is read (n,)."""
        sizes, before, n_combined = np.zeros(len(self.columns)), self.over_all(False) @ self.before, len(self.base.G)
        for m in (m for rows in logs for m in rows):
            u = m.unit("reading") if m.rms(m.unit("reading")) > 0 else m.unit("constant")
            read = m.rms(u)
            has_gain = m.columns >= n_combined
            if has_gain.any():
                model = m.residual(before)
                model[: m.k][has_gain] = 0.0
                read = max(read, m.rms(model))
            own = np.linalg.norm(m.R[:, : m.k], axis=0) / np.sqrt(max(m.n, LEAST))
            found = np.divide(read, own, out=np.zeros(m.k), where=own > 0)
            sizes[m.columns] = np.maximum(sizes[m.columns], found)
        sizes[sizes == 0] = 1.0
        over_all = np.max([np.abs(self.over_all(True, robot)) for robot in range(len(self.robots))], axis=0)
        largest = np.array(
            [np.max(sizes / np.maximum(column, 1e-3) * (column > 0), initial=0.0) for column in over_all.T]
        )
        return np.where(largest > 0, largest, 1.0)
