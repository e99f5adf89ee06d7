"""The cases in which choices have to determine the outputs: at almost every pose, or at one, in a contact state.

With A any choices, t the number of independent outputs that they leave open and r_s the rank that a choice s adds to
them, every set that suffices obeys

    sum over s not in A of min(r_s, t) x_s >= t,

since together with A it has rank t more than A. A set that suffices whichever k of it fail obeys that of each A without
those that fail, and so with t + k min r_s to the right: what fails takes at least that from the sum.

Source: Wolsey (1982), An analysis of the greedy algorithm for the submodular set covering problem, for the
inequalities; own derivation for outputs that are a part of d, and for sensors that fail
(tests/unit/placement/test_selection.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nori_dyn.errors import InputError, named_contacts
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.model.tree import NamedFrame
from nori_dyn.observe.field import Span, Vector
from nori_dyn.observe.numeric import Reduction, checked_configurations
from nori_dyn.observe.poses import POSES, configurations_where
from nori_dyn.observe.redundancy import Readings, readings, readings_at
from nori_dyn.observe.report import LOOKS, Frames
from nori_dyn.placement.candidates import Choices
from nori_dyn.typing import Floats

Where: TypeAlias = Mapping[str, Frames | Floats | None] | Floats | str | None
"""Poses by what they are called, frames of special ones or configurations (N, nq); the latter, or a name, alone."""


@dataclass(frozen=True, slots=True)
class Inequality:
    """What sets that suffice obey: a sum over their choices is at least so much.

    Attributes:
        coefficients: by choice; 0 where it is not given.
        least: what the sum over the choices of a set is at least.
    """

    coefficients: Mapping[str, float]
    least: float

    def is_broken(self, chosen: Iterable[str]) -> bool:
        """Whether some choices break it."""
        return sum(self.coefficients.get(name, 0) for name in chosen) < self.least


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A pose, or almost all of them, in a contact state.

    Attributes:
        words: where it is: " at at_zero, no. 0, with l_foot closed"; "" for almost every pose of what has no contacts.
        rows: by choice its rows, modulo what is known without any.
        outputs: by name the row of each number that is asked for, modulo the same.
        targets: independent rows that span them.
        survive: any so many of the choices may fail.
    """

    words: str
    rows: Mapping[str, tuple[Vector, ...]]
    outputs: Mapping[str, Vector]
    targets: tuple[Vector, ...]
    survive: int

    @staticmethod
    def of(words: str, found: Readings, names: Iterable[str], survive: int) -> Case:
        """The case in which choices, by their names, read so."""
        rows = {name: found.sensors.get(name, ()) for name in names}
        targets = tuple(Span.of(found.outputs.values()).basis.values())
        return Case(words, rows, found.outputs, targets, survive)

    def outcome(self, chosen: Iterable[str]) -> Rank:
        """What some choices determine."""
        return Rank(self, Span.of(row for name in chosen for row in self.rows[name]))

    def failing(self, chosen: Sequence[str]) -> tuple[str, ...] | None:
        """Choices without which the others of some leave outputs open; None where any may fail that are to."""
        for some in [(), *itertools.combinations(chosen, min(self.survive, len(chosen)))]:
            if self.outcome(name for name in chosen if name not in some).missing:
                return some
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Rank:
    """What some choices determine in a case.

    Attributes:
        case: the case.
        span: of their rows.
    """

    case: Case
    span: Span

    @property
    def missing(self) -> int:
        """How many independent outputs they leave open."""
        return Span.of(map(self.span.remainder, self.case.targets)).dimension

    @property
    def suffices(self) -> bool:
        """Whether they determine the outputs."""
        return not self.missing

    @property
    def open(self) -> list[str]:
        """The outputs that they do not determine."""
        return [name for name, row in self.case.outputs.items() if self.span.remainder(row)]

    def beside(self, name: str) -> Rank:
        """What they determine together with a further one."""
        larger = self.span.copy()
        larger.extend(self.case.rows[name])
        return Rank(self.case, larger)

    def settled_by(self, names: Iterable[str]) -> list[str]:
        """Those of some choices that determine by themselves what is open."""
        missing = [left for row in self.case.targets if (left := self.span.remainder(row))]
        adding = {name: Span.of(map(self.span.remainder, self.case.rows[name])) for name in names}
        return [name for name, rows in adding.items() if not any(map(rows.remainder, missing))]

    def gain(self, name: str) -> int:
        """The rank that a choice adds."""
        return Span.of(map(self.span.remainder, self.case.rows[name])).dimension

    def next(self, allowed: Iterable[str], costs: Mapping[str, float]) -> str | None:
        """The choice of least cost for each output that it settles; where none settles one, for each rank.

        A choice settles no more outputs than it adds ranks, so those of less promise than the best are not looked at.
        """
        missing = self.missing
        gains = {name: gain for name in allowed if (gain := self.gain(name))}
        promising = sorted(gains, key=lambda name: (costs[name] / gains[name], name))
        best: tuple[float, str] | None = None
        for name in promising:
            if best is not None and best[0] <= costs[name] / gains[name]:
                break
            settled = missing - self.beside(name).missing
            if settled and (best is None or costs[name] / settled < best[0]):
                best = costs[name] / settled, name
        return best[1] if best is not None else next(iter(promising), None)

    def inequality(self, names: Iterable[str] | None = None) -> Inequality:
        """What every set that suffices obeys, of all choices or some, if none fails."""
        missing = self.missing
        gains = {name: min(self.gain(name), missing) for name in (self.case.rows if names is None else names)}
        return Inequality({name: gain for name, gain in gains.items() if gain}, missing)

    def inequalities(self, failed: Sequence[str]) -> Iterator[Inequality]:
        """Yield what every set that suffices obeys whichever choices fail, and where some did, without these."""
        found = self.inequality()
        terms = found.coefficients
        yield Inequality(terms, found.least + self.case.survive * min(terms.values(), default=0))
        if failed:
            yield Inequality({name: gain for name, gain in terms.items() if name not in failed}, found.least)


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """Where choices have to suffice, and what may fail.

    Attributes:
        survive: any so many of them may fail.
        at: configurations (n, nq), beside almost all, by what they are called.
        states: contact states; none where there are no contacts.
    """

    survive: int
    at: Mapping[str, Floats]
    states: tuple[ContactState, ...]

    @staticmethod
    def of(choices: Choices, survive: int, where: Where, seed: int) -> Demand:
        """What is asked for, as `nori_dyn.place` takes it.

        Raises:
            InputError: fewer than no failures; configurations of the wrong shape, or not finite, or none.
            UnknownPoseError: frames of what is no special pose.
            UnknownModelNameError: no such frame.
            NoConfigurationError: a pose that the robot cannot be in.
            NotClosedError: loops that cannot be closed.
        """
        if not isinstance(survive, int) or survive < 0:
            raise InputError(f"survive is {survive!r}: how many of the sensors may fail is 0 or more.")
        tree = choices.system.tree
        found: dict[str, Floats] = {}
        named = {where: None} if isinstance(where, str) else {} if where is None else {"the poses given": where}
        for name, given in (where if isinstance(where, Mapping) else named).items():
            poses = (given,) if isinstance(given, str) else given
            frames = [each for each in poses if isinstance(each, str | NamedFrame)] if poses is not None else []
            if frames or poses is None or (name in POSES and not len(poses)):
                called = ", ".join(frame if isinstance(frame, str) else frame.name for frame in frames)
                label = f"{name} of {called}" if called else name
                found[label] = np.unique(configurations_where(tree, name, frames, LOOKS, seed), axis=0)
            else:
                found[name] = checked_configurations(poses, tree.nq)
                if not len(found[name]):
                    raise InputError(f"where: '{name}' has no configurations. Give some, or leave it out.")
        states = choices.offered if choices.candidates.present.contacts else ()
        return Demand(survive, found, tuple(offered.state for offered in states))

    @property
    def configurations(self) -> Floats | None:
        """All configurations (N, nq) that are asked for; None where there are none."""
        return np.concatenate([*self.at.values()]) if self.at else None


def cases_of(choices: Choices, outputs: Sequence[str] | None, demand: Demand, seed: int) -> list[Case]:
    """The cases of a robot in each contact state: almost every pose, and those that are asked for.

    Raises:
        UnknownOutputError: an output that does not exist.
    """
    found = []
    for offered in choices.offered:
        closed = f", with {named_contacts(offered.state)} closed" if demand.states else ""
        looks = [
            (f" at almost every pose{closed}" if closed else "", readings(offered.system, outputs, offered.rows, seed))
        ]
        reduction = Reduction(offered.system, seed) if demand.at else None
        for name, Q in demand.at.items():
            assert reduction is not None
            at_each = enumerate(readings_at(reduction, Q, outputs, offered.rows))
            looks += [(f" at {name}, no. {k}{closed}", each) for k, each in at_each]
        found += [Case.of(words, each, choices.sensors, demand.survive) for words, each in looks]
    return found
