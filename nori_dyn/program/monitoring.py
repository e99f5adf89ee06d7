"""The test of estimates and readings, as expressions of a plan: `Monitor` compiles it, an export writes it.

Source: docs/design.md, 5.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nori_dyn.algebra.arrays import DOUBLE
from nori_dyn.errors import PlanError
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.uncertainty import Uncertainty, uncertainty
from nori_dyn.program.compiler import load_library, needed_compiler
from nori_dyn.program.kernel.base import Batches
from nori_dyn.program.kernel.batches import BatchEntry, batches, pool
from nori_dyn.program.kernel.native import interface
from nori_dyn.program.layout import output_parts, sums_of
from nori_dyn.program.track_source import defined, listed_tables
from nori_dyn.system.variables import component_names
from nori_dyn.typing import Indices

ROUNDING = 1e-9
"""What rounding may change of the number of readings that an estimate needs, as their shares in it add up to that."""

SCALE = 1.0471975511965976
"""Weights that are this many times as large give variances that are this many times as small, but for rounding, which
is another then: their difference is the effect of rounding. No power of 2, which would round the same."""

DRIFT = 1e-7
"""Largest such difference, as a share of the largest variance of an output; it is a few times too small at times."""

FLOOR = 1e-12
"""Share of the largest variance of all outputs below which one counts as zero."""

CRITICAL = 1e-8
"""Share of its variance below which a reading counts as one that nothing else checks: its residual is rounding."""

LEAST = 16
"""States that a thread judges at a time, at least."""


@dataclass(frozen=True, eq=False)
class MonitoredReadings:
    """The weighed readings of a plan, and the constants of their test.

    Attributes:
        plan: the plan.
        readings: names of the weighed readings (m).
        sensors: the sensor of each (m).
        weight_of: the weight of each (m,).
        needed: number of readings that the estimate needs.
        directions: each number of the outputs as a sum of unknowns, factors by column.
    """

    plan: EliminationPlan
    readings: tuple[str, ...]
    sensors: tuple[str, ...]
    weight_of: Indices
    needed: int
    directions: tuple[Mapping[int, float], ...]

    @staticmethod
    def of(plan: EliminationPlan) -> MonitoredReadings:
        """The weighed readings of a plan.

        Raises:
            PlanError: no row is weighed, or the equations of motion are.
        """
        system = plan.system
        if not system.is_weighted:
            raise PlanError(
                f"sensors '{system.sensors.name}' hold exactly: there is nothing to judge them by. Give a `sigma` to "
                "those that may be off, and more of them than needed."
            )
        weighed = [row for row in system.rows if not row.is_exact]
        noisy = [row.name for row in weighed if row.is_dynamic]
        if noisy:
            raise PlanError(
                f"'{noisy[0]}' has a sigma: readings are judged where the equations of motion hold exactly."
            )
        readings = tuple(n for row in weighed for n in component_names(row.name, row.equation.components))
        return MonitoredReadings(
            plan,
            readings,
            tuple(row.name for row in weighed for _ in row.equation.components),
            system.weight_of_rows,
            system.shape[1] - (system.shape[0] - len(readings)),
            tuple(direction for output in plan.outputs for direction in sums_of(plan.system, output)),
        )

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """Variances of the outputs, variances along the readings, and residuals, over the expressions of the plan."""
        return uncertainty(self.plan, self.directions)

    @property
    def sizes(self) -> list[int]:
        """How many numbers each output has."""
        return [part.slice.stop - part.slice.start for part in output_parts(self.plan.system, self.plan.outputs)]

    def constants(self, fields: Sequence[int]) -> str:
        """C of the constants that c/judge.h wants.

        Args:
            fields: how many numbers each output has.
        """
        sizes = {
            "N_READINGS": len(self.readings),
            "N_DEVIATIONS": sum(fields),
            "N_FIELDS": len(fields),
            "N_NEEDED": self.needed,
            "SCALE": SCALE,
            "DRIFT": DRIFT,
            "FLOOR": FLOOR,
            "ROUNDING": ROUNDING,
            "CRITICAL": CRITICAL,
        }
        return defined(sizes) + listed_tables({"weight_of": self.weight_of, "fields": fields})

    @property
    def judging(self) -> str:
        """C of the judgement of batches, see c/judge_batch.h."""
        return self.constants(self.sizes) + '#include "judge_batch.h"\n'

    def judgement(self) -> Batches:
        """What judges batches, by `judging`.

        Raises:
            CompilerError: there is no C compiler, or it fails.
        """
        compiler, ffi = needed_compiler("a native monitor"), interface()
        n, m = sum(self.sizes), len(self.readings)
        library = load_library(ffi, self.judging, compiler)
        entry = BatchEntry(ffi, pool(ffi, compiler).run_call, library.run_batch, library.n_batch, LEAST)
        sizes = (self.plan.system.n_weights, n + 2 * m, n + 2 * m, n, m, m, 1)
        return batches(lambda: entry, np.zeros(1), False, sizes, 4, 0, DOUBLE)
