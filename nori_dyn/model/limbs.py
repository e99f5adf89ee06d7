"""Isomorphic limbs: subtrees with the same joints at the same positions, equal or mirrored, whatever their numbers.

Two legs, four legs, two arms, the fingers of a hand. They are found as isomorphic rooted trees are: each
body gets a number that stands for all that hangs on it.

Source: Aho, Hopcroft, Ullman, The Design and Analysis of Computer Algorithms, ch. 3.2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nori_dyn.algebra.planar import is_signed_permutation
from nori_dyn.model.internal_frames import InternalLink, internal_links
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats

Limbs: TypeAlias = Sequence[Sequence[Sequence[int]]]
"""For each group of isomorphic limbs, for each of its limbs, corresponding numbers, item by item."""


@dataclass(frozen=True, slots=True)
class LimbGroup:
    """Isomorphic limbs on the same body.

    Attributes:
        limbs: the bodies of each limb, at least two limbs; those that correspond are at the same place. A parent comes
            before its children: the body at which a limb begins is the first.
    """

    limbs: tuple[tuple[int, ...], ...]


def limb_groups(tree: KinematicTree, by_geometry: bool = True) -> tuple[LimbGroup, ...]:
    """The groups of isomorphic limbs, those nearer to the root first.

    Limbs are isomorphic where joints are of the same kinds, where their axes, positions and fixed rotations, in the
    frames of the program, have zeros and units in the same components, and where the limbs on their bodies are
    isomorphic. Signs and other numbers may differ, inertias may be any. Isomorphic limbs within a limb of a group, such
    as the fingers of a hand, are a group of its own for the first limb only: that of the others corresponds to it.

    Args:
        tree: the robot.
        by_geometry: whether axes, positions and rotations count; otherwise only the kinds of joints do.
    """
    kinds = _kinds(tree, by_geometry, {}, [None] * tree.n_links)
    found: list[LimbGroup] = []
    siblings = [[i for i in range(tree.n_links) if tree.is_root(i)]]
    for brothers in siblings:
        alike: defaultdict[int, list[int]] = defaultdict(list)
        for i in brothers:
            alike[kinds[i]].append(i)
        groups = [limbs for limbs in alike.values() if len(limbs) > 1]
        found += [LimbGroup(tuple(_bodies(tree, i, kinds) for i in limbs)) for limbs in groups]
        siblings += [list(tree.children[first]) for first, *_ in alike.values()]
    return tuple(found)


def limb_to(tree: KinematicTree, tip: int) -> list[int]:
    """The bodies from a tip on, up to the root or to one that has other children as well: the tip first."""
    limb = [tip]
    while tree.parents[limb[-1]] > 0 and len(tree.children[tree.parents[limb[-1]]]) == 1:
        limb.append(tree.parents[limb[-1]])
    return limb


def isomorphic_limbs(tree: KinematicTree) -> Limbs:
    """The bodies of limbs with the same kinds of joints, group by group, without limbs within such limbs."""
    groups = [group.limbs for group in limb_groups(tree, by_geometry=False)]
    inner = {i for limbs in groups for limb in limbs for i in limb[1:]}
    return tuple(limbs for limbs in groups if limbs[0][0] not in inner)


def isomorphism(tree: KinematicTree, labels: Sequence[Hashable], others: Sequence[Hashable]) -> tuple[int, ...] | None:
    """The body to which each corresponds where limbs are exchanged, so that each label becomes the other (n_links).

    There is none where no exchange of isomorphic limbs does that. Bodies whose labels are the other already stay.

    Args:
        tree: the robot.
        labels: what distinguishes each body (n_links).
        others: what shall distinguish it (n_links).
    """
    numbers: dict[tuple[object, ...], int] = {}
    roots = [i for i in range(tree.n_links) if tree.is_root(i)]
    in_order: list[list[int]] = []
    kinds_in_order = []
    for each in (labels, others):
        kinds = _kinds(tree, True, numbers, each)
        ranked = sorted(roots, key=lambda i: (kinds[i], i))
        in_order.append([i for root in ranked for i in _bodies(tree, root, kinds)])
        kinds_in_order.append([kinds[i] for i in in_order[-1]])
    if kinds_in_order[0] != kinds_in_order[1]:
        return None
    image = dict(zip(*in_order, strict=True))
    return tuple(image[i] for i in range(tree.n_links))


def _bodies(tree: KinematicTree, root: int, kinds: Sequence[int]) -> tuple[int, ...]:
    """The bodies of a limb in an order that is the same for all limbs of its kind."""
    bodies, open_ = [], [root]
    while open_:
        i = open_.pop()
        bodies.append(i)
        open_ += sorted(tree.children[i], key=lambda child: (kinds[child], child), reverse=True)
    return tuple(bodies)


def _kinds(
    tree: KinematicTree, by_geometry: bool, numbers: dict[tuple[object, ...], int], labels: Sequence[Hashable]
) -> list[int]:
    """For each body, a number of all that hangs on it, itself included; new ones are added to the numbers."""
    kinds = [0] * tree.n_links
    for i, link in reversed(list(enumerate(internal_links(tree, regroup=False)))):
        below = sorted(kinds[child] for child in tree.children[i])
        own = _geometry(link) if by_geometry else (type(link.joint), link.joint.nq)
        kinds[i] = numbers.setdefault((labels[i], own, *below), len(numbers))
    return kinds


def _geometry(link: InternalLink) -> tuple[object, ...]:
    """A joint's type, axis and position up to signs and numbers."""
    turns = [E for E in link.rotations if not is_signed_permutation(E)]
    parts = (np.asarray(getattr(link.joint, "axis", ())), link.r, *turns)
    return type(link.joint), *(_zeros_and_units(part) for part in parts)


def _zeros_and_units(x: Floats) -> bytes:
    """Which components are 0, which 1 or -1, and which neither."""
    return bytes(np.where(x == 0, 0, np.where(np.abs(x) == 1, 1, 2)).astype(np.uint8))


def corresponding(limbs: Limbs, labelled: Iterable[tuple[int, int, Hashable]]) -> Limbs:
    """Corresponding indices of another quantity, given for each link of the limbs.

    Args:
        limbs: links of isomorphic limbs.
        labelled: for each number its link, and its role there; of those that are the same there, the first of a link
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
