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
    columns, place = [problem.parameters.names[k] for k in problem.columns], problem.parameters.place
    for fit in fits:
        kind, _, joint = fit.name.partition(":")
        if kind != "tau":
            continue
        scatter, drift, viscous = fit.after if fit.held_out is None else fit.held_out, 0.0, f"viscous:{joint}"
        law = problem.whole(values)[place[viscous]] if viscous in columns else 0.0
        if law > 0 and (are_others or len(logs) > 1):
            row, column = row_names.index(fit.name), columns.index(viscous)
            shifts, information = np.array([log.shift_of(row, column, values) for log in logs]).T
            squares = float(shifts**2 @ information)
            part = squares / sum(log.rows[row].n for log in logs)
            scatter = math.sqrt(max(scatter**2 - part, (LEAST_LEFT * scatter) ** 2))
            own = 1.0 if are_others else len(logs) / (len(logs) - 1)
            drift = math.sqrt(own * squares / float(np.sum(information))) / law
        yield fit.name, Stiction(scatter=scatter, ripple=fit.ripple, drift=drift) if scatter else None
