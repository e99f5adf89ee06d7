"""What has to move so that sensors tell of what persists: found by holding joints where they are.

Source: docs/observability.md; own derivation (tests/unit/observe/test_learned.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nori_dyn.observe.field import Vector
from nori_dyn.observe.learned_exact import ExactlyTold, FieldStates
from nori_dyn.observe.persisting import Persisting, until_nothing_new


@dataclass(frozen=True, slots=True)
class MotionRequirement:
    """What has to move so that numbers are seen that a single state does not show.

    Attributes:
        names: the numbers, or the combinations by their first.
        by_time: whether they are seen while nothing moves, as time passes.
        all_of: joints each of which has to move.
        any_of: where there are none, or that one does: joints any one of which suffices.
        is_only: whether they are not seen where all of these stay.
        enough: a set of joints that suffices, none of which can be left out.
        after: after how many states, at the most, where nothing but `enough` moves, or one of `any_of`.
    """

    names: tuple[str, ...]
    by_time: bool = False
    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    is_only: bool = False
    enough: tuple[str, ...] = ()
    after: int = 0


@dataclass(frozen=True, slots=True)
class MotionRequirements:
    """What has to move for what a single state does not show.

    Attributes:
        each: for what has the same needs together.
        all: for all of it, a set of joints that suffices; None where nothing has to.
        moving: the joints that change what a single state shows; empty where that shows all there is.
    """

    each: tuple[MotionRequirement, ...] = ()
    all: MotionRequirement | None = None
    moving: tuple[str, ...] = ()


def needs(
    of_field: FieldStates, persisting: Persisting, told: Sequence[ExactlyTold], states: int | None
) -> MotionRequirements:
    """The motion required for what a single state does not determine.

    Args:
        of_field: random states.
        persisting: what persists.
        told: what is told after each of some states.
        states: how many states there are; None for as many as add anything.
    """
    wanted = _wanted(persisting, told)
    if not wanted:
        return MotionRequirements()
    search = _RequirementSearch(of_field, persisting, wanted, states, told[-1].rank)
    return MotionRequirements(tuple(search.needs()), search.for_all(), search.named(search.moving))


def _wanted(persisting: Persisting, told: Sequence[ExactlyTold]) -> dict[str, Vector]:
    """Combinations determined in the end and not by a single state, by the name of their first number.

    Combinations of what does not stay are not the same at each state: only numbers that are told by themselves count.
    """
    return {
        persisting.numbers[pivot].name: vector
        for pivot, vector in sorted(told[-1].span.basis.items())
        if (persisting.stays or len(vector) == 1) and not told[0].tells(vector)
    }


class _RequirementSearch:
    """Looks for what has to move.

    Args:
        of_field: random states.
        persisting: what persists.
        wanted: what is to be told, by its name.
        states: how many states there are; None for as many as add anything.
        rank: how many combinations are told where everything moves.
    """

    def __init__(
        self,
        of_field: FieldStates,
        persisting: Persisting,
        wanted: Mapping[str, Vector],
        states: int | None,
        rank: int,
    ) -> None:
        self._of_field, self._wanted, self._states, self._rank = of_field, wanted, states, rank
        self._tree = persisting.system.tree
        self._bodies = {name: v.variable.body for v in persisting.memory for name in v.variable.component_names}
        self._known: dict[frozenset[int], dict[str, int]] = {}
        self.moving = frozenset(of_field.moving())

    def named(self, bodies: Iterable[int]) -> tuple[str, ...]:
        """The names of the joints of some bodies."""
        return tuple(self._tree.joint_names[i] for i in sorted(bodies))

    def needs(self) -> Iterator[MotionRequirement]:
        """Yield what has to move, for all that needs the same together."""
        by_time = self._seen(())
        if by_time:
            yield MotionRequirement(self._ordered(by_time), by_time=True, after=max(by_time.values()))
        left = self._wanted.keys() - by_time
        alone = {i: self._seen([i]).keys() & left for i in self.moving} if left else {}
        any_of = {name: frozenset(i for i in alone if name in alone[i]) for name in left}
        open_ = {name for name in left if len(any_of[name]) < 2}
        without = {i: open_ - self._seen(self.moving - {i}).keys() for i in self.moving} if open_ else {}
        groups: dict[tuple[frozenset[int], frozenset[int]], list[str]] = {}
        for name in self._ordered(left):
            all_of = frozenset(i for i in without if name in without[i])
            groups.setdefault((all_of, any_of[name]), []).append(name)
        for (all_of, one_of), names in groups.items():
            yield self._need(names, all_of, one_of)

    def for_all(self) -> MotionRequirement | None:
        """A set of joints that suffices for all of it; None where nothing has to move."""
        names = tuple(self._wanted)
        if self._shows((), names):
            return None
        enough = self._enough(names)
        return MotionRequirement(names, enough=self.named(enough), after=self._after([enough], names))

    def _need(self, names: Sequence[str], all_of: frozenset[int], any_of: frozenset[int]) -> MotionRequirement:
        """The motion required for numbers whose necessary joints, and those that suffice alone, are known."""
        if all_of and self._shows(all_of, names):
            joints = self.named(all_of)
            return MotionRequirement(
                tuple(names), all_of=joints, is_only=True, enough=joints, after=self._after([all_of], names)
            )
        if any_of:
            is_only = self._seen(self.moving - any_of).keys().isdisjoint(names)
            after, joints = self._after([frozenset([i]) for i in any_of], names), self.named(any_of)
            return MotionRequirement(tuple(names), any_of=joints, is_only=is_only, enough=joints[:1], after=after)
        enough = self._enough(names)
        after = self._after([enough], names)
        return MotionRequirement(tuple(names), all_of=self.named(all_of), enough=self.named(enough), after=after)

    def _shows(self, bodies: Iterable[int], names: Iterable[str]) -> bool:
        """Whether some are told where only the joints of some bodies move."""
        return self._seen(bodies).keys() >= set(names)

    def _after(self, alternatives: Iterable[frozenset[int]], names: Iterable[str]) -> int:
        """After how many states some are told where only the joints of some bodies move, whichever these are."""
        return max(self._seen(bodies)[name] for bodies in alternatives for name in names)

    def _enough(self, names: Sequence[str]) -> frozenset[int]:
        """Joints that suffice, none of which can be left out: those far away are left out first."""
        near = self._bodies[names[0]]
        enough = self.moving
        for i in sorted(self.moving, key=lambda i: self._distance(i, near), reverse=True):
            if self._shows(enough - {i}, names):
                enough -= {i}
        return enough

    def _distance(self, i: int, k: int) -> int:
        """How many joints lie between two bodies."""
        return len(self._ancestors(i) ^ self._ancestors(k))

    def _ancestors(self, i: int) -> set[int]:
        found = {i}
        while not self._tree.is_root(i):
            i = self._tree.parents[i]
            found.add(i)
        return found

    def _seen(self, bodies: Iterable[int]) -> Mapping[str, int]:
        """After how many states what is told where only the joints of some bodies move is told."""
        key = frozenset(bodies)
        if key not in self._known:
            told = until_nothing_new(self._of_field.told(sorted(key)), self._states, self._rank)
            first: dict[str, int] = {}
            for k, each in enumerate(told, start=1):
                first |= {name: k for name, v in self._wanted.items() if name not in first and each.tells(v)}
            self._known[key] = first
        return self._known[key]

    def _ordered(self, names: Collection[str]) -> tuple[str, ...]:
        return tuple(name for name in self._wanted if name in names)
