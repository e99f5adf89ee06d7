"""YAML files: data only, of bounded size, with the line of each entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nori_dyn.errors import NoriError, SensorConfigError
from nori_dyn.io.files import read_text

LARGEST = 100_000
"""Entries of a file, those counted again that an alias stands for."""


@dataclass(frozen=True, slots=True)
class YamlFile:
    """The content of a YAML file.

    Attributes:
        path: the file.
        data: what it says.
        root: its nodes, which know their lines.
    """

    path: str | Path
    data: Any
    root: yaml.Node | None

    def line(self, keys: Sequence[str | int]) -> int:
        """Line (from 1) of the deepest existing entry along some keys."""
        node, line = self.root, 0
        for key in keys:
            if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
                node = node.value[key]
            elif isinstance(node, yaml.MappingNode):
                match = [(k, v) for k, v in node.value if k.value == str(key)]
                if not match:
                    continue  # a missing key, or the name of a variant of the schema
                line = match[0][0].start_mark.line
                node = match[0][1]
                continue
            else:
                break
            line = node.start_mark.line
        return line + 1


def read_yaml(path: str | Path, error: type[NoriError] = SensorConfigError) -> YamlFile:
    """Read a YAML file.

    Args:
        path: the file.
        error: the class of error that is raised.

    Raises:
        FileFormatError: it cannot be read.
        NoriError: of the class given: it is not YAML, or its aliases make it as large as nothing of ours is.
    """
    text = read_text(path)
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if _size(root, {}) > LARGEST:
            raise error(f"{path}: its aliases expand to more than {LARGEST} entries. Write the entries out.")
        return YamlFile(path, None if root is None else loader.construct_document(root), root)
    except yaml.YAMLError as wrong:
        mark = getattr(wrong, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(wrong, "problem", None) or "it cannot be parsed"
        hint = " Indent with spaces, not with tabs." if "\\t" in problem else ""
        raise error(f"{path}{line}: is not YAML: {problem}.{hint}") from None
    except RecursionError:
        raise error(f"{path}: is nested too deeply, or an alias refers to an entry that contains it.") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as wrong:  # a value unlike its tag
        raise error(f"{path}: is not YAML: a value in it cannot be read ({wrong}).") from None


def _size(node: yaml.Node | None, sizes: dict[int, int]) -> int:
    """Number of nodes below a node, an alias followed once."""
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if id(node) not in sizes:
        parts = [part for entry in node.value for part in (entry if isinstance(entry, tuple) else (entry,))]
        sizes[id(node)] = 1 + sum(_size(part, sizes) for part in parts)
    return sizes[id(node)]
