"""What friction leaves open, by what identified parameters leave of torques: `Identification.with_stiction`.

Of viscous friction it is known how it differs from log to log, as temperature has it: in each the residual r says by
how much, W r / W W with its column W. What is left of r is scatter about the law.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from nori_dyn.components.friction import Stiction
from nori_dyn.identification.evidence import Evidence
from nori_dyn.identification.fits import ReadingFit
from nori_dyn.identification.moments import LEAST
from nori_dyn.identification.problem import IdentificationProblem
from nori_dyn.typing import Floats

LEAST_LEFT = 1e-9
"""Share of the residual that drift leaves at the least."""


def stictions(
    problem: IdentificationProblem,
    row_names: Sequence[str],
    fits: Sequence[ReadingFit],
    logs: Sequence[Evidence],
    values: Floats,
    are_others: bool,
) -> Iterator[tuple[str, Stiction | None]]:
    """Yield what the friction of each joint whose torque is read leaves open, None if nothing, by the reading's name.

    Args:
        problem: the parameters.
        row_names: the names of the rows.
        fits: how well each reading is explained.
        logs: evidence by which it is judged.
        values: the free parameters (n,) by which it is.
        are_others: whether none of these logs is one from which parameters were found.
    """
    columns = [problem.parameters.names[k] for k in problem.columns]
    place, all_values = problem.parameters.place, problem.whole(values)
    for fit in fits:
        kind, _, joint = fit.name.partition(":")
        if kind != "tau":
            continue
        row, viscous, drift = row_names.index(fit.name), f"viscous:{joint}", 0.0
        moving = [log for log in logs if log.rows[row].n > LEAST]
        scatter = fit.after if fit.held_out is None else fit.held_out
        law = all_values[place[viscous]] if viscous in columns else 0.0
        if law > 0 and len(moving) > (0 if are_others else 1):
            column = columns.index(viscous)
            shifts, information = np.array([log.shift_of(row, column, values) for log in moving]).T
            squares = float(shifts**2 @ information)
            part = squares / sum(log.rows[row].n for log in moving)
            scatter = math.sqrt(max(scatter**2 - part, (LEAST_LEFT * scatter) ** 2))
            biased = 1.0 if are_others else 1 - 1 / len(moving)
            drift = math.sqrt(squares / float(np.sum(information)) / biased) / law
        yield fit.name, Stiction(scatter=scatter, ripple=fit.ripple, drift=drift) if scatter else None
