"""How a log is run: `RunOptions`, and what users say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.filtering.false_alarms import Alarms
from nori_dyn.filtering.hypotheses import Hypotheses
from nori_dyn.filtering.smoother import STRETCH
from nori_dyn.logs.motion.differentiation import Differentiate, Differentiator, differentiator
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.model.surface import Surface
from nori_dyn.solve.solver import Singular
from nori_dyn.system.inputs import Missing

RECOGNISE = "recognise"
"""In place of the contacts that are closed: which these are is found out."""

How: TypeAlias = Literal["auto", "filter", "smooth"]
"""By which readings a sample is estimated: its own, or where sensors have memory all up to it; all up to it; all."""

Unseen: TypeAlias = Literal["keep", "refuse"]
"""What to do with memory that no reading tells anything of: keep what was known at first, or refuse the log."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a log is run.

    Attributes:
        differentiation: how to make joint accelerations that the log lacks; None refuses a log without them.
        dt: time between samples [s], to compare q with qd, and to find gaps; that of the log's times when None.
        missing: as for `Solver.solve_batch`; "drop" also leaves samples out whose q or qd is not a number.
        singular: as for `Solver.solve_batch`.
        monitor: whether readings are judged as well; of estimates over time those of a filter, see `History.diagnosis`.
        backend: as for `Plan.solver`.
        closed: for a plan set, the contacts that are closed throughout; None takes them from the log.
        hypotheses: how contacts are recognised, of sensors with memory; None where they are given.
        how: see `How`.
        unseen: see `Unseen`.
        alarms: when collisions count as seen, by a filter whose contacts are given; None where nothing is watched.
        surfaces: of links that may be touched, see `nd.tools.surfaces`: where on them they are is found out as well.
        chunk: samples that a filter or a smoother works on at once.

    Raises:
        InputError: no sample is worked on at once.
        UnknownNameError: there is no such way to treat what no reading tells.
    """

    differentiation: Differentiator | None = None
    dt: float | None = None
    missing: Missing = "refuse"
    singular: Singular = "refuse"
    monitor: bool = False
    backend: str = "auto"
    closed: ContactState | None = None
    hypotheses: Hypotheses | None = None
    how: How = "auto"
    unseen: Unseen = "keep"
    alarms: Alarms | None = None
    surfaces: Mapping[str, Surface] | None = field(default=None, repr=False)
    chunk: int = STRETCH

    def __post_init__(self) -> None:
        if self.chunk < 1:
            raise InputError(f"chunk is {self.chunk}: at least one sample is worked on at once.")
        if self.unseen not in get_args(Unseen):
            raise UnknownNameError("way to treat what no reading tells", self.unseen, get_args(Unseen))


def options_of(
    differentiate: Differentiate = "auto", dt: float | None = None, contacts: Any = None, **others: Any
) -> RunOptions:
    """How a log is run, from what users say."""
    hypotheses = contacts if isinstance(contacts, Hypotheses) else Hypotheses() if contacts == RECOGNISE else None
    closed = None if contacts is None or hypotheses is not None else tuple(contacts)
    made = differentiator(differentiate, dt)
    return RunOptions(differentiation=made, dt=dt, closed=closed, hypotheses=hypotheses, **others)
