"""The C of a monitor: the uncertainty of a plan's outputs, and a test of its readings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from nori_dyn.export.c_function import CFunction, c_function
from nori_dyn.export.interface import Enumeration, Interface
from nori_dyn.export.members import CMember, Element
from nori_dyn.export.names import comment_text
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.monitoring import MonitoredReadings
from nori_dyn.program.program import Program

UNCHECKED = "0 where nothing else checks the reading."
OF_READINGS = {
    "residuals": "What each weighed reading is off, reading less estimate.",
    "spreads": f"The standard deviation to expect of each residual of sound sensors; {UNCHECKED}",
    "normalised": f"Each residual over its spread, of variance 1 for sound sensors; {UNCHECKED}",
}
OF_ALL = {
    "chi_square": "The sum of the squared residuals, each times its weight.",
    "p_value": "The probability that sound sensors fit together as badly; 1 where nothing is redundant.",
}


@dataclass(frozen=True, slots=True, eq=False)
class CMonitor:
    """The monitor of a plan as C.

    Attributes:
        function: the test of a state.
        members: its outputs.
        readings: the enum of the weighed readings.
        freedom: the degrees of freedom of the chi-square.
    """

    function: CFunction
    members: tuple[CMember, ...]
    readings: Enumeration
    freedom: int

    @staticmethod
    def of(plan: EliminationPlan, interface: Interface) -> CMonitor:
        """The monitor of a plan.

        Raises:
            PlanError: no row is weighed, or the equations of motion are.
        """
        judged = MonitoredReadings.of(plan)
        found, freedom = judged.uncertainty, len(judged.readings) - judged.needed
        variances = [x for member in interface.asked if member.part for x in found.variances[member.part.slice]]
        program = Program(
            inputs=plan.symbolic.inputs,
            outputs=(*variances, *found.innovations, *found.explained),
            quaternions=tuple(part.start for part in plan.system.tree.quaternions),
            n_weights=len(plan.symbolic.weights),
            n_noise_weights=plan.system.n_noise_weights,
        )
        once = c_function(
            program,
            "check.c.jinja",
            interface,
            f"{interface.name}_monitor.c",
            f"{interface.name}_check",
            n_more=len(program.scalars) + len(variances),
            numbers=judged.constants([math.prod(member.shape) for member in interface.asked]),
        )
        members = [
            CMember(f"sigma_{of.name}", f"Posterior standard deviations of {of.name}.", (), of.sizes, of.shape)
            for of in interface.asked
        ]
        readings = [Element(name, (comment_text(name),)) for name in judged.readings]
        of_readings = [
            CMember.array(interface.NAME, name, about, "N_READINGS", readings) for name, about in OF_READINGS.items()
        ]
        members += of_readings[:1] + [replace(member, elements=()) for member in of_readings[1:]]
        members += [CMember(name, about) for name, about in OF_ALL.items()]
        return CMonitor(
            replace(once, cost=once.cost + once.cost),  # at two scales of the weights
            tuple(members),
            interface.enumeration("reading", judged.readings, "Weighed readings."),
            freedom,
        )
