"""What was found over many configurations, in words, once: how near to singular they are, and how exact outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.tables import number, unbroken
from nori_dyn.typing import Floats, Indices

NEARLY_SINGULAR = 1e-5
"""Smallest singular value, relative to the largest, below which a pose is called nearly singular."""

MARGIN = (
    "Margin: the smallest singular value of the equations, relative to the largest: from 1, far from losing one more "
    f"combination of the unknowns, to 0; below {number(NEARLY_SINGULAR, 1)} a pose is nearly singular."
)

MOST_UNITS = 2
"""Most units of which the output that is known least is named."""

NO_SIGMA = "No sensor has a sigma: with sigmas, the standard deviations of the outputs are shown here."


@dataclass(frozen=True, slots=True)
class DeviationLine:
    """The expected standard deviation of an output, in its unit.

    Attributes:
        output: its name.
        worst, median: over the configurations; the worst is infinite where it is not determined at some.
        pose: number of the worst configuration.
    """

    output: str
    worst: float
    median: float
    pose: int


@dataclass(frozen=True, slots=True)
class DeviationTable:
    """The deviations of the outputs of one unit.

    Attributes:
        unit: their unit.
        lines: those that are determined at most configurations, the largest first.
        exact: outputs that are known exactly.
        undetermined: outputs that are not determined at most configurations.
    """

    unit: str
    lines: tuple[DeviationLine, ...]
    exact: tuple[str, ...]
    undetermined: tuple[str, ...]


def tabulate_deviations(found: Conditioning) -> tuple[DeviationTable, ...]:
    """The deviations of the outputs, unit by unit; none where no sensor has a sigma."""
    medians, worsts = found.median_sigma, found.worst_sigma
    if found.sigma is None or medians is None or worsts is None:
        return ()
    poses = found.sigma.argmax(axis=0)
    tables = []
    for unit in dict.fromkeys(found.units):
        own = [k for k, its_unit in enumerate(found.units) if its_unit == unit]
        own.sort(key=lambda k: (-worsts[k], -medians[k]))
        tables.append(
            DeviationTable(
                unit=unit,
                lines=tuple(
                    DeviationLine(found.outputs[k], float(worsts[k]), float(medians[k]), int(poses[k]))
                    for k in own
                    if worsts[k] > 0.0 and np.isfinite(medians[k])
                ),
                exact=tuple(found.outputs[k] for k in own if worsts[k] == 0.0),
                undetermined=tuple(found.outputs[k] for k in own if np.isinf(medians[k])),
            )
        )
    return tuple(tables)


def format_deviation(value: float, unit: str = "") -> str:
    """A deviation as text."""
    return f"{number(value, 2)} {unit}".strip() if np.isfinite(value) else "not determined"


def describe_worst(found: Conditioning) -> str:
    """The outputs that are known least, at the worst pose and at the median; "" where no sensor has a sigma."""
    N = len(found.ranks)
    words = []
    for table in tabulate_deviations(found):
        if table.lines:
            line = table.lines[0]
            at_worst = f"{format_deviation(line.worst, table.unit)} at the worst of {N:,} poses (no. {line.pose})"
            words.append(
                f"{unbroken(line.output)}, {at_worst}, {format_deviation(line.median, table.unit)} at the median"
            )
    return f"Least precise: {'; '.join(words[:MOST_UNITS])} (expected standard deviations)." if words else ""


def describe_margins(poses: str, ranks: Indices, smallest: Floats, rank: int, n_variables: int) -> str:
    """In words at how many poses something is not determined, and how near to that the others are.

    Args:
        poses: what they are.
        ranks: the rank at each (N,).
        smallest: the smallest relative singular value that counts at each (N,).
        rank: that at almost every pose.
        n_variables: full rank.
    """
    N = len(ranks)
    if rank < n_variables:
        n = int(np.sum(ranks < rank))
        further = f"{count_or_none(n)} {'leaves' if n == 1 else 'leave'} more undetermined"
        return f"At each of {N:,} {poses} something is not determined, as at almost every pose; {further}."
    margin = np.where(ranks < n_variables, 0.0, smallest)
    short, nearly = int(np.sum(margin == 0.0)), int(np.sum((margin > 0.0) & (margin < NEARLY_SINGULAR)))
    worst, median = number(margin.min(), 1), number(np.median(margin), 1)
    return (
        f"Of {N:,} {poses}, {count_or_none(short)} {'leaves' if short == 1 else 'leave'} something undetermined and "
        f"{count_or_none(nearly)} {'is' if nearly == 1 else 'are'} nearly singular. The margin is {worst} at the worst "
        f"(no. {int(margin.argmin())}) and {median} at the median."
    )


def count_or_none(n: int) -> str:
    """A number, or "none"."""
    return f"{n:,}" if n else "none"
