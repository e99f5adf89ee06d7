"""Several systems of one robot side by side: the readings and weights of all of them, and which system has which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import shaped
from nori_dyn.errors import UnknownReadingError
from nori_dyn.system.builder import System
from nori_dyn.system.rows import RowBlock
from nori_dyn.typing import Floats, Indices


class SideBySide:
    """The inputs of several systems of one robot, each reading and weight once.

    Readings are the same where they have the same name. Weights are where they have the same name and begin at the
    same value; the sigma is in the name of others, as in "acc:l_sole (sigma 0.1)".

    Attributes:
        name: their name together, for messages.
        measurement_names: of all systems, in the order in which they first come (ny).
        weight_names: the same of the weights (n_weights).
        weights: the initial weights (n_weights,).
        y_indices: for each system the indices of its readings among all (ny of it,).
        weight_indices: the same of its weights.

    Args:
        systems: the systems.
        name: their name together, for messages.
    """

    def __init__(self, systems: Sequence[System], name: str) -> None:
        self._systems, self.name = tuple(systems), name
        readings = [[x for row in system.measurements for x in self._names_of(row)] for system in self._systems]
        self.measurement_names: tuple[str, ...] = tuple(dict.fromkeys(x for own in readings for x in own))
        self.y_indices = _indices(readings, self.measurement_names)
        keys = [_weight_keys(system) for system in systems]
        weights = tuple(dict.fromkeys(key for of_system in keys for key in of_system))
        self.weight_names: tuple[str, ...] = tuple(_weight_labels(weights))
        self.weights: Floats = np.array([value for _, _, value in weights], dtype=float)
        self.weights.flags.writeable = False
        self.weight_indices = _indices(keys, weights)

    @staticmethod
    def _names_of(row: RowBlock) -> tuple[str, ...]:
        """The names of the readings of a measurement."""
        return row.component_names

    @property
    def ny(self) -> int:
        """Number of readings."""
        return len(self.measurement_names)

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return len(self.weight_names)

    @cached_property
    def described(self) -> dict[str, tuple[str, str]]:
        """For each reading, by its name, its unit ("" without one) and the type of its sensor."""
        found: dict[str, tuple[str, str]] = {}
        for row in (row for system in self._systems for row in system.measurements):
            for name, unit in zip(self._names_of(row), row.units, strict=True):
                found.setdefault(name, (unit, row.equation.group))
        return found

    def input_indices(self, number: int = 0) -> Indices:
        """Where the inputs of a system are among q, qd, all readings and all weights, one after the other."""
        tree = self._systems[number].tree
        before = tree.nq + tree.nv
        parts = np.arange(before), before + self.y_indices[number], before + self.ny + self.weight_indices[number]
        return np.concatenate(parts).astype(np.intp)

    def reading(
        self, number: int, y: ArrayLike | Mapping[str, Any], batch: tuple[int, ...] = ()
    ) -> Floats | dict[str, Any]:
        """The readings of a system from those of all (..., ny), or from {measurement name: value}.

        Raises:
            InputError: a wrong shape, a name that no system has.
        """
        if isinstance(y, Mapping):
            return self._own("y", "measurement", y, self._names_of_readings, number)
        return _taken(shaped("Y" if batch else "y", y, (*batch, self.ny)), self.y_indices[number])

    def weighting(
        self, number: int, weights: Floats | Mapping[str, Any] | None, batch: tuple[int, ...] = ()
    ) -> Floats | dict[str, Any] | None:
        """The weights of a system from those of all, or from {weight name: value}.

        Raises:
            InputError: a wrong shape, a name that no system has.
        """
        if isinstance(weights, Mapping):
            return self._own("weights", "weight", weights, self._names_of_weights, number)
        if weights is None or not self.n_weights:
            return weights
        if not len(self.weight_indices[number]):
            return None
        shape = (*batch, self.n_weights) if np.ndim(weights) > 1 else (self.n_weights,)
        return _taken(shaped("weights", weights, shape), self.weight_indices[number])

    def weights_by(self, sigma: Floats) -> Floats | None:
        """Weights (n, n_weights) of samples whose readings have deviations of their own; None without any.

        A weight that several readings share is that of the least sure of them.

        Args:
            sigma: the deviations (n, ny); nan where a reading has none.
        """
        found = np.full((len(sigma), self.n_weights), np.nan)
        for system, readings, own in zip(self._systems, self.y_indices, self.weight_indices, strict=True):
            for reading, weight in zip(readings.tolist(), system.weight_of_readings.tolist(), strict=True):
                if weight >= 0:
                    found[:, own[weight]] = np.fmax(found[:, own[weight]], sigma[:, reading])
        is_told = np.isfinite(found)
        if not is_told.any():
            return None
        return np.where(is_told, np.where(is_told, found, 1.0) ** -2.0, self.weights)

    def _own(
        self, what: str, kind: str, given: Mapping[str, Any], names: Sequence[Mapping[str, str]], number: int
    ) -> dict[str, Any]:
        """The values, given by name, of the readings or weights of one system."""
        for name in given:
            if not any(name in of_system for of_system in names):
                known = dict.fromkeys(name for of_system in names for name in of_system)
                raise UnknownReadingError(kind, name, known, f"{what} of sensors '{self.name}'")
        return {names[number][name]: value for name, value in given.items() if name in names[number]}

    @cached_property
    def _names_of_readings(self) -> list[dict[str, str]]:
        """For each system the valid names of its readings: of single numbers, or of a whole sensor."""
        rows = [[row.name for row in system.measurements] for system in self._systems]
        found = zip(rows, (system.measurement_names for system in self._systems), strict=True)
        return [{name: name for name in (*blocks, *numbers)} for blocks, numbers in found]

    @cached_property
    def _names_of_weights(self) -> list[dict[str, str]]:
        """For each system the valid names of its weights, with their names in that system."""
        found = []
        for system, indices in zip(self._systems, self.weight_indices, strict=True):
            labels = zip((self.weight_names[k] for k in indices), system.weight_names, strict=True)
            names = dict(labels) | {name: name for name in system.weight_names}
            found.append(names | {row.name: row.name for row in system.rows if not row.is_exact})
        return found


def _weight_keys(system: System) -> list[tuple[str, int, float]]:
    """For each weight of a system its name, the number of earlier ones with that name, and its initial value."""
    seen: dict[str, int] = {}
    keys = []
    for name, weight in zip(system.weight_names, system.weights.tolist(), strict=True):
        seen[name] = seen.get(name, -1) + 1
        keys.append((name, seen[name], weight))
    return keys


def _weight_labels(keys: Sequence[tuple[str, int, float]]) -> list[str]:
    """The name of each weight, with its sigma where another begins at another value."""
    first: dict[tuple[str, int], float] = {}
    for name, turn, weight in keys:
        first.setdefault((name, turn), weight)
    several = {(name, turn) for name, turn, weight in keys if weight != first[name, turn]}
    return [f"{name} (sigma {weight**-0.5:.6g})" if (name, turn) in several else name for name, turn, weight in keys]


def _indices(of_systems: Sequence[Sequence[Any]], everything: Sequence[Any]) -> tuple[Indices, ...]:
    number = {key: k for k, key in enumerate(everything)}
    return tuple(np.array([number[key] for key in keys], dtype=np.intp) for keys in of_systems)


def _taken(values: Floats, indices: Indices) -> Floats:
    """Some numbers along the last axis; the array itself where these are all."""
    if len(indices) == values.shape[-1] and np.array_equal(indices, np.arange(len(indices))):
        return values
    return np.ascontiguousarray(values[..., indices])
