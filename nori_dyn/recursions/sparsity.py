"""Branch-induced sparsity of the joint-space inertia matrix: its zeros by the tree, and the operations saved.

Source: RBDA ch. 6.4, 6.5.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.model.paths import ancestors
from nori_dyn.model.tree import WORLD, KinematicTree
from nori_dyn.typing import Booleans


def expanded_parents(tree: KinematicTree) -> tuple[int, ...]:
    """The parent of each freedom (nv), WORLD for a first one: joints of several freedoms become chains.

    A freedom beyond fixed joints hangs on the last one before these.

    Source: RBDA table 6.4.
    """
    parents: list[int] = []
    last: list[int] = []  # the last freedom on the way to each body
    for i, (parent, v) in enumerate(zip(tree.parents, tree.v_slices, strict=True)):
        before = WORLD if tree.is_root(i) else last[parent]
        freedoms = range(v.start, v.stop)
        parents.extend([before, *freedoms[:-1]][: len(freedoms)])
        last.append(freedoms[-1] if freedoms else before)
    return tuple(parents)


def parents_among(parents: Sequence[int], freedoms: Sequence[int]) -> tuple[int, ...]:
    """The parents that some freedoms, in order, have among themselves: the next on the way to the world.

    A matrix of this sparsity has, in their rows and columns, that of the parents returned.
    """
    place = {k: m for m, k in enumerate(freedoms)}
    return tuple(next((place[i] for i in ancestors(parents, k) if i in place), WORLD) for k in freedoms)


def checked_parents(parents: Sequence[int]) -> tuple[int, ...]:
    """Parents as a tuple.

    Raises:
        InputError: a number that is no earlier one and not WORLD: the parents are not those of a tree.
    """
    if not isinstance(parents, Sequence | np.ndarray):
        raise InputError(
            f"parents is {parents!r}: expected the number of each freedom's parent, {WORLD} for the world."
        )
    for k, parent in enumerate(parents):
        if isinstance(parent, bool) or not isinstance(parent, int | np.integer) or not WORLD <= parent < k:
            raise InputError(
                f"parents[{k}] is {parent!r}: expected the number of an earlier freedom, less than {k}, "
                f"or {WORLD} for the world."
            )
    return tuple(map(int, parents))


def inertia_pattern(parents: Sequence[int]) -> Booleans:
    """Where a matrix (n, n) of this sparsity may be nonzero: on the paths to the world. Source: RBDA (6.14)."""
    parents = checked_parents(parents)
    pattern = np.eye(len(parents), dtype=bool)
    for k in range(len(parents)):
        for i in ancestors(parents, k):
            pattern[k, i] = pattern[i, k] = True
    return pattern


def depth_sums(parents: Sequence[int]) -> tuple[int, int]:
    """D_1 and D_2, by which the costs of the factorisations and products are counted: RBDA table 6.6.

    With d_k freedoms on the path from k to the world, D_1 is the sum of d_k - 1, the number of nonzeros below the
    diagonal, and D_2 that of d_k (d_k - 1) / 2.
    """
    parents = checked_parents(parents)
    above = [sum(1 for _ in ancestors(parents, k)) for k in range(len(parents))]
    return sum(above), sum(d * (d + 1) // 2 for d in above)
