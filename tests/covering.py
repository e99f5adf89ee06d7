"""Cases of a test with several parameters: each pair of their values at least once, instead of the product.

Most faults depend on one parameter or on two; the product stays for `pytest --all`.

Source: Kuhn, Wallace and Gallo, "Software fault interactions and implications for software testing", IEEE Transactions
on Software Engineering 30(6), 2004.
"""

import random
from collections.abc import Iterable, Mapping
from itertools import combinations, product
from typing import Any

import pytest

ALL = False
"""Whether tests run on whole products; `conftest` sets it from `--all`."""


def covering(strength: int = 2, **axes: Mapping[str, Any] | Iterable[Any]) -> pytest.MarkDecorator:
    """The parameters of a test.

    Args:
        strength: of how many parameters each combination of values comes at least once: 1, 2, ...
        **axes: the values of each parameter; a mapping has their names in addition.
    """
    named = [list(axis.items()) if isinstance(axis, Mapping) else [(None, x) for x in axis] for axis in axes.values()]
    sizes = [len(axis) for axis in named]
    cases = []
    for places in chosen(sizes, strength):
        names, values = zip(*(axis[place] for axis, place in zip(named, places, strict=True)), strict=True)
        words = [str(value) if name is None else name for name, value in zip(names, values, strict=True)]
        cases.append(pytest.param(*values, id="-".join(words)))
    return pytest.mark.parametrize(tuple(axes), cases)


def chosen(sizes: list[int], strength: int = 2) -> Iterable[tuple[int, ...]]:
    """Rows of numbers below sizes: the whole product with `--all`, else those that cover."""
    return product(*map(range, sizes)) if ALL else covering_array(sizes, strength)


def covering_array(sizes: list[int], strength: int) -> list[tuple[int, ...]]:
    """Rows of numbers below sizes that hold each combination of so many columns: greedily, always the same."""
    rows = list(product(*map(range, sizes)))
    groups = list(combinations(range(len(sizes)), min(strength, len(sizes))))
    random.Random(0).shuffle(rows)
    missing = {(group, part) for group in groups for part in product(*(range(sizes[column]) for column in group))}
    chosen = []
    for least in range(len(groups), 0, -1):
        left = []
        for row in rows:
            parts = {(group, tuple(row[column] for column in group)) for group in groups} & missing
            if len(parts) >= least:
                chosen.append(row)
                missing -= parts
            else:
                left.append(row)
        rows = left
    return sorted(chosen)
