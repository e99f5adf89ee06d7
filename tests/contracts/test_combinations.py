"""What docs/combinations.md says of robots, estimates and ways to run them is what comes of them."""

import pytest

from tests.combinations import DOCUMENT, ESTIMATES, ROBOTS, WAYS, cells, page_of, rows, table_in
from tests.compilers import needs_compiler


@needs_compiler
@pytest.mark.parametrize(("row", "ways"), rows().items(), ids=map("-".join, rows()))
def test_what_goes_together_is_what_the_page_says(row, ways):
    """And where it is "yes", numbers are those of an oracle."""
    said = table_in(DOCUMENT.read_text()).get(row, {})
    assert cells(*row, ways) == {way: said.get(way) for way in ways}, "write it anew: python -m tests.combinations"


def test_the_page_has_no_hole_and_nothing_else():
    page = DOCUMENT.read_text()
    table = table_in(page)
    assert len(table) == len(ROBOTS) * len(ESTIMATES)
    assert all(list(row) == list(WAYS) for row in table.values())
    assert page == page_of(table), "write it anew: python -m tests.combinations"
