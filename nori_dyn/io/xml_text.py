"""Edits of an XML file that keep every other byte.

A parser of trees forgets quotes, line ends, and the white space within tags; so elements are found by their bytes here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from xml.parsers import expat

from nori_dyn.errors import FileFormatError
from nori_dyn.io.files import read_bytes
from nori_dyn.io.xml_file import read_xml

_ATTRIBUTE = re.compile(rb"""\s+([^\s=/>]+)\s*=\s*("[^"]*"|'[^']*')""")
_HEAD = re.compile(rb"""<[^\s/>]+(?:\s+[^\s=/>]+\s*=\s*(?:"[^"]*"|'[^']*'))*\s*/?>""")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")

LEVEL = "  "
"""What lines to add are indented by for each level."""

Lines: TypeAlias = Sequence[str]
"""Elements to add, line by line."""


@dataclass(eq=False, slots=True)
class XmlElement:
    """An element, and where it is in its file.

    Attributes:
        tag: its name, with the prefix that is printed.
        attributes: its attributes as the file has them.
        line: where it begins, from 1.
        start: its first byte.
        head_end: the byte after its start tag.
        tail: the first byte of its end tag; as `end` where it has none.
        end: the byte after it.
        children: the elements in it.
    """

    tag: str
    attributes: Mapping[str, str]
    line: int
    start: int
    head_end: int
    tail: int = 0
    end: int = 0
    children: list[XmlElement] = field(default_factory=list)

    def get(self, attribute: str) -> str | None:
        """An attribute, or None."""
        return self.attributes.get(attribute)

    def find(self, tag: str) -> XmlElement | None:
        """First child of a name, or None."""
        return next(iter(self.findall(tag)), None)

    def findall(self, *tags: str) -> list[XmlElement]:
        """Children of some names, in order."""
        return [child for child in self.children if child.tag in tags]

    def iter(self) -> Iterator[XmlElement]:
        """Yield this element and all in it, in the order of the file."""
        yield self
        for child in self.children:
            yield from child.iter()


class XmlText:
    """An XML file and the changes to it.

    Attributes:
        path: the file, for messages.
        content: its bytes.
        root: its root element.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read a file.

        Raises:
            FileFormatError: no such file, not XML, it declares entities, or its text is not made of single bytes.
        """
        read_xml(path)
        self.path = path
        self.content = read_bytes(os.fspath(path))
        if self.content.startswith(_UTF_16):
            raise FileFormatError(f"{path} is written in UTF-16. Save it as UTF-8 first.")
        self.root = self._parsed()
        self._edits: list[tuple[int, int, bytes]] = []

    def _parsed(self) -> XmlElement:
        parser = expat.ParserCreate()
        open_elements: list[XmlElement] = []
        roots: list[XmlElement] = []

        def start(tag: str, attributes: dict[str, str]) -> None:
            at = parser.CurrentByteIndex
            head = _HEAD.match(self.content, at)
            assert head is not None  # the parser took it
            element = XmlElement(tag, attributes, parser.CurrentLineNumber, at, head.end())
            (open_elements[-1].children if open_elements else roots).append(element)
            open_elements.append(element)

        def end(tag: str) -> None:
            element = open_elements.pop()
            if self.content[element.head_end - 2 : element.head_end] == b"/>":
                element.tail = element.end = element.head_end
            else:
                element.tail = parser.CurrentByteIndex
                element.end = self.content.index(b">", element.tail) + 1

        parser.StartElementHandler = start
        parser.EndElementHandler = end
        try:
            parser.Parse(self.content, True)
        except (expat.ExpatError, LookupError, ValueError) as error:
            raise FileFormatError(f"{self.path}: not XML that can be changed: {error}.") from None
        return roots[0]

    @property
    def is_changed(self) -> bool:
        """Whether there are changes."""
        return bool(self._edits)

    def changed(self) -> bytes:
        """Content of the file with its changes."""
        parts, at = [], 0
        for start, end, new in sorted(self._edits, key=lambda edit: edit[:2]):
            parts += [self.content[at:start], new]
            at = end
        return b"".join([*parts, self.content[at:]])

    def set(self, element: XmlElement, attribute: str, value: str) -> None:
        """Give an element an attribute, in the place where it has it, or after its others."""
        for found in self._heads(element):
            if found[1].decode() == attribute:
                start, end = found.span(2)
                self._edits.append((start + 1, end - 1, value.encode()))
                return
        at = element.start + len(self.content[element.start : element.head_end].rstrip(b"/>").rstrip())
        self._edits.append((at, at, f' {attribute}="{value}"'.encode()))

    def set_numbers(self, element: XmlElement, attribute: str, *values: float, default: float = 0.0) -> None:
        """Give an element numbers, as short as they can be read back; those that it has already are left as printed.

        Args:
            element: the element.
            attribute: its attribute.
            values: the numbers.
            default: what one that is not there is read as: nothing is added where all are that.
        """
        before = element.get(attribute)
        if before is None and all(value == default for value in values):
            return
        if before is None or _numbers(before) != [*values]:
            self.set(element, attribute, numbers(*values))

    def unset(self, element: XmlElement, attribute: str) -> None:
        """Take an attribute from an element, if it has it."""
        for found in self._heads(element):
            if found[1].decode() == attribute:
                self._edits.append((*found.span(), b""))

    def set_text(self, element: XmlElement, text: str) -> None:
        """Give an element of no children a text, with the white space around the one that it has."""
        inner = self.content[element.head_end : element.tail]
        start = element.head_end + len(inner) - len(inner.lstrip())
        self._edits.append((start, start + len(inner.strip()), text.encode()))

    def remove(self, element: XmlElement) -> None:
        """Take an element out, with its lines where nothing else is in them."""
        start, end = element.start, element.end
        line = self._indent(element)
        after = re.compile(rb"[ \t]*(?=\r?\n)").match(self.content, end)
        if line is not None and after is not None:
            start -= len(line) + (2 if self.content[start - len(line) - 2 : start - len(line)] == b"\r\n" else 1)
            end = after.end()
        self._edits.append((start, end, b""))

    def add(self, parent: XmlElement, lines: Lines) -> None:
        """Put elements in another one, after its children, in lines of their own where these have such.

        Once for each parent: what comes second to one without an end tag would be lost.
        """
        last = parent.children[-1] if parent.children else None
        outer = self._indent(parent)
        indent = None if last is not None or outer is None else outer + self._step
        for child in parent.children:
            indent = indent if (own := self._indent(child)) is None else own
        new, closing = self._laid_out(lines, indent), b""
        if last is None and indent is not None and outer is not None:
            closing = self._newline + outer
        if parent.tail == parent.end:  # it has no end tag yet
            slash = self.content.rindex(b"/", parent.start, parent.head_end)
            self._edits.append((slash, parent.head_end, b">" + new + closing + f"</{parent.tag}>".encode()))
            return
        if b"\n" in self.content[parent.head_end : parent.tail]:
            closing = b""
        at = parent.head_end if last is None else last.end
        self._edits.append((at, at, new + closing))

    def _laid_out(self, lines: Lines, indent: bytes | None) -> bytes:
        if indent is None:
            return "".join(line.strip() for line in lines).encode()
        levels = [(len(line) - len(line.lstrip())) // len(LEVEL) for line in lines]
        return b"".join(
            self._newline + indent + self._step * level + line.strip().encode()
            for level, line in zip(levels, lines, strict=True)
        )

    @property
    def _newline(self) -> bytes:
        return b"\r\n" if b"\r\n" in self.content else b"\n"

    @property
    def _step(self) -> bytes:
        """What this file indents a level by."""
        first = self._indent(self.root.children[0]) if self.root.children else None
        return first or LEVEL.encode()

    def _indent(self, element: XmlElement) -> bytes | None:
        """Indentation of an element that begins its line; None if something is before it."""
        begin = self.content.rfind(b"\n", 0, element.start) + 1
        before = self.content[begin : element.start]
        return before if begin and not before.strip() else None

    def _heads(self, element: XmlElement) -> Iterator[re.Match[bytes]]:
        """Yield the attributes of an element as they are printed, each with the white space before it."""
        at = element.start + 1 + len(element.tag.encode())
        while (found := _ATTRIBUTE.match(self.content, at)) is not None:
            yield found
            at = found.end()


def numbers(*values: float) -> str:
    """Numbers as text, each with the fewest digits that read back exactly."""
    return " ".join(repr(float(value) + 0.0) for value in values)


def _numbers(text: str) -> list[float] | None:
    try:
        return [float(part) for part in text.split()]
    except ValueError:
        return None
