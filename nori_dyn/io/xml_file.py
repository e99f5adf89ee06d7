"""XML files, parsed without expanding entities, fetching anything, or loading a DTD."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, TypeAlias

from nori_dyn.errors import FileFormatError
from nori_dyn.io.files import read_bytes

Element: TypeAlias = Any
"""An lxml element; lxml has no types of its own. Elements are read only: documents are shared."""

SHARED = 1 << 24
"""Bytes of a file up to which its document is kept for the next reader of the same file."""


def read_xml(path: str | os.PathLike[str]) -> Element:
    """Read the root element of an XML file, without comments and processing instructions.

    Undeclared namespace prefixes, which old files of simulators have, are accepted. A file is parsed once for its tree,
    sensors, components and shapes: those who read the same bytes share the document.

    Raises:
        FileFormatError: no such file, not readable, not XML (with the line), or it declares entities.
    """
    content = read_bytes(path)
    return (_shared if len(content) <= SHARED else parsed)(os.fspath(path), content)


def parsed(file: str, content: bytes) -> Element:
    """Parse the bytes of an XML file; see `read_xml`."""
    from lxml import etree

    parser = _parser(recover=False)
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        log = parser.error_log
        if not log or any(entry.domain_name != "NAMESPACE" for entry in log):
            where = f"{file}, line {log[0].line}" if log else str(file)
            raise FileFormatError(f"{where}: not XML: {log[0].message if log else error.msg}.") from None
        root = etree.fromstring(content, _parser(recover=True))
    dtd = root.getroottree().docinfo.internalDTD
    if (dtd is not None and dtd.entities()) or next(root.iter(etree.Entity), None) is not None:
        raise FileFormatError(
            f"{file} declares XML entities, which are not expanded here. Write their text out instead."
        )
    return root


_shared = lru_cache(maxsize=2)(lambda file, content: parsed(file, content))


def _parser(recover: bool) -> Any:
    from lxml import etree

    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
        recover=recover,
    )
