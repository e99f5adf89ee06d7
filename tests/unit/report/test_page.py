"""The observability page: what it says, that it is one sound file, and that a browser shows it as meant."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from lxml import etree

import nori_dyn
from nori_dyn.io.sensor_configs import sensors
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.model.tree import WORLD, KinematicTree
from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.observe.findings import NEARLY_SINGULAR
from nori_dyn.observe.redundancy import Redundancy
from nori_dyn.observe.report import ObservabilityReport, observability
from nori_dyn.report.margin_histogram import histogram, margin, power
from nori_dyn.report.page import observability_page
from nori_dyn.report.tree_drawing import elided, tree_drawing
from nori_dyn.system.builder import System
from tests.robots import load
from tests.systems import ACCELERATIONS, INVERSE, sensor_set

CASES = {
    "arm": ("panda", "fixed", "inverse_dynamics"),
    "not at parallel soles": ("talos_reduced", "floating", "load_cells_five"),
    "not": ("iCubGenova04", "floating", "icub_feet_three_axes"),
}
VERDICTS = {
    "arm": "Yes, these sensors suffice",
    "not at parallel soles": "Yes, but not at every pose",
    "not": "No, these sensors do not suffice",
}
WIDTHS = {"phone": (360, 740), "desktop": (1440, 900)}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@cache
def case(name: str) -> tuple[System, ObservabilityReport]:
    robot, base, config = CASES[name]
    system = System(load(robot, base), sensors(config))
    return system, observability(system, n=1)


def swept(system: System, N: int = 40) -> Conditioning:
    """Return made up results: two configurations lack rank, one is nearly singular; an output is not determined."""
    rng = np.random.default_rng(0)
    smallest = 10 ** np.linspace(-4, 0, N)
    smallest[:3] = 0.0, 0.0, NEARLY_SINGULAR / 3
    ranks = np.where(smallest > 0, system.shape[1], system.shape[1] - 1)
    outputs = tuple(name for name in system.variable_names if name.startswith("tau"))
    sigma = rng.uniform(0.1, 0.2, (N, len(outputs)))
    sigma[:, 1] = np.inf
    Q = np.array([system.tree.random_configuration(rng) for _ in range(N)])
    units = ("N m",) * len(outputs)
    worst = np.argsort(smallest, stable=True)[:10]
    return Conditioning(Q, ranks, smallest, system.shape[1], outputs, units, sigma, worst)


def failing(system: System) -> Redundancy:
    """Return made up results of two critical sensors and a critical pair."""
    names = tuple(row.name for row in system.measurements)
    lost = {names[0]: ("tau:" + system.tree.joint_names[-1],), names[1]: system.variable_names[:3]}
    return Redundancy(system.variable_names, names, names[:2], lost, ((names[0],), (names[1],), names[2:4]), 2)


@cache
def page_of(name: str) -> str:
    system, report = case(name)
    return observability_page(system, report, swept(system), failing(system))


def parsed(page: str) -> etree._Element:
    """Return the page, which is well-formed XML too, as a tree; anything else is an error."""
    return etree.fromstring(page.split("\n", 1)[1], etree.XMLParser(recover=False, resolve_entities=False))


def text(element: etree._Element) -> str:
    return " ".join("".join(element.itertext()).split())


# ------------------------------------------------------------------------------------- what it says


@pytest.mark.parametrize("name", CASES)
def test_verdict_comes_first_and_reasons_follow(name):
    system, report = case(name)
    root = parsed(observability_page(system, report))
    assert text(root.find(".//h1")).endswith(VERDICTS[name])
    assert root.find(".//title").text.startswith(VERDICTS[name])
    assert root.find("body/main")[0].tag == "header"
    said = text(root)
    parts = [*report.unseen, *(part for c in report.loses_rank for part in c.unseen)]
    for words in (*(part.words for part in parts), *(c.meaning for c in report.conditions)):
        assert " ".join(words.split()) in said
    for fact in (report.robot, report.sensors, f"{report.n_variables:,}", nori_dyn.__version__, f"{report.error:.0e}"):
        assert fact in said


def test_what_suffices_on_paper_only_is_no():
    system, report = case("arm")
    root = parsed(observability_page(system, replace(report, numerical_rank=report.n_variables - 2)))
    assert text(root.find(".//h1")).endswith("No, these sensors suffice on paper only")


def test_given_configurations_that_lack_rank_change_the_verdict():
    system, report = case("arm")
    Q = np.array([system.tree.random_configuration(k) for k in range(3)])
    ranks = np.array([180, 179, 180])
    root = parsed(observability_page(system, replace(report, configurations=Q, rank_at=ranks, smallest_at=ranks / 360)))
    assert text(root.find(".//h1")).endswith("Yes, but not at every pose")
    assert "Of the 3 configurations given, 1 lack rank" in text(root)
    assert "no. 1, 1 short" in text(root)


def test_numbers_of_the_sweep_are_listed():
    system, _ = case(name := "not at parallel soles")
    conditioning, said = swept(system), text(parsed(page_of(name)))
    assert "2 of the 40 configurations looked at" in said
    assert "Of 40 configurations 2 lack rank and 1 of the others are nearly singular" in said
    k = system.tree.joint_names.index("leg_left_4_joint")
    degrees = np.degrees(conditioning.configurations[conditioning.worst[0], system.tree.q_slices[k]][0])
    assert f"{degrees:.1f}".replace("-", "−") in said
    rows = {text(row[0]): [text(cell) for cell in row[1:]] for row in parsed(page_of(name)).iter("tr")}
    median, worst = (of(conditioning.sigma[:, 2]) for of in (np.median, np.max))
    assert rows[conditioning.outputs[2]] == [f"{median:.3g}", "", f"{worst:.3g}"]
    assert rows[conditioning.outputs[1]] == ["not determined", "", "not determined"]
    assert "Of 35 sensors 2 are critical: if one fails" in said


def test_equal_reports_give_equal_pages():
    system, report = case("not")
    first, second = (observability_page(System(system.tree, system.sensors), report) for _ in range(2))
    assert first == second
    assert not re.search(r"20\d\d-\d\d|\d\d:\d\d", text(parsed(first)))


# ------------------------------------------------------------------------------------ a sound file


@pytest.mark.parametrize("name", CASES)
def test_page_is_sound_and_stands_alone(name):
    page = page_of(name)
    root = parsed(page)
    assert page.startswith("<!DOCTYPE html>\n")
    assert root.get("lang") == "en"
    levels = [int(h.tag[1]) for h in root.iter("h1", "h2", "h3")]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert {e.get("aria-labelledby") for e in root.iter("section")} <= set(ids)
    for drawing in root.iter("svg"):
        assert drawing.get("aria-hidden") == "true" or (drawing.get("role") == "img" and drawing.get("aria-label"))
    assert not [*root.iter("script", "img", "iframe", "object", "embed", "form")]
    assert [e.get("href") for e in root.iter() if e.get("href")] == ["data:,"]
    assert not any(e.get("src") or any(key.startswith("on") for key in e.keys()) for e in root.iter())  # noqa: SIM118
    assert not re.search(r"https?://|@import|url\(", page)
    for row in root.iter("tr"):
        assert len(row) == len(row.getparent().getparent().find("thead/tr"))


def test_names_from_files_cannot_change_the_page():
    nasty = ['<script>alert("1")</script>', "a&b", "</style><b>", "'\"><img src=x>", "足の裏", "{{ 7 * 7 }}"]
    tree = autotree(6).replace(name=nasty[0], names=tuple(nasty), joint_names=tuple(f"j {name}" for name in nasty))
    system = System(tree, sensor_set(ACCELERATIONS, name='"><script>'))
    report = observability(system)
    root = parsed(observability_page(system, report, swept(system)))
    assert not [*root.iter("script", "img")]
    assert [text(b) for b in root.iter("b")] == ['"><script>', nasty[0]]  # the two that the page sets in bold
    assert [title.text for title in root.iterfind(".//svg/g[@class]/title")] == nasty
    assert nasty[5] in text(root)


# ------------------------------------------------------------------------------------ the drawings


def drawn(tree: KinematicTree):
    all_is_determined = observability(System(autotree(1), INVERSE), where=None)
    return tree_drawing(System(tree, INVERSE), all_is_determined)


@pytest.mark.parametrize("tree", [autotree(1), autotree(60), autotree(60, 2), *(random_tree(40, s) for s in range(4))])
def test_each_link_has_its_row_right_of_or_below_its_parent(tree):
    drawing = drawn(tree)
    at = {row.title: row for row in drawing.rows}
    assert set(at) == set(tree.names)
    heights = [drawing.world[1], *(row.y for row in drawing.rows)]
    assert np.diff(heights) == pytest.approx(24)
    for i, name in enumerate(tree.names):
        row = at[name]
        x, y = drawing.world if tree.is_root(i) else (at[tree.names[tree.parents[i]]].x, at[row.parent].y)
        assert row.y > y
        assert row.x in (x, x + 18)
        assert all(0 < cell.x < drawing.width for cell in row.cells)
        between = [other for other in drawing.rows if y < other.y < row.y]
        assert all(other.x > x for other in between)  # so that the line down from the parent meets no other
    straight_below = [row.parent for row in drawing.rows if row.parent in at and row.x == at[row.parent].x]
    assert sorted(straight_below) == sorted({tree.names[parent] for parent in tree.parents if parent != WORLD})
    widest = (max(row.x for row in drawing.rows) - drawing.world[0]) / 18
    assert widest <= np.log2(tree.n_links + 1)


@pytest.mark.parametrize("name", CASES)
def test_marks_are_what_the_system_and_the_report_have(name):
    system, report = case(name)
    drawing = tree_drawing(system, report)
    count = {"reading": 0, "known": 0, "sometimes": 0, "never": 0}
    for row in drawing.rows:
        for cell in row.cells:
            count[cell.mark] += cell.number
    assert count["reading"] == system.ny
    assert count["never"] == len(report.unobservable)
    assert count["reading"] + count["known"] == system.shape[0] - 12 * system.tree.n_links - system.tree.nv
    assert (count["sometimes"] > 0) == (name == "not at parallel soles")
    touched = {row.title for row in drawing.rows if row.seen != "always"}
    legs = {n for n in system.tree.names if re.match("leg|[lr]_(hip|upper_leg|lower_leg|ankle)", n)}
    assert touched == (set() if name == "arm" else legs)


@pytest.mark.parametrize(("N", "spread"), [(1, 0.0), (500, 0.5), (500, 3.0), (500, 14.0)])
def test_histogram_holds_every_configuration_once(N, spread):
    smallest = 10 ** -np.random.default_rng(1).uniform(0, spread + 1e-3, N)
    drawing = histogram(np.concatenate([smallest, np.zeros(3)]), 3)
    assert drawing.lost is not None
    assert (sum(bar.count for bar in drawing.bars), drawing.lost.count) == (N, 3)
    low = sum(bar.count for bar in drawing.bars if bar.is_low)
    assert low == np.sum(smallest < NEARLY_SINGULAR)
    for bar in drawing.bars:
        assert drawing.lost.x + drawing.lost.width < bar.x
        assert bar.x + bar.width < drawing.width
        assert (bar.x + bar.width <= drawing.threshold + 1) == bar.is_low
    labels = np.array([x for x, _ in drawing.ticks])
    assert (-np.diff(labels) > 24).all()


def test_histogram_of_a_singular_system_has_no_bars():
    drawing = histogram(np.zeros(7), 7)
    assert drawing.bars == ()
    assert drawing.summary == "All 7 configurations lack rank."


def test_figures_as_text():
    assert [power(x) for x in (0, -5, -12, -2.5)] == ["10⁰", "10⁻⁵", "10⁻¹²", "3.2·10⁻³"]
    assert [margin(x) for x in (1.0, 0.072, 0.0021, 1e-5, 0.0)] == ["1", "0.07", "0.002", "10⁻⁵", "0"]
    assert elided("gripper_left_motor_double_link") == "gripper_lef…_double_link"


# -------------------------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


CONTRAST = """() => {
  const channel = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const luminance = rgb => 0.2126 * channel(rgb[0]) + 0.7152 * channel(rgb[1]) + 0.0722 * channel(rgb[2]);
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const rgb = numbers(getComputedStyle(e).backgroundColor);
      if (rgb.length < 4 || rgb[3] > 0) return rgb;
    }
    return [255, 255, 255];
  };
  const worst = [...document.querySelectorAll("body *")].map(e => {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own || e.closest("title") || !e.getClientRects().length) return 21;
    const style = getComputedStyle(e);
    let back = behind(e);
    if (e.matches("text.reading")) back = numbers(getComputedStyle(e.previousElementSibling).fill);
    const [a, b] = [numbers(e.closest("svg") ? style.fill : style.color), back].map(luminance);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
  return Math.min(...worst);
}"""
"""The lowest contrast of a text to what is behind it, as WCAG 2 defines it."""

OVERLAPS = """() => {
  const found = [];
  for (const svg of document.querySelectorAll("svg[role=img]")) {
    const boxes = [...svg.querySelectorAll("text:not(.heading)")].map(t => [t.textContent, t.getBoundingClientRect()]);
    boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
      const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const along = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (across > 0.5 && along > 3) found.push([a, b]);
    }));
  }
  return found;
}"""
"""Pairs of texts of a drawing that lie over each other."""


LINKS = "[...document.querySelectorAll('.link text')].map(t => [t.textContent, t.getBBox().width])"
"""The names of links that are drawn, and how wide they are."""


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
    verdict = view.locator("header").bounding_box()
    assert verdict["y"] + verdict["height"] < h
    assert view.evaluate("document.compatMode") == "CSS1Compat"
    backgrounds = set()
    for is_open in (False, True):
        view.evaluate(f"document.querySelectorAll('details').forEach(d => d.open = {str(is_open).lower()})")
        assert view.evaluate("document.documentElement.scrollWidth") <= w
        for scheme in ("light", "dark"):
            view.emulate_media(color_scheme=scheme)
            backgrounds.add(view.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert view.evaluate(CONTRAST) >= 4.5
    assert len(backgrounds) == 2
    assert view.evaluate(OVERLAPS) == []
    shown = dict(view.evaluate(LINKS))
    assert set(shown) == {elided(link) for link in case(name)[0].tree.names}
    assert all(length > 5 * len(link) for link, length in shown.items())
    assert messages == []
    assert requests == [path.as_uri()]
    context.close()
