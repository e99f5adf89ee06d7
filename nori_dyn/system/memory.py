"""State from tick to tick: variables of d with a process model.

    m(t + dt) = a m(t) + r(t) dt + w,   a = exp(-dt / T),   w ~ N(0, Q(dt))

with the rate r, a variable of d as well, and a walk whose variance grows with time. Within a tick they are variables
like all others; `filtering` predicts their posterior to the next.

Source: docs/design.md, 4.12.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from nori_dyn.model.kinematics import Kinematics
from nori_dyn.system.equation import Equation
from nori_dyn.system.parts import Averaged
from nori_dyn.system.variables import Unknown, Variable, VariableKey
from nori_dyn.typing import Array, Floats


@dataclass(frozen=True, slots=True)
class Remembered:
    """A variable of d that is part of the state from tick to tick.

    Attributes:
        memory: the name of its entry.
        variable: the variable.
        mean: its initial mean, a number a component.
        sigma: standard deviation of that; None where nothing is known.
        walk: standard deviation of its change in one second that nothing else explains, a number a component.
        time_constant: time in which it decays to 1 / e [s]; None where it stays.
        rate: the variable that is its derivative by time; None where it has none.
        known_by: names of the rows of the tick that are its initial prior: a filter applies them once.
        part: what says its time constant at each state, `time_constant` being the longest; None where that is constant.
        jump: standard deviation of its change where a contact switches, a number a component; empty where it has none.
    """

    memory: str
    variable: Variable
    mean: tuple[float, ...]
    sigma: tuple[float, ...] | None
    walk: tuple[float, ...]
    time_constant: float | None
    rate: VariableKey | None
    known_by: str
    part: Fading | None = None
    jump: tuple[float, ...] = ()

    @staticmethod
    def lasting(memory: str, variable: Variable, part: Lasting, jump: tuple[float, ...] = ()) -> Remembered:
        """A variable of a component that keeps the variance of its prior, in a time that may depend on the state."""
        T, prior = part.time_constant, part.prior
        assert prior is not None
        sigma = prior.sigma or ()
        walk = tuple(each * math.sqrt(2 / T) for each in sigma)
        by_state = part if isinstance(part, Fading) else None
        return Remembered(memory, variable, (0.0,) * len(sigma), sigma, walk, T, None, prior.name, by_state, jump)

    def decay(self, dt: float | Floats) -> Floats:
        """A, by which it is multiplied over a time [s], or over each of many."""
        dt = np.asarray(dt, dtype=float)
        return np.ones_like(dt) if self.time_constant is None else np.exp(-dt / self.time_constant)

    def variance(self, dt: float | Floats) -> Floats:
        """The variance that it gains over a time (...) [s], a number a component (..., n).

        With decay that of the Ornstein-Uhlenbeck process, which goes to walk^2 T / 2.
        """
        T, dt = self.time_constant, np.asarray(dt, dtype=float)[..., None]
        seconds = dt if T is None else -0.5 * T * np.expm1(-2.0 * dt / T)
        return np.square(self.walk) * seconds


@runtime_checkable
class Random(Averaged, Protocol):
    """Optional side of a component's part: its one variable is a random number about its average."""

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """The variable; none where the part has none."""

    @property
    def prior(self) -> Equation | None:
        """Rows by which the variable is known: at each tick, or at first where it is state."""


@runtime_checkable
class Lasting(Random, Protocol):
    """Optional side of a component's part: its random variable is state wherever there is any, and fades by itself."""

    @property
    def time_constant(self) -> float:
        """The longest time in which it fades to 1 / e [s]."""


@runtime_checkable
class Fading(Lasting, Protocol):
    """Optional side of a component's part: in which time its variable fades depends on the state."""

    def bounded_share(self, at: Kinematics) -> Array:
        """The share of the variance of what it does at a state (n, ...) that is of a bounded, uniform law."""

    def fading(self, at: Kinematics) -> Array:
        """One over the time in which it does at a state (n, ...) [1/s], over any scalar."""


def lasting_parts(parts: Iterable[object]) -> dict[VariableKey, Lasting]:
    """Parts whose variables last, by these."""
    return {part.unknowns[0].key: part for part in parts if isinstance(part, Lasting) and part.unknowns}


@runtime_checkable
class WithMemory(Protocol):
    """Optional part of a set of sensors: variables that are state from tick to tick."""

    def remembered(self, variables: Sequence[Variable], equations: Iterable[Equation]) -> Sequence[Remembered]:
        """The variables of a system that are state, given the set's own equations."""
