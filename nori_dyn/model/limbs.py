"""Isomorphic limbs: parts of a robot that hang on one link, and have the same joints in the same places.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeAlias

from nori_dyn.model.tree import KinematicTree

Limbs: TypeAlias = Sequence[Sequence[Sequence[int]]]
"""For each group of isomorphic limbs, for each of its limbs, numbers that correspond, place by place."""


def isomorphic_limbs(tree: KinematicTree) -> Limbs:
    """Return the links of isomorphic limbs: groups of them, of which none is part of another.

    Example:
        >>> isomorphic_limbs(nd.autotree(5, branching=2.0))
        (((1, 3, 4), ...
    """
    children: dict[int, list[int]] = {}
    for link, parent in enumerate(tree.parents):
        children.setdefault(int(parent), []).append(link)
    shapes: dict[int, tuple[Hashable, ...]] = {}
    for link in reversed(range(tree.n_links)):
        joint = tree.joints[link]
        below = sorted((shapes[child] for child in children.get(link, ())), key=repr)
        shapes[link] = type(joint).__name__, joint.nq, joint.nv, tuple(below)

    def links_of(link: int) -> list[int]:
        found = [link]
        for child in sorted(children.get(link, ()), key=lambda child: repr(shapes[child])):
            found += links_of(child)
        return found

    groups = []
    waiting = [-1]
    while waiting:
        alike: dict[tuple[Hashable, ...], list[int]] = {}
        for child in children.get(waiting.pop(), ()):
            alike.setdefault(shapes[child], []).append(child)
        for roots in alike.values():
            if len(roots) > 1:
                groups.append(tuple(tuple(links_of(root)) for root in roots))
            else:
                waiting += roots
    return tuple(groups)


def corresponding(limbs: Limbs, labelled: Iterable[tuple[int, int, Hashable]]) -> Limbs:
    """Return for limbs, instead of their links, numbers of something else that belong to these.

    Args:
        limbs: links of isomorphic limbs.
        labelled: for each number its link, and what it is there; of those that are the same there, the first of a link
            corresponds to the first of another.
    """
    by_link: dict[int, dict[Hashable, int]] = {}
    for number, link, what in labelled:
        known = by_link.setdefault(link, {})
        count = 0
        while (what, count) in known:
            count += 1
        known[what, count] = number
    groups = []
    for group in limbs:
        found: list[list[int]] = [[] for _ in group]
        for links in zip(*group, strict=True):
            of_links = [by_link.get(link, {}) for link in links]
            for what in of_links[0]:
                if all(what in known for known in of_links):
                    for limb, known in zip(found, of_links, strict=True):
                        limb.append(known[what])
        groups.append(tuple(map(tuple, found)))
    return tuple(groups)
