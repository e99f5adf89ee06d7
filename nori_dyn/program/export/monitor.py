"""The C of a monitor: what the outputs of a plan are worth, and whether its readings fit together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.c_writer import Writer
from nori_dyn.program.export.header import member
from nori_dyn.program.export.interface import Enumeration, Interface, enumeration
from nori_dyn.program.export.names import comment_text
from nori_dyn.program.export.routine import Routine, notation, routine, statements
from nori_dyn.program.export.text import rendered, table
from nori_dyn.program.job import Job
from nori_dyn.program.monitoring import CRITICAL, DRIFT, FLOOR, ROUNDING, SCALE, Judged


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
        job, weights = _job(judged, interface), 4 * len(interface.tree.quaternions)
        explained = weights + interface.inputs.n_weights
        before = explained + m
        n_deviations = len(job.outputs) - 2 * m
        places = [f"out->sigma_{place}" for field in interface.fields for place in field.places]
        places += [f"out->residuals[{k}]" for k in range(m)] + [f"w[{explained + k}]" for k in range(m)]
        own = notation(interface, 0, places, "diagnosis")
        n = interface.inputs.n_weights
        given = [*own.inputs[:-n], *(f"w[{weights + k}]" for k in range(n))]
        writer = Writer(job, replace(own, inputs=given), before + n_deviations)
        values = {"m": m, "freedom": m - judged.needed}
        text = rendered(
            "check.c.jinja",
            file=f"{name}_monitor.c",
            judged=judged,
            weights=weights,
            explained=explained,
            before=before,
            n_deviations=n_deviations,
            sizes=[int(np.prod(field.part.shape)) for field in interface.fields],
            scale=SCALE,
            drift=DRIFT,
            floor=FLOOR,
            rounding=ROUNDING,
            critical=CRITICAL,
            **values,
            **statements(writer, interface, 0),
        )
        once = routine(writer, f"{name}_monitor.c", f"{name}_check", text)
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
            n_work=max(1, writer.n_work),
            **values,
        )


def _job(judged: Judged, interface: Interface) -> Job:
    """Return what the C is to compute: variances of the outputs, residuals, variances along the readings."""
    found, program = judged.uncertainty, judged.plan.symbolic
    inputs = tuple(x for scalars in program.inputs.values() for x in scalars)
    variances = tuple(x for field in interface.fields for x in found.variances[field.part.slice])
    return Job(program.graph, inputs, (*variances, *found.innovations, *found.explained), (), ())


def _readings(judged: Judged) -> Iterator[str]:
    yield from table((f"[{k}]", comment_text(name)) for k, name in enumerate(judged.readings))
