"""The documentation as a site: it builds strictly, loads nothing from elsewhere, and names all that is public.

Without the extra `docs` these tests are skipped.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import mkdocs  # noqa: F401 - the extra `docs`
import pytest

import nori_dyn as nd
from docs.generate import reference
from docs.generate.notebook_pages import formulas
from docs.generate.sensor_reference import example
from nori_dyn.descriptions.sensor_configs import shipped_configs
from tests.browser import CHROMIUM

ROOT = Path(__file__).parents[1]
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?(https?:[^\" >]+)|<link\b[^>]*\bhref=\"?(https?:[^\" >]+)"
)
TYPES = sorted(nd.measurements.measurement_types().items())


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site; a broken link, anchor or cross-reference is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


def anchors(folder: Path) -> set[str]:
    return {found for page in folder.glob("*.html") for found in re.findall(r'\bid="([^"]+)"', page.read_text())}


@pytest.mark.long
def test_every_public_name_sensor_set_error_command_and_notebook_has_an_entry(site):
    there, public = anchors(site / "reference"), set(reference.public())
    assert {f"nd.{room}" for room in reference.ROOMS} < public
    commands = {"plan", "solve", "observe", "place", "export", "identify", "info"}
    assert public | {name for name, _ in TYPES} | set(shipped_configs()) | commands <= there
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert (site / "notebooks" / path.with_suffix(".html").name).exists()


@pytest.mark.long
def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        assert not LOADED.findall(page.read_text()), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import )[\"']?https?:", sheet.read_text()), sheet


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
def test_a_browser_shows_it_without_a_network(site):
    """Opened as files: no request leaves, no page is wider than a telephone, and the search finds."""
    api = pytest.importorskip("playwright.sync_api")
    told: list[str] = []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.on("request", lambda request: told.append(request.url) if request.url.startswith("http") else None)
        page.on("pageerror", lambda error: told.append(str(error)))
        for path in sorted(site.rglob("*.html")):
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto((site / "index.html").as_uri())
        page.locator(".md-search__input").click()
        page.keyboard.type("force_torque")
        page.locator(".md-search-result__link").first.wait_for(timeout=120_000)
        browser.close()
    assert not told


def test_the_docstring_of_a_sensor_shows_an_entry_of_a_config():
    """After its equation; and the entry is one that it takes."""
    for name, kind in TYPES:
        entry = example(kind)
        assert entry["type"] == name
        assert nd.SensorSet.from_dict({"name": "example", "measurements": [entry]}).measurements, name


def test_errors_say_what_to_do():
    for name in reference.names_in("errors"):
        said = re.search(r"^ *What to do: ", getattr(nd.errors, name).__doc__, flags=re.MULTILINE)
        assert said or name == "NoriError", name


def test_formulas_are_drawn_without_a_script():
    drawn = formulas("Where $q$ is `$HOME`,\n\n$$D(q)\\,d = 0.$$")
    assert drawn.count("<math") == 2
    assert "`$HOME`" in drawn
