"""What the data sets have in common where a robot's parameters are identified from its log: `nd.identify`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import nori_dyn as nd
from benchmarks.real.finding import Figure, Finding

SENSORS = "identification"
"""The shipped set of sensors of an arm: accelerations and torques of its joints."""


def with_friction(tree: nd.KinematicTree, width: float, presliding: dict[str, float] | None = None) -> nd.System:
    """An arm with its sensors, and friction that changes its sign over a width of velocity [rad/s].

    Args:
        tree: the arm.
        width: the width.
        presliding: how joints move before they slide; None where they slide at once.
    """
    friction = nd.components.Friction.model_validate({"joints": "all", "width": width, "presliding": presliding})
    return nd.System(tree.replace(components=(friction,)), SENSORS)


def judged(
    data: str,
    estimated: str,
    against: str,
    components: Sequence[str],
    found: nd.results.Identification,
    unit: str = "N m",
) -> Finding:
    """How far readings that were held out are from what parameters found without them make of the motion."""
    fits = found.fits
    nan = float("nan")
    return Finding(
        data,
        estimated,
        against,
        tuple(components),
        (unit,) * len(components),
        tuple(nan if fit.held_out is None else fit.held_out for fit in fits),
        (nan,) * len(fits),
        tuple(fit.spread for fit in fits),
        tuple(fit.correlation for fit in fits),
    )


def combination(data: str, what: str, found: nd.results.Identification, name: str) -> Figure:
    """What was found of a combination of parameters, beside what the model says."""
    (one,) = (each for each in found.combinations if each.name == name)
    return Figure(data, what, one.value, one.unit, one.before, one.deviation)


def identified_combinations(data: str, found: nd.results.Identification) -> Iterator[Figure]:
    """Yield the combinations that the log identifies."""
    for each in found.combinations:
        if each.is_identified:
            yield Figure(data, f"`{each.name}`", each.value, each.unit, each.before, each.deviation)
