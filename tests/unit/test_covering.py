"""What tests rely on: covering arrays, faults put into the code, least squares in extended precision."""

import shutil
from collections import Counter
from itertools import combinations, product

import pytest

from tests import covering
from tests.mutants.drawn import drawn
from tests.mutants.sites import sites, sites_of_c


@pytest.mark.parametrize(
    ("sizes", "strength"), [([6, 3, 3], 2), ([23, 10, 5], 2), ([2, 3, 4, 5], 3), ([7, 2], 1), ([4], 2)]
)
def test_each_combination_comes_at_least_once(sizes, strength):
    rows = covering.covering_array(sizes, strength)
    for columns in combinations(range(len(sizes)), min(strength, len(sizes))):
        found = {tuple(row[column] for column in columns) for row in rows}
        assert found == set(product(*(range(sizes[column]) for column in columns)))


def test_it_is_little_larger_than_the_two_largest_sizes_multiplied():
    assert 230 <= len(covering.covering_array([23, 10, 5], 2)) <= 280
    assert len(covering.covering_array([34, 3, 3], 1)) <= 36


def test_the_whole_product_where_all_is_asked_for(monkeypatch):
    axes = {"letter": {"a": 1, "b": 2, "c": 3}, "number": [4, 5], "sign": [-1, 1]}
    assert 6 <= len(covering.covering(**axes).args[1]) < 12
    monkeypatch.setattr(covering, "ALL", True)
    names, cases = covering.covering(**axes).args
    assert names == ("letter", "number", "sign")
    assert len(cases) == 12
    assert (cases[0].id, cases[0].values) == ("a-4--1", (1, 4, -1))


SOURCE = '''
"""Not here: 1 + 1."""
def f(a: "1 - 1", b, *c):
    if a is None:
        raise ValueError(f"{a + 1}")
    if a < b and not c:
        return -a[1]
    return g(a, b) if c else range(b) + 2.0 * True
'''


def test_changes_are_of_every_kind_and_each_is_one():
    found: dict[str, dict[str, str]] = {}
    for site in sites(SOURCE):
        found.setdefault(site.kind, {})[SOURCE[site.start : site.end]] = site.text
    assert found == {
        "guard left out": {"a is None": "False", "a < b and not c": "False"},
        "bound": {"is": "is not", "<": "<=", "b": "b - 1"},
        "logic": {"and": "or", "not c": "c", "c": "not (c)"},
        "sign": {"-a[1]": "a[1]"},
        "index": {"1": "2"},
        "swapped arguments": {"a, b": "b, a"},
        "operator": {"+": "-", "*": "/"},
        "constant": {"2.0": "4.0", "True": "False"},
    }
    assert all(site.changes(SOURCE) for site in sites(SOURCE))
    of_c = "/* a < b */\n#define N (a + b)\nint f(int a) { return a < b ? a + 1 : -a; }\n"
    assert [(of_c[one.start : one.end], one.text, one.line) for one in sites_of_c(of_c)] == [
        ("<", "<=", 3),
        ("+", "-", 3),
    ]


def test_they_are_drawn_in_every_room_each_of_another_place(tmp_path, monkeypatch):
    for name in ("nori_dyn/tables", "nori_dyn/program/c", "nori_dyn/solve"):
        shutil.copytree(name, tmp_path / name)
    shutil.copy("nori_dyn/errors.py", tmp_path / "nori_dyn")
    monkeypatch.chdir(tmp_path)
    mutants = drawn(60, seed=3)
    assert len(mutants) == len({(mutant.path, mutant.site.start) for mutant in mutants})
    rooms = Counter(mutant.room for mutant in mutants)
    assert rooms.keys() == {"(root)", "C", "solve", "tables"}
    assert 4 <= rooms["tables"] < rooms["solve"]
    assert all(mutant.site.changes(mutant.path.read_text()) for mutant in mutants)
