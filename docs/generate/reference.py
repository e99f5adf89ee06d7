"""The reference of public names: where each has its entry, and what a room says of itself."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from functools import cache
from types import ModuleType
from typing import Any

import nori_dyn as nd

ROOMS = ("components", "errors", "interop", "measurements", "observe", "placement", "recursions", "results", "tools")


@cache
def public() -> dict[str, Any]:
    """Return what is public, by the name that users write: "nd.plan", "nd.observe.Conditioning"."""
    top = {f"nd.{name}": getattr(nd, name) for name in nd.__all__ if name != "__version__"}
    return top | {f"nd.{room}.{name}": getattr(getattr(nd, room), name) for room in ROOMS for name in names_in(room)}


def names_in(room: str) -> list[str]:
    """Return the public names of a room; of one without `__all__`, the classes that it defines."""
    module = getattr(nd, room)
    defined = (
        name for name, part in vars(module).items() if inspect.isclass(part) and part.__module__ == module.__name__
    )
    return sorted(getattr(module, "__all__", None) or (name for name in defined if not name.startswith("_")))


def public_names(*rooms: str) -> str:
    """Return the entries of the top-level names that are defined in some rooms of the package, functions first."""
    own = [(name, part) for name, part in public().items() if name.count(".") == 1 and not isinstance(part, ModuleType)]
    entries = [(name, part) for name, part in own if part.__module__.split(".")[1] in rooms]
    entries.sort(key=lambda entry: inspect.isclass(entry[1]))
    firsts = {id(part): name for name, part in reversed(entries)}  # of two names of one thing, the first has its entry
    return "\n".join(
        _entry(name, part) if firsts[id(part)] == name else _pointer(name, firsts[id(part)]) for name, part in entries
    )


def room(name: str) -> str:
    """Return what a room says of itself, and the entries of its names; those with a shorter name are there."""
    by_part = {id(part): short for short, part in public().items() if short.count(".") == 1}
    entries = []
    for own in names_in(name):
        long, part = f"nd.{name}.{own}", getattr(getattr(nd, name), own)
        short = by_part.get(id(part))
        if short and name != "errors":
            entries.append(_pointer(long, short))
        else:
            entries.append(_entry(long, part, short))
    head, _, rest = inspect.getdoc(getattr(nd, name)).partition("Example:\n")  # type: ignore[union-attr]
    example = textwrap.dedent(rest).strip()
    return "\n".join([f"[](){{ #nd.{name} }}\n", _prose(head), f"```pycon\n{example}\n```\n", *entries])


def _prose(text: str) -> str:
    """Return the docstring of a room as Markdown, its lists of calls as code."""
    paragraphs = text.strip().split("\n\n")
    return (
        "\n\n".join(
            f"```python\n{textwrap.dedent(part)}\n```" if re.match(r"(    )?[a-z]\S*( = |\()|    ", part) else part
            for part in paragraphs
        )
        + "\n"
    )


def _entry(name: str, part: Any, short: str | None = None) -> str:
    """Return the directive that documents a public name, with the anchors by which pages link it."""
    path = f"{part.__module__}.{part.__qualname__}"
    anchors = "\n".join(f"[](){{ #{one} }}" for one in (short, name) if one)
    options = {"heading": name, "toc_label": name if name.count(".") == 1 else name.rpartition(".")[2]}
    return f"{anchors}\n\n::: {path}\n    options: {json.dumps(options)}\n"


def _pointer(name: str, other: str) -> str:
    """Return the entry of a name whose thing has another name, with an entry of its own."""
    return f"[](){{ #{name} }}\n\n`{name}` is [`{other}`][{other}].\n"
