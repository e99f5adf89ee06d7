"""Where each file of the repository is in the site, and what a link from one to another becomes there."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/nori-dyn/nori_dyn/blob/main"

LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)\s#]+)(?=[#)])")
FENCE = re.compile(r"^(```|~~~).*?^\1[ ]*$", flags=re.DOTALL | re.MULTILINE)
"""A fenced block of code."""


def _in_order(path: Path) -> tuple[int, str]:
    """Return what puts "9_estimates.ipynb" before "10_identification.ipynb", and what has no number first."""
    number = path.name.split("_")[0]
    return int(number) if number.isdigit() else 0, path.name


@cache
def pages_outside() -> dict[str, str]:
    """Return the pages and pictures of the site that are not in docs/, by path: "CHANGELOG.md" is "changelog.md"."""
    places = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
    for path in sorted((ROOT / "notebooks").iterdir(), key=_in_order):
        if path.suffix in (".ipynb", ".png", ".svg"):
            places[f"notebooks/{path.name}"] = f"notebooks/{path.name.replace('.ipynb', '.md')}"
    return places | {"notebooks/README.md": "notebooks/index.md"}


def source_of(page: str) -> str:
    """Return the path in the repository of a page of the site."""
    outside = {place: path for path, place in pages_outside().items()}
    return outside.get(page, f"docs/{page}")


def link_pages(markdown: str, page: str) -> str:
    """Return a page whose links, written for its place in the repository, lead to the same things from the site.

    What has no page in the site is linked in the repository; what does not exist is left, for the build to refuse.
    """
    source = source_of(page)

    def target(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        if not (ROOT / path).exists():
            return match[1]
        place = place_of(path)
        return f"{REPOSITORY}/{path}" if place is None else os.path.relpath(place, posixpath.dirname(page) or ".")

    return outside_fences(markdown, lambda text: LINK.sub(target, text))


def place_of(path: str) -> str | None:
    """Return where a file of the repository is in the site; None where it is not."""
    if path == "README.md":
        return "index.md"
    return pages_outside().get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)


def outside_fences(markdown: str, change: Callable[[str], str]) -> str:
    """Return a page with its text changed, but for its blocks of code."""
    ends, parts = 0, []
    for block in FENCE.finditer(markdown):
        parts += [change(markdown[ends : block.start()]), block[0]]
        ends = block.end()
    return "".join([*parts, change(markdown[ends:])])


def plain(text: str) -> str:
    """Return text in which nothing but code in backticks is Markdown."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if i % 2 else re.sub(r"([*_<])", r"\\\1", piece) for i, piece in enumerate(pieces))
