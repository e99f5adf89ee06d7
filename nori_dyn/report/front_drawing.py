"""The drawing of a Pareto front on a page: the least deviation for each cost, a step at each set of sensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nori_dyn.placement.pareto import ParetoFront, ParetoPoint
from nori_dyn.report.curves import SIZE, Scale, ticks
from nori_dyn.tables import number

WIDTH, HEIGHT = 560, 300
"""Size of what the axes enclose, in units of the drawing."""


@dataclass(frozen=True, slots=True)
class DrawnPoint:
    """A set of sensors: where it is, what it is, and whether it is proven."""

    x: float
    y: float
    title: str
    mark: str


@dataclass(frozen=True, slots=True)
class FrontDrawing:
    """A Pareto front as it is drawn.

    Attributes:
        path: of the steps.
        points: the sets.
        xs, ys: labels of the axes, and where they are.
        unit: of deviations.
        summary: what it shows, in words.
    """

    path: str
    points: tuple[DrawnPoint, ...]
    xs: tuple[tuple[str, float], ...]
    ys: tuple[tuple[str, float], ...]
    unit: str
    summary: str

    width: int = WIDTH
    height: int = HEIGHT

    @staticmethod
    def of(front: ParetoFront) -> FrontDrawing:
        """The drawing of a front."""
        costs, deviations = np.array([(point.cost, point.deviation) for point in front.points]).T
        across, up = Scale.around(costs.min(), costs.max()), Scale.around(0.0, deviations.max())
        x = WIDTH * (costs - across.low) / (across.high - across.low)
        y = HEIGHT * up.at(deviations) / SIZE
        steps = "".join(f"H{a:.1f}V{b:.1f}" for a, b in zip(x[1:], y[1:], strict=True))
        labels = ticks(across.low, across.high, 5)
        points = zip(x.tolist(), y.tolist(), front.points, strict=True)
        return FrontDrawing(
            path=f"M{x[0]:.1f} {y[0]:.1f}{steps}",
            points=tuple(
                DrawnPoint(a, b, _title(p, front.unit), "chosen" if p.is_optimal else "") for a, b, p in points
            ),
            xs=tuple((text, WIDTH * (at - across.low) / (across.high - across.low)) for text, at in labels),
            ys=tuple((text, HEIGHT * share) for text, share in up.ticks()),
            unit=front.unit,
            summary=f"{len(costs)} sets: {'; '.join(_title(point, front.unit) for point in front.points)}",
        )


def _title(point: ParetoPoint, unit: str) -> str:
    n = len(point.chosen)
    return f"{n} {'sensor' if n == 1 else 'sensors'} for {point.cost:,g}: {number(point.deviation)} {unit}".rstrip()
