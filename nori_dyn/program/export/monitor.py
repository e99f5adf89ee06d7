"""The C of a monitor: what the outputs of a plan are worth, and whether its readings fit together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.export.header import member
from nori_dyn.program.export.interface import Enumeration, Interface, enumeration
from nori_dyn.program.export.names import comment_text
from nori_dyn.program.export.routine import Routine, routine
from nori_dyn.program.export.text import rendered, table
from nori_dyn.program.monitoring import CRITICAL, DRIFT, FLOOR, ROUNDING, SCALE, Judged
from nori_dyn.program.program import Program


class CMonitor:
    """The monitor of a plan as C: a header and a file.

    Attributes:
        routine: what judges a state.
        header: the header.
        readings: the enum of the weighed readings.
        shapes: the shape of each number or array that it writes, by its field.

    Raises:
        PlanError: no row is weighed, or the equations of motion are.
    """

    def __init__(self, plan: EliminationPlan, interface: Interface) -> None:
        judged = Judged.of(plan)
        m, name = len(judged.readings), interface.name
        self.readings: Enumeration = enumeration(interface, "READING", judged.readings, "Weighed readings.")
        deviations = {f"sigma_{field.name}": field for field in interface.fields}
        each = ("residuals", "spreads", "normalised")
        self.shapes = {
            **{field: of.shape for field, of in deviations.items()},
            **dict.fromkeys(each, (m,)),
            "chi_square": (),
            "p_value": (),
        }
        program = _program(judged, interface)
        n_deviations = len(program.outputs) - 2 * m
        values: dict[str, Any] = {"m": m, "freedom": m - judged.needed}
        once = routine(
            program,
            "check.c.jinja",
            interface,
            (f"{name}_monitor.c", f"{name}_check"),
            n_more=len(program.scalars) + n_deviations,
            judged=judged,
            n_deviations=n_deviations,
            sizes=[int(np.prod(field.part.shape)) for field in interface.fields],
            scale=SCALE,
            drift=DRIFT,
            floor=FLOOR,
            rounding=ROUNDING,
            critical=CRITICAL,
            **values,
        )
        self.routine: Routine = replace(once, cost=once.cost + once.cost)  # at two scales of the weights
        self.header = rendered(
            "monitor.h.jinja",
            it=interface,
            readings=self.readings,
            deviations="\n\n".join(
                member([f"Posterior standard deviations of {of.name}."], field, of.sizes)
                for field, of in deviations.items()
            ),
            table="\n".join(f"     *{line}" for line in _readings(judged)),
            counted=self.routine.counted,
            n_work=self.routine.n_work,
            **values,
        )


def _program(judged: Judged, interface: Interface) -> Program:
    """Return what the C is to compute: variances of the outputs, residuals, variances along the readings."""
    found, plan = judged.uncertainty, judged.plan
    variances = tuple(x for field in interface.fields for x in found.variances[field.part.slice])
    return Program(
        inputs=plan.symbolic.inputs,
        outputs=(*variances, *found.innovations, *found.explained),
        quaternions=tuple(part.start for part in plan.system.tree.quaternions),
        n_weights=len(plan.symbolic.weights),
        n_noise_weights=plan.system.n_noise_weights,
    )


def _readings(judged: Judged) -> Iterator[str]:
    yield from table((f"[{k}]", comment_text(name)) for k, name in enumerate(judged.readings))
