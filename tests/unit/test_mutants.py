"""Faults that are put into the code: of every kind, one at a time, and nowhere but in what is evaluated."""

from tests.mutants.drawn import drawn
from tests.mutants.sites import sites

SOURCE = '''
"""Not here: 1 + 1."""
C = """
int f(int n) {
    int s = 0;
    for (int i = 0; i < n; ++i) s = s + i; /* a * b */
    int t = s;
    return t;
    ;
}
"""

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
        "C": {"<": "<=", "+": "-"},
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


def test_they_are_drawn_in_every_room_each_of_another_place():
    mutants = drawn(110, seed=3)
    assert len(mutants) == len({(mutant.path, mutant.site.start) for mutant in mutants})
    assert len({mutant.room for mutant in mutants}) == 24
    assert all(mutant.site.changes(mutant.path.read_text()) for mutant in mutants)
