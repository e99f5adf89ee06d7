"""What docs/mistakes.md says that mistakes print is what they print."""

from tests.mistakes import DOCUMENT, MISTAKES, document


def test_the_page_of_mistakes_is_what_they_print():
    assert sum(map(len, MISTAKES.values())) >= 30
    assert DOCUMENT.read_text() == document(), "write it anew: python -m tests.mistakes"
