"""The page of identified parameters: what it says, that its lines are the data, and that a browser shows it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.identification.findings import Identification
from nori_dyn.report.html import to_html
from tests.browser import CONTRAST, WIDTHS, parsed, text
from tests.robots import load
from tests.unit.identification.simulated import ARM, changed, saved_log

CASES = ("with a load and curves", "a sign turned", "offsets alone")


@cache
def found(name: str) -> Identification:
    arm = load("ur5")
    _, other = changed(arm, seed=1)
    with TemporaryDirectory() as folder:
        log = saved_log(Path(folder) / "log.npz", other, n=800, sigma=0.05, seed=1)
        if name == "a sign turned":
            arrays = dict(np.load(log))
            np.savez(log, **arrays | {"tau": arrays["tau"] * np.array([1, -1, 1, 1, 1, 1])})
            return nd.identify(log, nd.System(arm, ARM), physical=False, curves=True)
        if name == "offsets alone":
            return nd.identify(log, nd.System(arm, ARM), ["offsets"])
        return nd.identify(log, nd.System(arm, ARM), loaded=log, load_on=arm.names[5], physical=False, curves=True)


@cache
def page_of(name: str) -> str:
    return to_html(found(name))


@pytest.mark.parametrize("name", CASES)
def test_it_is_one_sound_file(name):
    page = page_of(name)
    root = parsed(page)
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    assert len(root.findall(".//script")) == (0 if name == "offsets alone" else 2)
    assert len(page) < 500_000
    assert to_html(found(name)) == page


def test_it_says_what_was_found():
    root = parsed(page_of(CASES[0]))
    said = text(root)
    each = found(CASES[0])
    fit = each.fits[2]
    row = next(row for row in root.iter("tr") if text(row).startswith(fit.name))
    cells = [float(text(cell)) for cell in row.findall("td")[:2]]
    assert cells == pytest.approx([fit.before, fit.after], rel=0.01)
    assert f"All parameters: {len(each.found)}" in said
    assert f"All combinations: {len(each.combinations)}" in said
    assert f"Load on {each.problem.load_on}, in its frame" in said
    assert "Look at this first" not in said
    assert "Read, and expected: log.npz" in said
    turned = parsed(page_of(CASES[1]))
    assert "sometimes" in turned.find(".//header").get("class")
    assert "Its sign is likely turned" in text(turned)


def test_its_lines_are_the_data():
    each = found(CASES[0])
    figure = parsed(page_of(CASES[0])).find(".//figure")
    frame = next(part for part in figure.iter("div") if part.get("class") == "frame")
    low, high = float(frame.get("data-low")), float(frame.get("data-high"))
    path = next(line for line in figure.iter("path") if line.get("class") == "line c0 measured").get("d")
    y, found_y = 0, []
    for step, a, b in re.findall(r"([Mlv])(-?\d+)(?: (-?\d+))?", path):
        y = int(b) if step == "M" else y + int(a if step == "v" else b)
        found_y.append(high - y / 10_000 * (high - low))
    read = each.curves[-1].read[0]
    assert min(found_y) == pytest.approx(read.min(), abs=2e-4 * (high - low))
    assert max(found_y) == pytest.approx(read.max(), abs=2e-4 * (high - low))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", CASES)
def test_in_a_browser(browser, tmp_path, name, width):
    path = tmp_path / "page.html"
    path.write_text(page_of(name), encoding="utf-8")
    w, h = WIDTHS[width]
    context = browser.new_context(viewport={"width": w, "height": h})
    view = context.new_page()
    messages, requests = [], []
    view.on("console", lambda message: messages.append(message.text))
    view.on("pageerror", lambda error: messages.append(str(error)))
    view.on("request", lambda request: requests.append(request.url))
    view.goto(path.as_uri())
    for is_open in (False, True):
        view.evaluate(f"document.querySelectorAll('details').forEach(d => d.open = {str(is_open).lower()})")
        assert view.evaluate("document.documentElement.scrollWidth") <= w
        for scheme in ("light", "dark"):
            view.emulate_media(color_scheme=scheme)
            assert view.evaluate(CONTRAST) >= 4.5
    assert messages == []
    assert [each for each in requests if not each.startswith(("file:", "data:"))] == []
    context.close()
