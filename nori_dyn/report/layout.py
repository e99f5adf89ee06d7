"""What a page has beside the parts of documents: a verdict, sections, what is unfolded; `templates/` lays it out.

Pages stand alone: no font, nothing fetched from elsewhere. Those with plots over the time have a script of their own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import nori_dyn
from nori_dyn.report.drawings import FrontDrawing, TreeDrawing
from nori_dyn.report.skeleton import Skeleton
from nori_dyn.report.time_plots import Panel, Plots, Strip
from nori_dyn.tables import Part, spaced

GENERATOR = f"nori_dyn {nori_dyn.__version__}"
TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What stands at the top: the answer.

    Attributes:
        level: "yes", "sometimes" or "no"; "plain" where nothing was asked that has an answer.
        heading: the answer in a few words.
        sentences: the rest of it; those that are "" are left out.
    """

    level: str
    heading: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A remark in small print."""

    text: str


@dataclass(frozen=True, slots=True)
class Fold:
    """Parts that are unfolded: by what is called so."""

    title: str
    parts: tuple[PagePart, ...]
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """Parts that stand together: in a column of the page, a pair of plots beside each other."""

    parts: tuple[PagePart, ...]
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Parts under a heading; a section within another has no `id`."""

    title: str
    parts: tuple[PagePart, ...]
    id: str = ""
    kind: str = ""


PagePart: TypeAlias = str | Part | Note | Fold | Box | Section | TreeDrawing | FrontDrawing | Skeleton | Panel | Strip


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Attributes:
        title: what the browser calls it.
        about: the question that it answers; each second string is a name.
        verdict: the answer.
        parts: its sections.
        plots: the time that its plots share; None where it has none, and so no script.
        unit: of that time.
    """

    title: str
    about: tuple[str, ...]
    verdict: Verdict
    parts: tuple[PagePart, ...]
    plots: Plots | None = None
    unit: str = ""

    @property
    def skeletons(self) -> tuple[Skeleton, ...]:
        """The robots that are drawn over time: none or one."""
        parts = (part for section in self.parts if isinstance(section, Section) for part in section.parts)
        return tuple(part for part in parts if isinstance(part, Skeleton))


def side_by_side(drawn: Sequence[Panel], most: int) -> tuple[PagePart, ...]:
    """Panels side by side, of which so many are shown at once."""
    others = Fold(f"{len(drawn) - most} more", (Box(tuple(drawn[most:]), "pair"),))
    return (Box(tuple(drawn[:most]), "pair"), *((others,) if len(drawn) > most else ()))


def rendered(page: Page) -> str:
    """A page laid out by `templates/page.html`; no script runs but that of plots over the time, named by its hash."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    names = ("time_plots.js", *["robot.js"] * len(page.skeletons))
    script = "\n".join(TEMPLATES.joinpath(name).read_text(encoding="utf-8") for name in names)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        loader=FileSystemLoader(str(TEMPLATES)),
        autoescape=True,
        finalize=lambda value: spaced(value) if isinstance(value, str) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["kind"] = lambda part: type(part).__name__
    laid_out = environment.get_template("page.html")
    return laid_out.render(page=page, generator=GENERATOR, script=script, script_hash=digest)
