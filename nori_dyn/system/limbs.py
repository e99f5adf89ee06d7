"""Correspondence of rows and inputs of a system between isomorphic limbs.

Source: docs/design.md, 4.5 and 4.8.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np

from nori_dyn.algebra.ranges import numbers, width
from nori_dyn.model.kinematics import positions
from nori_dyn.model.limbs import Limbs, corresponding, isomorphic_limbs, isomorphism
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.rows import RowBlock
from nori_dyn.typing import Indices

Labelled: TypeAlias = Iterator[tuple[int, int, Hashable]]

Reads: TypeAlias = tuple[type, int, frozenset[tuple[str, int]]]
"""Key of a sensor's rows: its class, their number, and the kinds and bodies of the variables that they read."""


class RowsOfLimbs:
    """Finds for the rows of one limb those of the others.

    Rows of an equation of motion are known by its body, those of a sensor or component by the variables that they read.
    """

    def __init__(self, system: System) -> None:
        at = positions(system.tree, system.tree.neutral_configuration())
        self._n_links = system.tree.n_links
        self._motion: defaultdict[int, list[RowBlock]] = defaultdict(list)
        self._sensors: defaultdict[int, dict[Reads, None]] = defaultdict(dict)
        self._alike: defaultdict[Reads, list[RowBlock]] = defaultdict(list)
        for block in system.rows:
            if block.body is not None:
                self._motion[block.body].append(block)
                continue
            read = frozenset((key.kind, key.body) for key in block.equation.blocks(at))
            what = type(block.equation), width(block.slice), read
            self._alike[what].append(block)
            for _, body in read:
                self._sensors[body][what] = None

    def of(self, limbs: Sequence[Sequence[int]]) -> Iterator[tuple[RowBlock, ...] | None]:
        """Yield corresponding rows, a block for each limb; None for rows of the first that others do not have."""
        first = limbs[0]
        for bodies in zip(*limbs, strict=True):
            yield from zip(*(self._motion[body] for body in bodies), strict=True)
        for what in dict.fromkeys(what for body in first for what in self._sensors[body]):
            n = len(self._alike[what])
            images = [self._image(what, dict(zip((*first, *limb), (*limb, *first), strict=True))) for limb in limbs]
            yield from zip(*images, strict=True) if all(len(each) == n for each in images) else [None] * n

    def labels(self) -> list[tuple[object, ...]]:
        """What each body is read by: of each row block its class, its sizes, and the kinds of variables there."""
        found = list[tuple[object, ...]]()
        for body in range(self._n_links):
            read = [
                (kind.__qualname__, *map(width, (block.slice, block.y, block.weights)), *_kinds_of(body, reads))
                for kind, n, reads in self._sensors[body]
                for block in self._alike[kind, n, reads]
            ]
            found.append(tuple(sorted(read, key=repr)))
        return found

    def rows_in(self, other: RowsOfLimbs, bodies: Sequence[int]) -> Iterator[tuple[RowBlock, RowBlock]]:
        """Yield each block with that of another system that reads the bodies that correspond, if there is one."""
        for body, blocks in self._motion.items():
            yield from zip(blocks, other._motion[bodies[body]], strict=True)
        image = dict(enumerate(bodies))
        for what, blocks in self._alike.items():
            yield from zip(blocks, other._image(what, image), strict=False)

    def _image(self, what: Reads, swap: Mapping[int, int]) -> list[RowBlock]:
        """The rows that read the same where two limbs are exchanged."""
        kind, n, read = what
        return self._alike.get((kind, n, frozenset((name, swap.get(body, body)) for name, body in read)), [])


def _kinds_of(body: int, reads: frozenset[tuple[str, int]]) -> list[str]:
    return sorted(kind for kind, of in reads if of == body)


def correspondence(system: System, other: System) -> tuple[Indices, Indices] | None:
    """For each body (n_links) and each row (rows) of a system that of another one of the same robot.

    There is none where no exchange of isomorphic limbs makes the one of the other, up to the numbers in them.
    """
    mine, theirs = RowsOfLimbs(system), RowsOfLimbs(other)
    bodies = isomorphism(system.tree, mine.labels(), theirs.labels())
    if bodies is None:
        return None
    rows = np.full(system.shape[0], -1, dtype=np.intp)
    for block, image in mine.rows_in(theirs, bodies):
        rows[block.slice] = numbers(image.slice)
    return None if (rows < 0).any() else (np.array(bodies, dtype=np.intp), rows)  # rows that read several limbs


def corresponding_inputs(system: System) -> Limbs:
    """Corresponding indices of q, qd, y and weights, one after the other, limb by limb."""
    tree = system.tree
    limbs = isomorphic_limbs(tree)
    if not limbs:
        return ()
    rows, joints = RowsOfLimbs(system), chain(of_joints(tree, 0, "q"), of_joints(tree, tree.nq, "qd"))
    found = []
    for group, of_group in zip(limbs, corresponding(limbs, joints), strict=True):
        own = [list(places) for places in of_group]
        for blocks in filter(None, rows.of(group)):
            of_blocks = [_inputs_of(system, block) for block in blocks]
            if len(set(map(len, of_blocks))) == 1:
                for places, more in zip(own, of_blocks, strict=True):
                    places += more
        found.append(own)
    return found


def of_joints(tree: KinematicTree, first: int, what: str) -> Labelled:
    """Yield the indices in q, or in an array (nv,), from an offset on, each with its link and its role there."""
    for link, part in enumerate(tree.q_slices if what == "q" else tree.v_slices):
        for k in range(part.stop - part.start):
            yield first + part.start + k, link, (what, k)


def _inputs_of(system: System, block: RowBlock) -> list[int]:
    """The offsets of the readings and weights of some rows."""
    first_y = system.tree.nq + system.tree.nv
    first_weight = first_y + system.ny
    return [first_y + k for k in numbers(block.y)] + [first_weight + k for k in numbers(block.weights)]
