"""From an order of the given system to one of the refined system: the positions of its massless frames."""

from __future__ import annotations

import numpy as np

from nori_dyn.algebra.ranges import numbers
from nori_dyn.planning.orderings.problem import Ordering
from nori_dyn.system.builder import System
from nori_dyn.system.massless_frames import Columns
from nori_dyn.system.refined import RefinedSystem
from nori_dyn.system.variables import Kind, VariableKey
from nori_dyn.typing import Indices

Key = tuple[float, int, int]


def lifted_classes(order: Ordering, system: System, refined: RefinedSystem, to_root: bool = False) -> Indices:
    """The class of each column of a refined system, for `greedy`: lower ones are eliminated first.

    The bodies keep their order. The massless frames of a joint are crossed from the end that is eliminated first to
    the other, just before that is: the terms of a body are then complete when they are carried on, and not carried
    further than needed. Accelerations and forces go in step where they go the same way. Where rows are weighed the
    bodies go from the leaves to the root, whatever the order: the information of a body's sensors is then a matrix of
    the size of its acceleration and force, of whose inverse only the diagonal is ever divided by.

    Args:
        order: an order of the original system.
        system: the system as given.
        refined: its refinement.
        to_root: whether bodies go from the leaves to the root, whatever the order, as where rows are weighed.
    """
    to_root = to_root or system.is_weighted
    place = np.empty(len(order.columns), dtype=np.intp)
    place[order.columns] = np.arange(len(order.columns))
    rank = {v.key: float(-v.body if to_root else place[v.slice].max()) for v in system.variables}
    keys: list[Key] = [(-1.0, 0, 0)] * refined.symbolic.shape[1]
    if to_root:
        keys = [(-float(body), 1, 0) for body in refined.symbolic.bodies]

    def put(columns: Columns, key: Key) -> None:
        for column in columns:
            keys[column] = key

    for v in system.variables:
        if v.kind not in ("a", "f"):
            put(tuple(numbers(v.slice)), (rank[v.key], 1, 0))
    for i, (a, f) in enumerate(zip(refined.a, refined.f, strict=True)):
        put(a, (rank[VariableKey("a", i)], 1, 0))
        put(f, (rank[VariableKey("f", i)], 1, 0))
    for crossing in refined.crossings:
        i, parent = crossing.body, system.tree.parents[crossing.body]
        kinds: tuple[Kind, ...] = ("a", "f")
        ends = {kind: (rank[VariableKey(kind, i)], rank[VariableKey(kind, parent)]) for kind in kinds}
        first = min(max(of_body, of_parent) for of_body, of_parent in ends.values())
        together = all(of_body < of_parent for of_body, of_parent in ends.values())
        for kind, frames in zip(kinds, (crossing.a, crossing.f), strict=True):
            of_body, of_parent = ends[kind]
            for distance, columns in enumerate(reversed(frames)):
                step = distance if of_body < of_parent else -distance
                put(columns, (first if together else max(of_body, of_parent), 0, step))
    for multiplier, unknown in refined.duals.items():
        keys[multiplier] = keys[unknown]
    ranks = {key: k for k, key in enumerate(sorted(set(keys)))}
    return np.array([ranks[key] for key in keys], dtype=np.intp)
