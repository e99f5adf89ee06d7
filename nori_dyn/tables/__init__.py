"""Tables, and lines of text around them: what `print` shows of an object, a notebook, and the command line.

A class that is `Shown` does not know how: a function of `nori_dyn.report.shows` makes its `Document`, of which text and
HTML are made. Names are never broken: where a table is too wide, sentences in it are wrapped, and then its columns
folded.
"""

from nori_dyn.tables.document import Bullets, Cell, Document, Facts, Paragraph, Part, Shown, Table, attributes
from nori_dyn.tables.words import WIDTH, characters, describe_sum, listed, number, numbers, spaced, unbroken, wrapped

__all__ = [
    "WIDTH",
    "Bullets",
    "Cell",
    "Document",
    "Facts",
    "Paragraph",
    "Part",
    "Shown",
    "Table",
    "attributes",
    "characters",
    "describe_sum",
    "listed",
    "number",
    "numbers",
    "spaced",
    "unbroken",
    "wrapped",
]
