"""The observability page: what it says, that it is one sound file, and that a browser shows it as meant."""

import re
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import nori_dyn
from nori_dyn.descriptions.sensor_configs import sensors
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.model.tree import WORLD, KinematicTree
from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.observe.redundancy import Redundancy, redundancy
from nori_dyn.observe.report import ObservabilityReport, observability
from nori_dyn.placement.candidates import Candidates
from nori_dyn.placement.design import Design, ParetoFront, best_sensors, pareto_front
from nori_dyn.placement.selection import Placement, place
from nori_dyn.report.drawings import elided, tree_drawing
from nori_dyn.report.findings import NEARLY_SINGULAR, advice
from nori_dyn.report.page import margin_bars, save_html, to_html
from nori_dyn.system.builder import System
from nori_dyn.tables import number
from tests.browser import assert_readable, assert_stands_alone, assert_verdict_shows, parsed, shown, text
from tests.robots import load
from tests.systems import ACCELERATIONS, INVERSE, TORQUES, UNLOADED, sensor_set

CASES = {
    "arm": ("panda", "fixed", "inverse_dynamics", "Yes, these sensors suffice"),
    "not at parallel soles": ("talos_reduced", "floating", "load_cells_five", "Yes, but not at every pose"),
    "not": ("iCubGenova04", "floating", "icub_feet_three_axes", "No, these sensors do not suffice"),
}


@cache
def case(name: str) -> tuple[System, ObservabilityReport]:
    robot, base, config, _ = CASES[name]
    system = System(load(robot, base), sensors(config))
    return system, observability(system, n=1)


def swept(system: System, N: int = 40) -> Conditioning:
    """Made up results: two configurations lack rank, one is nearly singular; an output is not determined."""
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
    """Made up results of two critical sensors and a critical pair."""
    names = tuple(row.name for row in system.measurements)
    lost = {names[0]: ("tau:" + system.tree.joint_names[-1],), names[1]: system.variable_names[:3]}
    return Redundancy(system.variable_names, names, names[:2], lost, ((names[0],), (names[1],), names[2:4]), 2)


CHOICES = [ACCELERATIONS | {"sigma": 0.1}, TORQUES | {"sigma": 1}]
CANDIDATES = {
    "name": "shop",
    "measurements": [UNLOADED],
    "candidates": {"measurements": CHOICES},
    "costs": {"joint_torque": 30, "joint_acceleration": 7},
}


@cache
def bought(name: str) -> Placement | Design:
    tree, candidates = load("panda"), Candidates.from_dict(CANDIDATES)
    return place(tree, candidates) if name == "cheapest" else best_sensors(tree, candidates, 10)


@cache
def front() -> ParetoFront:
    ends = ["panda_joint1", "panda_joint7"]
    joints = {"measurements": [{**entry, "joints": ends} for entry in CHOICES]}
    read = {"type": "joint_torque", "joints": {"except": ends}, "sigma": 1}
    shop = {**CANDIDATES, "measurements": [*CANDIDATES["measurements"], read], "candidates": joints}
    return pareto_front(load("panda"), Candidates.from_dict(shop))


@cache
def page_of(name: str) -> str:
    if name == "front":
        return to_html(front())
    if name not in CASES:
        return to_html(bought(name))
    system, report = case(name)
    return to_html(report, swept(system), failing(system))


# ------------------------------------------------------------------------------------- what it says


@pytest.mark.parametrize("name", CASES)
def test_verdict_comes_first_and_reasons_and_what_to_add_follow(name):
    report, verdict = case(name)[1], CASES[name][-1]
    root = parsed(to_html(report))
    assert text(root.find(".//h1")).endswith(verdict)
    assert root.find(".//title").text.startswith(verdict)
    assert root.find("body/main")[0].tag == "header"
    said = text(root)
    parts = [*report.unseen, *(part for c in report.loses_rank for part in c.unseen)]
    for words in (*(part.words for part in parts), *(c.meaning for c in report.conditions)):
        assert " ".join(words.split()) in said
    for fact in (report.robot, report.sensors, f"{report.n_variables:,}", nori_dyn.__version__, f"{report.error:.0e}"):
        assert fact in said
    with_all = parsed(page_of(name))
    assert [text(h) for h in with_all.iter("h2")][:1] == (["Why"] if name == "arm" else ["What to add"])
    said = text(with_all)
    for words, *others in advice(report):
        assert f"{words.lead} {words.text}" in said
        assert all(other in said for instead in others for other in instead.items)


def test_a_page_has_a_section_for_all_that_was_looked_at():
    """A tall drawing has what the sensors read beside it, another one below."""
    small, tall, chosen = (parsed(page_of(name)) for name in ("arm", "not at parallel soles", "cheapest"))
    robot, read = "The robot and its sensors", "What the sensors read"
    looked_at = ["Distance from singular", "Precision of the estimates", "The worst poses", "When a sensor fails"]
    for root, headings in (
        (small, ["Why", "Special poses", robot, read, *looked_at, "Facts"]),
        (tall, ["What to add", "Why", "Special poses", robot, *looked_at, read, "Facts"]),
        (chosen, ["What to buy", robot, *looked_at[1:3], read]),
    ):
        assert [text(heading) for heading in root.iter("h2")] == headings
    poses = ["one pose of each kind", "The worst margins of 40 configurations", "known least, of each unit"]
    folded = [text(fold) for fold in tall.iterfind(".//section[@aria-labelledby='poses']/details/summary")]
    assert [fold.endswith(end) for fold, end in zip(folded, poses, strict=True)] == [True] * 3
    assert {"root_joint x", "root_joint quaternion w"} <= {text(row[0]) for row in tall.iter("tr")}


def test_ranks_that_are_lacking_change_the_verdict():
    system, report = case("arm")
    root = parsed(to_html(replace(report, numerical_rank=report.n_variables - 2)))
    assert text(root.find(".//h1")).endswith("No, these sensors suffice on paper only")
    Q = np.array([system.tree.random_configuration(k) for k in range(3)])
    ranks = np.array([180, 179, 180])
    root = parsed(to_html(replace(report, configurations=Q, rank_at=ranks, smallest_at=ranks / 360)))
    assert text(root.find(".//h1")).endswith("Yes, but not at every pose")
    assert "Of 3 configurations given, 1 leaves something undetermined" in text(root)
    assert "no. 1, 1 not determined" in text(root)


def test_numbers_of_the_sweep_are_listed():
    system, _ = case(name := "not at parallel soles")
    conditioning, said = swept(system), text(parsed(page_of(name)))
    assert "2 of the 40 configurations looked at" in said
    assert "Of 40 configurations, 2 leave something undetermined and 1 is nearly singular" in said
    k = system.tree.joint_names.index("leg_left_4_joint")
    degrees = np.degrees(conditioning.configurations[conditioning.worst[0], system.tree.q_slices[k]][0])
    assert f"{degrees:.1f}".replace("-", "−") in said
    rows = {text(row[0]): [text(cell) for cell in row[1:]] for row in parsed(page_of(name)).iter("tr")}
    k = int(np.argmax(np.where(np.isfinite(conditioning.sigma), conditioning.sigma, 0).max(axis=0)))
    sigma, output = conditioning.sigma[:, k], conditioning.outputs[k]
    worst, median = (number(of(sigma), 2) for of in (np.max, np.median))
    assert rows[output] == [worst, median, "", "N m", str(np.argmax(sigma))]
    at_worst = f"{output}, {worst} N m at the worst of 40 poses (no. {np.argmax(sigma)}), {median} N m at the median"
    assert f"Least precise: {at_worst}" in text(parsed(page_of(name)).find(".//header"))
    assert f"Not determined at most poses: {conditioning.outputs[1]}." in said
    assert "Any one of 33 of the 35 sensors may fail; 2 may not." in said


def test_the_page_is_a_function_of_what_was_found(tmp_path):
    system, report = case("arm")
    save_html(report, tmp_path / "page.html", swept(system), failing(system))
    assert (tmp_path / "page.html").read_text() == page_of("arm")
    with pytest.raises(nori_dyn.errors.InputError, match=r"takes what nd\.observability"):
        nori_dyn.tools.save_html(system, tmp_path / "page.html")
    system, report = case("not")
    again = observability(System(system.tree, system.sensors), n=1)
    first, second = (to_html(each) for each in (report, again))
    assert first == second
    assert not re.search(r"20\d\d-\d\d|\d\d:\d\d", text(parsed(first)))


@pytest.mark.parametrize("name", ["cheapest", "best"])
def test_a_placement_says_what_to_buy_its_price_and_its_precision(name):
    found, root = bought(name), parsed(page_of(name))
    rows = [[text(cell) for cell in row] for row in root.iter("tr")]
    said = text(root)
    for sensor in found.chosen:
        assert any(row[:2] == [sensor, f"{found.costs[sensor]:,g}"] for row in rows)
        assert f"chosen: joint {'torque' if sensor.startswith('tau') else 'acceleration'}" in said
    for candidate, cost in found.bought.offered.items():
        assert [candidate, f"{cost:,g}", "yes" if candidate in found.chosen else "no"] in rows
    assert "Least precise: tau:" in text(root.find(".//header"))
    expected = found.bought.expected
    k = int(np.argmax(expected.worst_sigma))
    figures = [number(of[k], 2) for of in (expected.worst_sigma, expected.median_sigma)]
    assert any(row[:3] == [expected.outputs[k], *figures] for row in rows)
    assert ("instead of it" in said) == (name == "cheapest")


def test_a_front_is_drawn_with_each_of_its_sets():
    found, root = front(), parsed(page_of("front"))
    drawn = [title.text for title in root.findall(".//svg/circle/title")]
    rows = [[text(cell) for cell in row] for row in root.iter("tr")]
    assert len(drawn) == len(found.points) > 3
    for point, title in zip(found.points, drawn, strict=True):
        cost, size, deviation = f"{point.cost:,g}", len(point.chosen), number(point.deviation)
        assert title == f"{size} sensors for {cost}: {deviation}"
        assert any(row[:3] == [cost, str(size), deviation] for row in rows)
        assert [cost, ", ".join(point.chosen)] in rows
    heights = [float(circle.get("cy")) for circle in root.findall(".//svg/circle")]
    assert heights == sorted(heights)


# ------------------------------------------------------------------------------------ a sound file


@pytest.mark.parametrize("name", [*CASES, "cheapest", "best", "front"])
def test_page_is_sound_and_stands_alone(name):
    page = page_of(name)
    root = parsed(page)
    assert page.startswith("<!DOCTYPE html>\n")
    assert root.get("lang") == "en"
    levels = [int(h.tag[1]) for h in root.iter("h1", "h2", "h3")]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert_stands_alone(page, root)
    assert not [*root.iter("script")]
    assert {e.get("aria-labelledby") for e in root.iter("section")} <= {e.get("id") for e in root.iter()}
    for drawing in root.iter("svg"):
        assert drawing.get("aria-hidden") == "true" or (drawing.get("role") == "img" and drawing.get("aria-label"))
    for row in root.iter("tr"):
        assert len(row) == len(row.getparent().getparent().find("thead/tr"))


def test_names_from_files_cannot_change_the_page():
    nasty = ['<script>alert("1")</script>', "a&b", "</style><b>", "'\"><img src=x>", "足の裏", "{{ 7 * 7 }}"]
    tree = autotree(6).replace(name=nasty[0], names=tuple(nasty), joint_names=tuple(f"j {name}" for name in nasty))
    system = System(tree, sensor_set(ACCELERATIONS, name='"><script>'))
    report = observability(system)
    page = to_html(report, swept(system), redundancy(system))
    assert "\ue000" not in page  # what keeps names with spaces together in lines of text
    root = parsed(page)
    assert not [*root.iter("script", "img")]
    assert [text(b) for b in root.iter("b")] == ['"><script>', nasty[0], "Add this."]  # all that is bold
    assert [title.text for title in root.iterfind(".//svg/g[@class]/title")] == nasty
    assert nasty[5] in text(root)


# ------------------------------------------------------------------------------------ the drawings


def drawn(tree: KinematicTree):
    all_is_determined = observability(System(autotree(1), INVERSE), where=None)
    return tree_drawing(System(tree, INVERSE), all_is_determined)


def test_each_link_has_its_row_right_of_or_below_its_parent():
    for tree in (autotree(1), autotree(60), autotree(60, 2), *(random_tree(40, s) for s in range(4))):
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


def test_bars_hold_every_configuration_once():
    for N, spread in ((1, 0.0), (500, 0.5), (500, 3.0), (500, 14.0)):
        smallest = 10 ** -np.random.default_rng(1).uniform(0, spread + 1e-3, N)
        table = margin_bars(np.concatenate([smallest, np.zeros(3)]))
        (lost, *bars), (is_lost, *are_low) = table.rows, (level == "low" for level in table.levels)
        assert (*lost, is_lost) == ("not determined", 3, True)
        assert sum(count for _, count in bars) == N
        assert sum(count for (_, count), low in zip(bars, are_low, strict=True) if low) == np.sum(
            smallest < NEARLY_SINGULAR
        )
        assert bars[0][1] > 0
        assert bars[-1][1] > 0
        assert max(share for (share,) in table.bars) == 1.0
        ends = [[float(end) for end in of.split(" to ")] for of, _ in bars]
        assert all(one[1] == other[0] for one, other in pairwise(ends))
    assert margin_bars(np.zeros(7)).rows == (("not determined", 7),)  # of a singular system
    assert elided("gripper_left_motor_double_link") == "gripper_lef…_double_link"


# -------------------------------------------------------------------------------------- in a browser


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


COLUMNS = """() => {
  const boxes = [...document.querySelectorAll(".column")].map(c => c.getBoundingClientRect());
  if (boxes[0].top !== boxes[1].top) return 0;
  const ends = [...document.querySelectorAll(".column")].map(c => c.lastElementChild.getBoundingClientRect().bottom);
  return Math.abs(ends[0] - ends[1]) / (Math.max(...ends) - boxes[0].top);
}"""
"""The share of a column that is empty, where there are two."""


LINKS = "[...document.querySelectorAll('.link text')].map(t => [t.textContent, t.getBBox().width])"
"""The names of links that are drawn, and how wide they are."""


LONG = ("arm", "not at parallel soles")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in (*CASES, "cheapest")]
)
def test_in_a_browser(browser, tmp_path, name):
    tree = case(name)[0].tree if name in CASES else bought(name).bought.system.tree
    for width, view in shown(browser, page_of(name), tmp_path / "page.html"):
        assert_verdict_shows(view)
        assert view.evaluate("document.compatMode") == "CSS1Compat"
        assert view.evaluate(COLUMNS) < (0.4 if width == "desktop" else 1e-9)
        assert_readable(view)
        assert view.evaluate(OVERLAPS) == []
        links = dict(view.evaluate(LINKS))
        assert set(links) == {elided(link) for link in tree.names}
        assert all(length > 5 * len(link) for link, length in links.items())
