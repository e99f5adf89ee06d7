"""Systems that are observable over time only: some state has no initial prior.

One instant has too few rows then. While an order is planned, rows that read it stand for the prior of a filter from the
ticks before; a solver, which knows one instant, cannot run such a plan.

Source: docs/design.md, 4.12.
"""

from __future__ import annotations

from dataclasses import replace

from nori_dyn.errors import PlanError
from nori_dyn.measurements.memory import beginnings
from nori_dyn.system.builder import System
from nori_dyn.system.equation import SensorsOfRows, WithUnknowns
from nori_dyn.system.memory import Remembered
from nori_dyn.tables import listed

SHOWN = 6
"""Names in a message, at most."""


def without_prior(system: System) -> tuple[Remembered, ...]:
    """The state without an initial prior, apart from velocities, which are given at each tick."""
    own = [row.equation for row in system.rows if row.is_sensor]
    given = {u.key for equation in own if isinstance(equation, WithUnknowns) for u in equation.unknowns}
    return tuple(one for one in system.memory if one.sigma is None and one.variable.key not in given)


def over_time(system: System) -> System:
    """A system whose whole state is read, by rows with a sigma."""
    own = tuple(row.equation for row in system.rows if row.is_sensor)
    read = [replace(one, sigma=(1.0,) * len(one.variable.components)) for one in without_prior(system)]
    sensors = SensorsOfRows(system.sensors.name, system.sensors.fingerprint, (*own, *beginnings(read)))
    return system.replace(sensors=sensors)


def no_single_instant(system: System) -> PlanError:
    """The error that one instant does not determine the unknowns, but time does."""
    names = [one.variable.name for one in without_prior(system)]
    return PlanError(
        f"sensors '{system.sensors.name}': one instant does not determine {listed(names, SHOWN)}, and what depends on "
        f"{'it' if len(names) == 1 else 'them'}: there is no initial prior. Over time it is estimated: by nd.Tracker, "
        "nd.smooth and `nori-dyn estimate`. For estimates of one instant give a prior, the `sigma` of its entry in "
        "`memory`."
    )
