"""The mistakes of a first day print what tests/data/mistakes.md holds."""

from tests.mistakes import DOCUMENT, MISTAKES, document


def test_each_prints_what_is_kept():
    assert sum(map(len, MISTAKES.values())) >= 30
    assert DOCUMENT.read_text() == document(), "write it anew: python -m tests.mistakes"
