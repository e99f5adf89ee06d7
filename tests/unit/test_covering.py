"""What tests rely on: covering arrays."""

from itertools import combinations, product

import pytest

from tests import covering


@pytest.mark.parametrize(
    ("sizes", "strength"), [([6, 3, 3], 2), ([23, 10, 5], 2), ([2, 3, 4, 5], 3), ([7, 2], 1), ([4], 2)]
)
def test_each_combination_comes_at_least_once(sizes, strength):
    rows = covering.covering_array(sizes, strength)
    for columns in combinations(range(len(sizes)), min(strength, len(sizes))):
        found = {tuple(row[column] for column in columns) for row in rows}
        assert found == set(product(*(range(sizes[column]) for column in columns)))


def test_the_whole_product_where_all_is_asked_for(monkeypatch):
    axes = {"letter": {"a": 1, "b": 2, "c": 3}, "number": [4, 5], "sign": [-1, 1]}
    assert 6 <= len(covering.covering(**axes).args[1]) < 12
    monkeypatch.setattr(covering, "ALL", True)
    names, cases = covering.covering(**axes).args
    assert names == ("letter", "number", "sign")
    assert len(cases) == 12
    assert (cases[0].id, cases[0].values) == ("a-4--1", (1, 4, -1))
