"""Reports, placements and logs as HTML pages that stand alone: no font, nothing fetched from elsewhere.

    nd.tools.save_html(report, "page.html")                          also with conditioning=, redundancy=
    nd.tools.save_html(nd.place(tree, candidates), "place.html")
    nd.tools.save_html(nd.identify("log.csv", tree, curves=True), "identified.html")

That of a log and that of identified parameters have a script of its own, to look closer; the others have none.

To add a page: a function that makes a `Page` (`layout.py`) of its sections; their parts are those of documents.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

import nori_dyn
from nori_dyn.errors import WrongKindError
from nori_dyn.identification.findings import Identification
from nori_dyn.io.files import write_bytes
from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.observe.redundancy import Redundancy
from nori_dyn.observe.report import ObservabilityReport
from nori_dyn.placement.design import Design, ParetoFront
from nori_dyn.placement.selection import Placement
from nori_dyn.report.identification_page import identification_page
from nori_dyn.report.layout import Page
from nori_dyn.report.page import front_page, observability_page, placement_page
from nori_dyn.tables import spaced

GENERATOR = f"nori_dyn {nori_dyn.__version__}"
TEMPLATES = Path(__file__).parent / "templates"


def to_html(
    found: object,
    conditioning: Conditioning | None = None,
    redundancy: Redundancy | None = None,
    outputs: Sequence[str] | None = None,
) -> str:
    """Render a page; equal reports give equal pages. For arguments and errors see `save_html`."""
    if isinstance(found, ObservabilityReport):
        return rendered(observability_page(found, conditioning, redundancy, outputs))
    if isinstance(found, Placement | Design):
        return rendered(placement_page(found))
    if isinstance(found, ParetoFront):
        return rendered(front_page(found))
    if isinstance(found, Identification):
        return rendered(identification_page(found))
    expected = "what nd.observability, nd.place, nd.placement.best_sensors, .pareto_front or nd.identify returns"
    example = "nd.tools.save_html(nd.observability(system), 'page.html')"
    raise WrongKindError("nd.tools.save_html", expected, found, example)


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


def save_html(
    found: ObservabilityReport | Placement | Design | ParetoFront | Identification,
    path: str | Path,
    conditioning: Conditioning | None = None,
    redundancy: Redundancy | None = None,
    outputs: Sequence[str] | None = None,
) -> None:
    """Write a page for the browser that stands alone.

    Args:
        found: what `nd.observability`, `nd.place`, `nd.placement.best_sensors`, `nd.placement.pareto_front` or
            `nd.identify` returns; the latter with `curves=True` has readings over the time drawn as well.
        path: the file.
        conditioning: of a report, margins and expected deviations over many configurations: `nd.conditioning`.
        redundancy: of a report, what sensors may fail: `nd.redundancy`.
        outputs: the outputs of the latter as they were asked for; those that were looked at when None.

    Raises:
        WrongKindError: something else.
        FileFormatError: the file cannot be written.

    Example:
        >>> system = nd.System(nd.autotree(2), "inverse_dynamics")
        >>> nd.tools.save_html(nd.observability(system), "page.html")
    """
    write_bytes(path, to_html(found, conditioning, redundancy, outputs).encode())
