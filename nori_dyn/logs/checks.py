"""Validity of samples: which are left out, and why, and errors that name the place."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from nori_dyn.errors import InputError, SaturatedReadingError, UnplannedStateError
from nori_dyn.logs.clock import LARGEST, is_wrong
from nori_dyn.logs.samples import Samples, contact_states, shown_value
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import Missing
from nori_dyn.typing import Booleans, Floats, Indices


def _is_any_wrong(values: Floats) -> bool:
    return not (np.max(values, initial=0.0) < LARGEST and np.min(values, initial=0.0) > -LARGEST)


def usable(samples: Samples, missing: Missing, differentiated: tuple[str, ...], left_out: Counter[str]) -> Samples:
    """The samples that can be estimated, without those in gaps of streams or without a motion.

    Args:
        samples: the samples.
        missing: "drop" leaves samples out whose q or qd is not a number; "refuse" refuses the log.
        differentiated: velocities and readings that were made: there may be none where time begins, or jumps.
        left_out: takes how many are left out, by the reason.

    Raises:
        InputError: q or qd are not numbers, and are not to be dropped; says where.
    """
    record = samples.record
    left = np.zeros(len(samples), dtype=bool)

    def leave_out(reason: str, which: Booleans | np.bool_) -> None:
        new = np.asarray(which & ~left)
        if new.any():
            left_out[reason] += int(np.count_nonzero(new))
            left[new] = True

    if samples.silent is not None:
        leave_out("in a gap of a stream with q or qd", samples.silent[:, : record.y.start].any(axis=1))
        if record.contacts:
            leave_out("in a gap of a stream with contacts", samples.silent[:, record.closed].any(axis=1))
        is_needed = np.ones(record.y.stop - record.y.start, dtype=bool) if missing == "refuse" else _exact(samples)
        leave_out("in a gap of a stream with readings", (samples.silent[:, record.y] & is_needed).any(axis=1))
    if differentiated:
        places = [record.places[name] for name in differentiated]
        rates = [k - record.qd.start for k in places if k < record.y.start]
        has_motion = ~is_wrong(np.delete(samples.qd, rates, axis=1)).any(axis=1)
        made = [samples.qd[:, rates], samples.y[:, [k - record.y.start for k in places if k >= record.y.start]]]
        is_lacking = ~np.isfinite(np.hstack(made)).all(axis=1)
        what = "velocities" if rates else "accelerations"
        leave_out(f"without {what}, where time begins or jumps", is_lacking & has_motion)
    for kind, values, part in (("q", samples.q, record.q), ("qd", samples.qd, record.qd)):
        if not _is_any_wrong(values):
            continue
        wrong = is_wrong(values) & ~left[:, None]
        if missing == "drop":
            leave_out(f"{kind} is not a number", wrong.any(axis=1))
            continue
        for k, j in np.argwhere(wrong)[:1].tolist():
            called = samples.called(record.names[part.start + j])
            n = int(np.count_nonzero(wrong[:, j]))
            raise InputError(
                f"{samples.place(k)}: column '{called}' is {shown_value(values[k, j])}. Without q and qd nothing can "
                f"be estimated: --missing drop leaves such samples out ({n} of {len(samples)} read), or fill them in."
            )
    samples = samples if not left.any() else samples.at(~left)
    if missing == "drop" and _is_any_wrong(samples.y):
        samples = replace(samples, y=np.where(is_wrong(samples.y), np.nan, samples.y))
    return samples


def samples_by_state(samples: Samples) -> dict[ContactState, Indices | slice]:
    """Indices of the samples of each contact state that occurs.

    Raises:
        UnplannedStateError: one has no system; says where.
        InputError: a contact is neither open nor closed.
    """
    systems = samples.record.systems
    found = contact_states(samples)
    for state, places in found.items():
        if state not in systems:
            error = UnplannedStateError(state, tuple(systems))
            error.args = (f"{_place(samples, places, 0)}: {error}",)
            raise error
    return dict(found)


def check_readings(samples: Samples, system: System, own: Floats, places: Indices | slice, missing: Missing) -> None:
    """Check the readings (n, ny) of one contact state at its samples (n,).

    Raises:
        InputError: one is no number, or saturated, and cannot be dropped, or is not to be; says where.
    """
    is_any_wrong = _is_any_wrong(own)
    if system.ranges is None and not is_any_wrong:
        return
    is_exact = system.weight_of_readings < 0
    counts = is_exact if missing == "drop" else np.ones(system.ny, dtype=bool)
    for k, j in np.argwhere(is_wrong(own) & counts)[:1].tolist():
        advice = "The sensor is exact and cannot be left out: give it a `sigma`; then" if is_exact[j] else "With"
        raise InputError(
            f"{_place(samples, places, k)}: '{system.measurement_names[j]}' is {shown_value(own[k, j])}. {advice} "
            "--missing drop the estimate does without it."
        )
    for k, j in np.argwhere(system.saturated(own) & counts)[:1].tolist():
        low, high = system.ranges[:, j].tolist() if system.ranges is not None else (-np.inf, np.inf)
        name, value = system.measurement_names[j], float(own[k, j])
        raise SaturatedReadingError(_place(samples, places, k), name, value, (low, high), bool(is_exact[j]))


def _place(samples: Samples, chosen: Indices | slice, k: int) -> str:
    """Location of the k-th of the chosen samples, for messages."""
    return samples.place(int(np.arange(len(samples))[chosen][k]))


def _exact(samples: Samples) -> Booleans:
    """Mask (ny,) of readings without a sigma in some contact state, which cannot be dropped."""
    found: set[str] = set()
    for system in samples.record.systems.values():
        found |= {name for name, k in zip(system.measurement_names, system.weight_of_readings, strict=True) if k < 0}
    return np.array([name in found for name in samples.record.measurement_names], dtype=bool)
