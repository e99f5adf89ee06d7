"""Paths from a body to the world, in any tree given by its parents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nori_dyn.model.tree import WORLD


def path(parents: Sequence[int], i: int) -> Iterator[int]:
    """Yield i and all on its way to the world, itself first."""
    while i != WORLD:
        yield i
        i = parents[i]


def ancestors(parents: Sequence[int], i: int) -> Iterator[int]:
    """Yield all on the way from i to the world, its parent first."""
    return path(parents, parents[i])


def descendants(parents: Sequence[int]) -> list[list[int]]:
    """For each, all that it carries, itself left out, the last first."""
    found: list[list[int]] = [[] for _ in parents]
    for j in reversed(range(len(parents))):
        for k in ancestors(parents, j):
            found[k].append(j)
    return found


def common_ancestor(parents: Sequence[int], i: int, j: int) -> int:
    """The last body that carries both i and j, each of which carries itself; the world where there is none."""
    carry_j = {WORLD, *path(parents, j)}
    return next((k for k in path(parents, i) if k in carry_j), WORLD)
