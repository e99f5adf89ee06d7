"""What is learned over time, in words, once: text, JSON and the page lay it out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nori_dyn.model.joints import Free
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.learned import Learned, Sum
from nori_dyn.observe.learned_exact import MotionRequirement
from nori_dyn.observe.null_space import SHOWN, list_names
from nori_dyn.tables import Bullets, describe_sum, listed, unbroken

NAMED = 6
"""Most variables of one fate that are named."""

MANY = 6
"""Numbers of a kind above which it is named instead of them, where they are all seen alike."""

FATES = 12
"""Most kinds of what becomes of what persists that are listed."""

LISTED = 6
"""Most combinations that are listed."""

TERMS = 4
"""Most terms of a sum that are shown."""


def memory_words(found: Learned, n_variables: int) -> str:
    """How much of the memory is learned, and what follows, in some sentences."""
    return " ".join(_words(found, n_variables))


def memory_lists(found: Learned) -> Iterator[Bullets]:
    """Yield what becomes of which numbers, and the combinations that are observable where their terms are not."""
    yield Bullets(tuple(_lines(found)), "The memory, and what determines it:", FATES)
    if found.sums:
        sums = tuple(_describe_sum(each, found) for each in found.sums)
        yield Bullets(sums, "Combinations that are determined where their terms are not:", LISTED)


def _describe_sum(each: Sum, found: Learned) -> str:
    """A combination with its factors, or by its names only where these depend on the poses."""
    need = next((need for need in found.needs.each if next(iter(each.terms)) in need.names), None)
    words = "" if need is None else f": {describe_need(need, found.needs.moving)}"
    if all(each.terms.values()):
        return f"{describe_sum(each.terms, TERMS)}{words}"
    return f"{listed(each.terms, TERMS)}, with factors that depend on the poses{words}"


def _poses(found: Learned, n: int) -> str:
    """Over how many poses, or instants where what persists does not stay."""
    one = "pose" if found.stays else "instant"
    return f"at one {one}" if n == 1 else f"over {n} {one}s"


def _words(found: Learned, n_variables: int) -> Iterator[str]:
    n, alone = len(found.names), sum(map(bool, found.seen_after))
    where = _poses(found, found.states)
    if found.is_learned:
        first = found.seen_after.count(1)
        some = f", {first:,} of them already {_poses(found, 1)}" if 0 < first < n else ""
        numbers = f"all {n:,} numbers of the memory" if n > 1 else "the one number of the memory"
        yield f"The sensors determine {numbers}, {where}{some}."
    elif not found.rank:
        numbers = f"the {n:,} numbers of the memory" if n > 1 else "the one number of the memory"
        yield f"The sensors tell nothing of {numbers}" + ("." if found.is_asked else ", however many poses there are.")
    else:
        parts = [f"{alone:,} alone"] if alone else []
        if found.sums:
            mixed = n - alone - len(found.untold)
            several, others = "s" if len(found.sums) > 1 else "", " others" if alone else ""
            parts.append(f"{len(found.sums):,} combination{several} of {mixed:,}{others}")
        rest = f", and nothing of {len(found.untold):,}" if found.untold else ""
        yield f"Of the {n:,} numbers of the memory the sensors determine {' and '.join(parts)}, {where}{rest}."
    if found.is_asked and not found.is_learned and (len(found.ranks) == 1 or found.ranks[-1] > found.ranks[-2]):
        yield f"More {'poses' if found.stays else 'instants'} may tell more."
    enough = found.needs.all
    if enough is not None and len(found.needs.each) > 1:
        yield f"It suffices that {_move(enough.enough)}, {_poses(found, enough.after)}."
    missing, at_first = len(found.undetermined), len(found.undetermined_at_first)
    if missing:
        yield f"Even then {missing:,} of all {n_variables:,} unknowns do not follow without a prior."
    elif at_first:
        yield f"Once they are known all {n_variables:,} unknowns follow from the readings, at almost every pose."


def _lines(found: Learned) -> Iterator[str]:
    """Yield those of one fate together: "offset:l_leg_ft (mz): over 2 poses, only if l_knee moves"."""
    of_number = {name: need for need in found.needs.each for name in need.names}
    mixed = {name for each in found.sums for name in each.terms}
    groups: dict[tuple[str, str], list[str]] = {}
    for name, after in zip(found.names, found.seen_after, strict=True):
        seen = _poses(found, after) if after else "only in combinations" if name in mixed else "never"
        words = ""
        if after and name in of_number:
            need = of_number[name]
            words = describe_need(need, found.needs.moving)
            words += f" ({_poses(found, need.after)} if nothing else moves)" if need.after > after else ""
        groups.setdefault((seen, words), []).append(name)
    for (seen, needs), names in groups.items():
        yield f"{listed(_by_variable(found, names), NAMED)}: {', '.join(filter(None, (seen, needs)))}"


def describe_need(need: MotionRequirement, moving: Sequence[str]) -> str:
    """The motion required, in words: "only if l_knee moves".

    Args:
        need: what has to.
        moving: the joints that change what is observable.
    """
    if need.by_time:
        return "as time passes, even at rest"
    if need.any_of and len(need.any_of) == len(moving):
        return f"only if {moving[0]} moves" if len(moving) == 1 else "only if some joint moves"
    if need.any_of:
        names = need.any_of
        one = list_names(names) if len(names) == 1 else f"one of {list_names(names)}"
        return f"only if {one} moves" if need.is_only else f"if {one} moves, for example"
    if need.is_only:
        return f"only if {_move(need.all_of)}"
    others = [name for name in need.enough if name not in need.all_of]
    if not need.all_of:
        return f"if {_move(others)}, for example"
    return f"only if {_move(need.all_of)}; {list_names([*need.all_of, *others])} suffice, for example"


def _move(names: Sequence[str]) -> str:
    """That joints move: "l_hip and l_knee move"."""
    return f"{list_names(names, most=None)} move{'s' if len(names) == 1 else ''}"


def _by_variable(found: Learned, names: Iterable[str]) -> Iterator[str]:
    """Yield numbers by their variables: "fx:hand (mx, my)", or "fx:hand" for all of it; many of a kind as one."""
    wanted = set(names)
    kinds: dict[str, list[str]] = {}
    for each in found.memory:
        kinds.setdefault(each.variable.kind, []).extend(each.variable.component_names)
    whole = [kind for kind, own in kinds.items() if len(own) > MANY and wanted.issuperset(own)]
    for each in found.memory:
        v = each.variable
        own = [c for c, name in zip(v.components, v.component_names, strict=True) if name in wanted]
        if v.kind in whole:
            if v.component_names[0] == kinds[v.kind][0]:
                yield f"{v.kind} (all {len(kinds[v.kind]):,})"
        elif len(own) == len(v.components):
            yield v.name
        elif own:
            yield f"{v.name} ({', '.join(own)})"


def memory_notes(found: Learned, tree: KinematicTree) -> Iterator[str]:
    """Yield what else is to be known of it."""
    yield "Priors and initial sigmas are left out: only the sensors count."
    after = dict(zip(found.names, found.seen_after, strict=True))
    uncertain = [each for each in found.memory if not all(after[name] for name in each.variable.component_names)]
    unsaid = [each.variable.name for each in uncertain if each.sigma is None]
    if len(uncertain) > len(unsaid):
        yield "What the sensors do not determine keeps its initial uncertainty."
    if unsaid:
        verb = "have" if len(unsaid) > 1 else "has"
        yield f"{listed(unsaid, SHOWN)} {verb} no initial sigma: a filter needs one."
    if found.needs.each:
        yield "How well the memory is determined depends on how far apart the poses are."
    walking = [name for each in found.memory if any(each.walk) for name in each.variable.component_names]
    if walking:
        names = listed(_by_variable(found, walking), SHOWN)
        yield f"These drift by their random walk: {names}. What is learned of them fades and is learned again."
    pushes = [each.variable for each in found.memory if each.variable.kind == "fx"]
    if pushes:
        one = "External wrenches persist in the coordinates of their links"
        if len(pushes) == 1:
            one = f"{unbroken(pushes[0].name)} persists in the coordinates of its link"
        yield f"{one}. The weight of a payload does not, as it turns with the link: nd.identify identifies loads."
    bases = {tree.joint_names[i] for i, joint in enumerate(tree.joints) if tree.is_root(i) and isinstance(joint, Free)}
    if found.error is None:
        yield "Ranks are numerical, at closed configurations; which joints must move is not determined."
    elif found.needs.moving and bases and bases.isdisjoint(found.needs.moving):
        yield "Moving or turning the base alone adds nothing: the masses are known, and gravity with them."
