"""All plausibility checks of a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from nori_dyn.solve.estimate import Estimate
from nori_dyn.solve.plausibility.consistency import inconsistency
from nori_dyn.solve.plausibility.imu import misread_imus
from nori_dyn.solve.plausibility.magnitudes import estimates, readings
from nori_dyn.solve.plausibility.motion import STEP, accelerations, clock, limits, rates, step
from nori_dyn.solve.plausibility.torques import misread_torques
from nori_dyn.solve.plausibility.warning import PlausibilityWarning
from nori_dyn.system.builder import System
from nori_dyn.typing import Floats


def warnings_of_readings(
    system: System,
    q: Floats,
    qd: Floats,
    y: Floats,
    by_model: bool = True,
    others: Sequence[tuple[System, Floats]] = (),
    elsewhere: Iterable[tuple[System, Floats]] = (),
    falls: bool = False,
) -> tuple[PlausibilityWarning, ...]:
    """Plausibility warnings about single samples; some hundreds of milliseconds where rows are weighed.

    Args:
        system: the system that the log is for.
        q: configurations (N, nq), finite.
        qd: velocities (N, nv), finite.
        y: readings (N, ny); nan where there is none.
        by_model: whether to test the readings against the model, which is uncertain itself where it is identified.
        others: the systems and readings of other contact states that a sample may be in.
        elsewhere: those of contact states that it is not in, by what the log says of contacts.
        falls: whether the robot may fall, and its accelerometers feel no gravity.
    """
    with np.errstate(all="ignore"):  # an overflow is a warning by itself
        fit = inconsistency(system, q, qd, y, others, elsewhere) if by_model else ()
        return *limits(system.tree, q), *readings(system, y, falls), *fit


def warnings_of_motion(
    system: System,
    q: Floats,
    qd: Floats,
    y: Floats,
    estimate: Estimate | None = None,
    dt: float | None = None,
    t: Floats | None = None,
    states: Sequence[System] = (),
    by_model: bool = True,
) -> tuple[PlausibilityWarning, ...]:
    """Plausibility warnings about sequences of samples, and their estimates; some milliseconds.

    Args:
        system: the system that the log is for.
        q: configurations (N, nq), finite.
        qd: velocities (N, nv), finite.
        y: readings (N, ny); nan where there is none.
        estimate: the estimates of the log.
        dt: time between samples [s]; that of t when None. Without either, q is not compared with qd.
        t: times (N,) [s].
        states: the systems of other contact states.
        by_model: as for `warnings_of_readings`.
    """
    found: list[PlausibilityWarning] = []
    with np.errstate(all="ignore"):
        if t is not None:
            found += clock(t, dt)
            dt = step(t) if dt is None else dt
        if dt is not None:
            moving = [*rates(system.tree, q, qd, dt)]
            is_step = any(each.message.endswith(STEP) for each in moving)
            more = accelerations(system, qd, y, dt)  # a wrong time step is reported once
            found += [*moving, *(each for each in more if not (is_step and each.message.endswith(STEP)))]
            found += misread_torques(system, q, qd, y, dt, by_model and not moving)
            found += misread_imus((system, *states), q, qd, y, dt * np.arange(len(q), dtype=float) if t is None else t)
        if estimate is not None:
            found += estimates(system, q, estimate)
    return tuple(found)
