"""The page of identified parameters: what it says, that its lines are the data, and that a browser shows it."""

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.identification.findings import Identification
from nori_dyn.report.page import to_html
from nori_dyn.report.time_plots import SIZE
from tests.browser import assert_readable, parsed, shown, text
from tests.robots import load
from tests.unit.identification.simulated import ARM, changed, saved_log
from tests.unit.report.test_curves import points
from tests.unit.report.test_log_page import frame_of

CASES = ("with a load and curves", "a sign turned", "offsets alone")


@cache
def found(name: str) -> Identification:
    arm = load("ur5")
    system, other = nd.System(arm, ARM), changed(arm, seed=1)[1]
    with TemporaryDirectory() as folder:
        log = saved_log(Path(folder) / "log.npz", other, n=800, sigma=0.05, seed=1)
        if name == "a sign turned":
            arrays = dict(np.load(log))
            np.savez(log, **arrays | {"tau": arrays["tau"] * np.array([1, -1, 1, 1, 1, 1])})
            return nd.identify(log, system, physical=False, curves=True)
        if name == "offsets alone":
            return nd.identify(log, system, ["offsets"])
        return nd.identify(log, system, loaded=log, load_on=arm.names[5], physical=False, curves=True)


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
    cells = [float(text(cell)) for cell in row.findall("td")[1:4:2]]
    assert cells == pytest.approx([fit.before, fit.after], rel=0.01)
    assert f"All parameters: {len(each.estimates)}" in said
    assert f"All combinations: {len(each.combinations)}" in said
    assert f"Load on {each.problem.load_on}, in its frame" in said
    assert "Look at this first" not in said
    assert "Measured and predicted: log.npz" in said
    turned = parsed(page_of(CASES[1]))
    assert "sometimes" in turned.find(".//header").get("class")
    assert "Their sign is probably wrong" in text(turned)


def test_its_lines_are_the_data():
    each = found(CASES[0])
    figure = parsed(page_of(CASES[0])).find(".//figure")
    frame, low, high = frame_of(figure)
    path = next(line for line in figure.iter("path") if line.get("class") == "line c0 measured").get("d")
    found_y = [high - y / SIZE * (high - low) for part in points(path) for _, y in part]
    read = each.curves[-1].read[0]
    assert min(found_y) == pytest.approx(read.min(), abs=2e-4 * (high - low))
    assert max(found_y) == pytest.approx(read.max(), abs=2e-4 * (high - low))


@pytest.mark.parametrize("name", [CASES[0], pytest.param(CASES[1], marks=pytest.mark.long), CASES[2]])
def test_in_a_browser(browser, tmp_path, name):
    for _, view in shown(browser, page_of(name), tmp_path / "page.html"):
        assert_readable(view)
