"""Which inputs of a system correspond in isomorphic limbs.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TypeAlias

from nori_dyn.algebra.ranges import numbers
from nori_dyn.model.kinematics import positions
from nori_dyn.model.limbs import Limbs, corresponding, isomorphic_limbs
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System

Labelled: TypeAlias = Iterator[tuple[int, int, Hashable]]


def corresponding_inputs(system: System) -> Limbs:
    """Return the places of what corresponds among q, qd, y and weights, one after the other, limb by limb."""
    limbs = isomorphic_limbs(system.tree)
    return corresponding(limbs, _labelled(system)) if limbs else ()


def of_joints(tree: KinematicTree, first: int, what: str) -> Labelled:
    """Yield the numbers of q or of an array (nv,) that begin at a place, with their links and what they are there."""
    for link, part in enumerate(tree.q_slices if what == "q" else tree.v_slices):
        for k in range(part.stop - part.start):
            yield first + part.start + k, link, (what, k)


def _labelled(system: System) -> Labelled:
    tree = system.tree
    yield from of_joints(tree, 0, "q")
    yield from of_joints(tree, tree.nq, "qd")
    first_y, at = tree.nq + tree.nv, positions(tree, tree.neutral_configuration())
    first_weight = first_y + system.ny
    for row in system.rows:
        if not row.equation.is_measured and row.is_exact:
            continue
        keys = sorted(row.equation.blocks(at), key=lambda key: (key.body, str(key.kind)))
        link = keys[-1].body
        kinds = tuple(str(key.kind) for key in keys)
        for name, places in (("y", row.y), ("weights", row.weights)):
            first = first_y if name == "y" else first_weight
            for k, place in enumerate(numbers(places)):
                yield first + place, link, (name, kinds, k)
