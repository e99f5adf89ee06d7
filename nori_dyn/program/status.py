"""The outcome of a tick."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nori_dyn.errors import InputError, SingularSystemError
from nori_dyn.program.limits import RCOND_LIMIT
from nori_dyn.tables import Shown


@dataclass(frozen=True, slots=True)
class Status(Shown):
    """How a tick went.

    Attributes:
        ok: whether the outputs hold a solution; they hold nan when not.
        fell_back: whether the planned order was given up for a freshly pivoted factorisation.
        residual: as in `Estimate`; nan where it is not computed at every tick.
        rcond: one over the condition that a factorisation found, 1 where the planned order held; nan where the state
            has a number that is not finite, or a weight below zero.
        threshold: rcond below which the system counts as singular.
        cause: the pivot or check that tripped, with its value and its limit; empty where none did.

    Example:
        >>> solver = nd.plan(nd.System(nd.autotree(2), "forward_dynamics")).solver()
        >>> solver.inputs.q[1] = np.nan
        >>> status = solver.tick()
        >>> status.ok, status.cause
        (False, 'q[1] is nan')
    """

    ok: bool = True
    fell_back: bool = False
    residual: float = math.nan
    rcond: float = 1.0
    threshold: float = RCOND_LIMIT
    cause: str = ""

    def raise_for_status(self) -> None:
        """Raise the error of a failed tick, if it failed.

        Raises:
            InputError: a number of the state is not finite, or a weight is below zero.
            SingularSystemError: the system has no unique solution at this state.
        """
        if self.ok:
            return
        if math.isnan(self.rcond):
            raise InputError(f"the state cannot be solved: {self.cause}.")
        tripped = f" {self.cause[0].upper()}{self.cause[1:]}." if self.cause else ""
        raise SingularSystemError(
            f"the system is singular at this state: its rcond is {self.rcond:.2g}, below {self.threshold:.2g}."
            f"{tripped} `solve` names the undetermined variables."
        )
