"""Notebooks as pages: their text, their code, and the outputs that they are stored with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
FORMULA = re.compile(r"\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^$\n]+)\$", flags=re.DOTALL)
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", flags=re.DOTALL | re.MULTILINE)


def notebook_page(path: Path) -> str:
    """Return a notebook as Markdown."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return "\n\n".join(part for cell in notebook["cells"] for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield formulas(source)
    elif cell["cell_type"] == "code" and source.strip():
        yield _fenced(source, "python")
        for output in cell["outputs"]:
            yield _output(output)


def formulas(markdown: str) -> str:
    """Return Markdown with its formulas as MathML, which browsers draw without a script."""
    pieces = CODE.split(markdown)  # every second one is code
    return "".join(piece if i % 2 else FORMULA.sub(_formula, piece) for i, piece in enumerate(pieces))


def _formula(match: re.Match[str]) -> str:
    is_block = match["block"] is not None
    drawn = convert(match["block"] or match["inline"], display="block" if is_block else "inline")
    # As it stands a formula at the beginning of a line would be a block of its own.
    return f"\n<div>{drawn}</div>\n" if is_block else f"<span>{drawn}</span>"


def _output(output: dict[str, Any]) -> str:
    """Return one output: a picture before HTML, and HTML before text."""
    data = output.get("data", {})
    if "image/png" in data:
        picture = "".join(data["image/png"]).replace("\n", "")
        return f'<img class="output" alt="{escape(_text(data), quote=True)}" src="data:image/png;base64,{picture}">'
    if "image/svg+xml" in data:
        return f'<div class="output">{"".join(data["image/svg+xml"])}</div>'
    if "text/html" in data:
        html = re.sub(r"\n\s*\n", "\n", "".join(data["text/html"]))  # an empty line would end the block
        return f'<div class="output">{html}</div>'
    if output["output_type"] == "error":
        return _fenced(COLOUR.sub("", "\n".join(output["traceback"])), "text", "output")
    return _fenced(COLOUR.sub("", "".join(output.get("text", ())) or _text(data)), "text", "output")


def _text(data: dict[str, Any]) -> str:
    return "".join(data.get("text/plain", ""))


def _fenced(text: str, language: str, of_class: str = "") -> str:
    """Return a block of code, in a fence that is longer than any within it."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    header = f"{{ .{language} .{of_class} }}" if of_class else language
    return f"{fence}{header}\n{text.rstrip()}\n{fence}"
