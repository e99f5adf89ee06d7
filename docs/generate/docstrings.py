"""How docstrings are read for the site: their examples as code that was typed, their angle brackets as they stand."""

from __future__ import annotations

import re

import griffe

TAG = re.compile(r"<(?=/?[a-z])")


class Docstrings(griffe.Extension):
    """Prepares each docstring before it is taken apart, and leaves out bases that say nothing to users."""

    def on_class_instance(self, *, cls: griffe.Class, **kwargs: object) -> None:
        """Leave out what only makes a class print as a table."""
        cls.bases = [base for base in cls.bases if str(base) != "Shown"]

    def on_instance(self, *, obj: griffe.Object, **kwargs: object) -> None:
        """Turn "Example:", which would be prose, into the section of examples."""
        if obj.docstring is not None:
            obj.docstring.value = prepared(obj.docstring.value)


def prepared(text: str) -> str:
    """Return a docstring whose examples make a section, and whose prose has no tags."""
    prose, mark, example = text.partition("Example:\n")
    lines = [line if line.startswith("    ") else TAG.sub("&lt;", line) for line in prose.splitlines(keepends=True)]
    return "".join(lines) + mark.replace("Example:", "Examples:") + example
