"""The page of a log: what it says, that its lines are the data, that it stands alone, and that a browser shows it."""

import base64
import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.report.layout import rendered
from nori_dyn.report.log_page import log_page, verdict
from nori_dyn.report.recorded import SINGULAR, RecordedLog, alarm, misfit, suspicions, windows
from nori_dyn.report.skeleton import skeleton
from nori_dyn.report.time_plots import SIZE
from nori_dyn.report.view import recorded
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.plausibility.warning import PlausibilityWarning
from nori_dyn.tables import number
from tests.browser import assert_readable, assert_stands_alone, assert_verdict_shows, parsed, shown, text
from tests.recorded_logs import DT, FAULTY, GAP, MISSING, SPIKE, START, N, estimated, exact_plan, log_file
from tests.systems import ACCELERATIONS, UNLOADED, sensor_set
from tests.unit.report.test_curves import points

FIRST, SECOND = "second:panda_joint2", "third:panda_joint4"
"""The sensors that were given faults."""


@cache
def log(name: str = "faulty") -> RecordedLog:
    return recorded(estimated(name))


def log_to_html(log: RecordedLog, names: Sequence[str] = ()) -> str:
    return rendered(log_page(log, names))


@cache
def page(name: str = "faulty") -> str:
    return log_to_html(log(name))


@cache
def exact() -> RecordedLog:
    return recorded(nd.estimate(log_file("sound"), exact_plan(("tau",)), backend="numpy"))


def panels(root, section: str = "estimates") -> dict:
    """The figures of a section by their titles."""
    (own,) = (each for each in root.iter("section") if each.get("aria-labelledby") == section)
    return {text(figure.find("figcaption/b")): figure for figure in own.iter("figure")}


def frame_of(figure) -> tuple:
    """The frame of a figure, and the numbers at its lower and upper end."""
    frame = figure.find("div[@class='frame']")
    return frame, float(frame.get("data-low")), float(frame.get("data-high"))


def read_back(figure, label: str) -> tuple[np.ndarray, np.ndarray, float]:
    """The times and numbers of a line as they are drawn, and how exact the numbers are."""
    frame, low, high = frame_of(figure)
    labels = [text(key) for key in figure.iterfind("figcaption/span") if "key" in key.get("class")]
    paths = [path for path in frame.iter("path") if "line" in path.get("class")]
    parts = points(paths[labels.index(label)].get("d"))
    at = np.array([point for part in parts for point in part[1:]], dtype=float)
    end = log().time[-1]
    return at[:, 0] / SIZE * end, high - at[:, 1] / SIZE * (high - low), (high - low) / SIZE


# ------------------------------------------------------------------------------------- what it says


def test_the_verdict_names_the_faulty_sensor_and_when():
    root = parsed(page())
    assert root.find("body/main")[0].tag == "header"
    assert root.find("body/main/header").get("class") == "no"
    assert text(root.find(".//h1")).endswith(f"{FIRST} does not fit the other sensors")
    said = text(root.find(".//header"))
    start, stop = (DT * sample for sample in (FAULTY.start, FAULTY.stop - 1))
    assert f"from {start:g} s to {stop:g} s" in said
    assert f"Suspect as well: {SECOND}." in said
    assert f"tau:panda_joint3 in {MISSING.stop - MISSING.start} of {N:,} samples" in said
    assert "The log has 1 gap, the longest of 2.01 s." in said
    rows = {text(row[0]): text(row[1]) for row in root.iterfind(".//dl/div")}
    assert rows["first sample"] == f"at {START:.6f} s of the log's own time"
    assert rows["gaps"] == "1"
    assert rows["readings"] == "28 weighted, of 28 sensors"


def test_suspects_are_those_that_were_made_faulty_and_when_they_were():
    suspects = log().suspects
    assert list(suspects) == [FIRST, SECOND]
    hit = {sensor: {k for each in own for k in range(each.first, each.stop)} for sensor, own in suspects.items()}
    width = N // len(list(windows(N)))
    assert hit[FIRST] == set(range(FAULTY.start, FAULTY.stop))
    assert SPIKE in hit[SECOND]
    assert len(hit[SECOND]) == width
    assert all(each.is_first for own in suspects.values() for each in own)
    z = log().diagnosis.normalised[:, log().diagnosis.readings.index(SECOND)]
    assert suspects[SECOND][0].strength == pytest.approx(abs(z[SPIKE]))


def test_sound_sensors_are_not_accused():
    """And of a thousand logs of made up residuals, about one is; of forty, none is to be expected."""
    root = parsed(page("sound"))
    assert text(root.find(".//h1")).endswith("The readings fit together")
    assert log("sound").suspects == {}
    assert "suspect" not in text(root.find(".//header"))
    diagnosis = log("sound").diagnosis
    assert np.nanmax(np.abs(diagnosis.normalised)) < alarm(diagnosis)
    rng, spreads, accused = np.random.default_rng(7), diagnosis.spreads[:200], 0
    for _ in range(40):
        noise = np.where(np.isnan(spreads), 0.0, spreads) * rng.normal(size=spreads.shape)
        known = diagnosis.estimate, {}, diagnosis.readings, diagnosis.sensors
        accused += bool(suspicions(Diagnosis(*known, noise, spreads, np.ones(200), np.ones(200, dtype=int))))
    assert accused <= 1


def test_a_misfit_is_chi_square_over_its_degrees_of_freedom():
    found = SimpleNamespace(degrees_of_freedom=np.array([0, 1, 4]), chi_square=np.array([0.0, 3.0, 8.0]))
    np.testing.assert_array_equal(misfit(found), [np.nan, 3.0, 2.0])


def test_what_is_steadily_off_within_sigma_is_said_to_be():
    sound = log("sound")
    residuals = sound.diagnosis.residuals + 0.5 * sound.diagnosis.spreads
    off = replace(sound, diagnosis=replace(sound.diagnosis, residuals=residuals))
    root = parsed(log_to_html(off))
    assert text(root.find(".//h1")).endswith("The readings fit within their sigmas, but are steadily off")
    assert root.find(".//header").get("class") == "sometimes"


def test_without_a_monitor_it_shows_what_there_is():
    whole = nd.estimate(log_file("sound"), exact_plan(None), backend="numpy")
    root = parsed(log_to_html(recorded(whole)))
    assert text(root.find(".//h1")) == "Estimated: joint torque, external wrench and 3 other quantities"
    assert root.find(".//header").get("class") == "plain"
    assert "Nothing checks the readings" in text(root.find(".//header"))
    assert "All sensors are exact" in text(root.find(".//header"))
    assert [text(h) for h in root.iter("h2")] == ["The robot", "What happened when", "Estimates", "Counts"]
    shown = list(panels(root))
    assert shown[:7] == [f"tau:panda_joint{k}" for k in range(1, 8)]
    assert shown[7].startswith("qdd:")
    assert "acceleration of panda_link7, gravity included: linear" in shown
    rows = {text(row[0]): text(row[1]) for row in root.iterfind(".//dl/div")}
    assert float(rows["largest equation residual"].split(",")[0]) < 1e-10


def test_what_is_not_plausible_is_an_alarm():
    doubts = (
        PlausibilityWarning("consistency", 1.0, "the readings contradict each other."),
        PlausibilityWarning("gravity", 1.0, "the torques do not follow gravity. Did the driver subtract it?"),
    )
    for one in (log("sound"), exact()):
        root = parsed(log_to_html(replace(one, doubts=doubts[1:])))
        assert text(root.find(".//h1")).endswith("Not plausible: torques do not follow gravity")
        assert root.find(".//header").get("class") == "no"
        assert "The torques do not follow gravity. Did the driver subtract it?" in text(root.find(".//header"))
    both = parsed(log_to_html(replace(exact(), doubts=doubts)))
    assert "1 more plausibility warning; see below" in text(both.find(".//header"))
    judged = parsed(log_to_html(replace(log("sound"), doubts=doubts[:1])))  # a monitor knows better
    assert text(judged.find(".//h1")).endswith("The readings fit together")


def test_of_a_long_log_sigmas_that_are_a_little_too_small_are_no_alarm():
    for ratio, p, level, heading in (
        (1.3, 1e-9, "no", "The readings do not fit their sigmas and the model"),
        (1.3, 0.2, "yes", "The readings fit together"),
        (1.04, 1e-9, "yes", "The readings fit together"),
        (0.9, 1e-9, "yes", "The readings fit better than their sigmas say"),
    ):
        consistency = SimpleNamespace(ratio=ratio, p_value=p, degrees=22_000)
        found = verdict(replace(exact(), consistency=consistency, time=DT * np.arange(N), flags={}))
        assert (found.level, found.heading) == (level, heading)
        assert ("sigmas are 2 % too small" in found.sentences[0]) == (ratio == 1.04)


def test_torques_that_no_sensor_of_the_plan_reads_are_held_against_the_estimates(tmp_path):
    with np.load(log_file("sound")) as archive:
        tau, rest = archive["y"][:, 21:], {name: archive[name] for name in ("t", "q", "qd")}
        np.savez(tmp_path / "log.npz", qdd=archive["y"][:, :7], effort=tau, **rest)
    found = nd.estimate(tmp_path / "log.npz", exact_plan(("tau",)), backend="numpy")
    made = recorded(found, nd.read_log(tmp_path / "log.npz"))
    assert list(made.held) == [f"tau:panda_joint{k}" for k in range(1, 8)]
    figure = panels(parsed(log_to_html(made)))["tau:panda_joint2"]
    _, drawn, resolution = read_back(figure, "measured")
    np.testing.assert_allclose(drawn, tau[:, 1], atol=resolution)
    rms = np.sqrt(np.mean((found["tau"] - tau)[:, 1] ** 2))
    correlation = np.corrcoef(found["tau"][:, 1], tau[:, 1])[0, 1]
    assert text(figure.find("p")) == f"rms difference {number(rms, 2)} N m, correlation {correlation:.3f}."
    assert recorded(found).held == {}
    assert recorded(estimated(), nd.read_log(log_file())).held == {}  # its sensors read them


def test_strips_say_when_something_happened():
    root = parsed(page())
    labels = [text(label).partition("\n")[0] for label in root.iterfind(".//div[@class='label']")]
    strips = dict(zip(labels, root.iterfind(".//div[@class='frame strip']"), strict=True))

    def marked(beginning: str) -> tuple[float, float]:
        """When the only mark of a strip starts, and how long it is."""
        (strip,) = (strip for label, strip in strips.items() if label.startswith(beginning))
        (found,) = (re.match(r"M(\d+) 0h(\d+)", path.get("d")).groups() for path in strip.iter("path"))
        return tuple(int(each) / SIZE * log().time[-1] for each in found)

    start, width = marked("dropped: tau:panda_joint3")
    assert start <= DT * MISSING.start + 0.02
    assert start + width >= DT * (MISSING.stop - 1) - 0.02
    assert width < 0.3
    assert marked("gaps in time") == pytest.approx((DT * GAP, 2.01), abs=0.02)


def test_rows_without_a_solution_are_counted_and_break_the_lines():
    singular = np.zeros(N, dtype=bool)
    singular[100:150] = True
    values = {name: np.where(singular.reshape(-1, *[1] * (x.ndim - 1)), np.nan, x) for name, x in log().values.items()}
    root = parsed(log_to_html(replace(log(), values=values, flags={SINGULAR: singular})))
    assert f"50 of {N:,} samples have no unique solution" in text(root.find(".//header"))
    t, _, _ = read_back(panels(root)["tau:panda_joint1"], "estimated")
    assert not ((t > log().time[100] - 1e-3) & (t < log().time[149] + 1e-3)).any()


# --------------------------------------------------------------------------------- lines are the data


def test_lines_are_the_numbers_of_the_log():
    root, judged = parsed(page()), log().diagnosis
    cases = {
        ("estimates", "tau:panda_joint2", "estimated"): log().estimates["tau:panda_joint2"],
        ("estimates", "tau:panda_joint2", "measured"): log().readings["tau:panda_joint2"],
        ("estimates", "external wrench on panda_link7: force", "fz"): log().estimates["fx:panda_link7.fz"],
        ("residuals", FIRST, "residual"): judged.normalised[:, judged.readings.index(FIRST)],
        ("readings", FIRST, "measured"): log().readings[FIRST],
        ("readings", FIRST, "estimated"): log().readings[FIRST] - judged.residuals[:, judged.readings.index(FIRST)],
        ("estimates", "tau:panda_joint3", "measured"): log().readings["tau:panda_joint3"],  # of which some is missing
    }
    for (section, title, label), x in cases.items():
        t, drawn, resolution = read_back(panels(root, section)[title], label)
        known = np.isfinite(x)
        assert known.all() == (title != "tau:panda_joint3")
        np.testing.assert_allclose(t, log().time[known], atol=log().time[-1] / SIZE)
        np.testing.assert_allclose(drawn, x[known], atol=resolution)


def test_bands_are_two_standard_deviations():
    frame, low, high = frame_of(panels(parsed(page()))["external wrench on panda_link7: force"])
    band = next(path for path in frame.iter("path") if path.get("class") == "band c2")
    upper = []
    for part in band.get("d").split("z")[:-1]:
        at = np.array(re.findall(r"-?\d+", part), dtype=float).reshape(-1, 2).cumsum(axis=0)
        upper += list(high - at[: len(at) // 2, 1] / SIZE * (high - low))
    expected = log().estimates["fx:panda_link7.fz"] + 2 * log().deviations["fx:panda_link7.fz"]
    np.testing.assert_allclose(upper, expected, atol=2 * (high - low) / SIZE)


def test_long_logs_give_small_pages_on_which_a_spike_is_seen():
    n = 600_000
    rng = np.random.default_rng(2)
    t = np.arange(n) * 1e-3
    base = exact()
    tau = rng.normal(size=(n, 7))
    tau[123_456, 2] = 500.0
    long = replace(base, time=t, start=0.0, q=np.zeros((n, 7)), readings={}, values={"tau": tau}, flags={})
    made = log_to_html(long)
    assert len(made) < 3_000_000
    frame, low, high = frame_of(panels(parsed(made))["tau:panda_joint3"])
    path = next(path for path in frame.iter("path") if "line" in path.get("class"))
    x, y = min((point for part in points(path.get("d")) for point in part), key=lambda point: point[1])
    assert high - y / SIZE * (high - low) == pytest.approx(500, abs=0.1)
    assert x / SIZE * t[-1] == pytest.approx(123.456, abs=1.0)


def test_names_choose_what_is_drawn(tmp_path):
    root = parsed(log_to_html(log(), ["fx:panda_link7.fz", "tau:panda_joint1"]))
    assert set(panels(root)) == {"tau:panda_joint1", "external wrench on panda_link7: force"}
    with pytest.raises(nd.errors.UnknownOutputError, match="tua"):
        nd.view(estimated(), tmp_path / "log.html", ["tua"])
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------ a sound file


@pytest.mark.parametrize("name", ["faulty", "sound"])
def test_the_page_stands_alone_and_only_its_own_script_may_run(name):
    made = page(name)
    root = parsed(made)
    assert_stands_alone(made, root)
    assert not root.findall(".//link[@rel='stylesheet']")
    assert all(svg.get("role") == "img" and svg.get("aria-label") for svg in root.iter("svg"))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', made)[1]
    (script,) = re.findall(r"<script>(.*?)</script>", made, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


def test_equal_logs_give_equal_pages_and_names_cannot_change_them():
    assert log_to_html(recorded(estimated())) == page()
    nasty = '</script><script>alert("1")</script>'
    made = log_to_html(replace(log(), name=nasty, unjudged=nasty))
    root = parsed(made)
    assert len([*root.iter("script")]) == 3
    assert nasty in text(root.find(".//header"))


# -------------------------------------------------------------------------------------- in a browser


def test_in_a_browser(browser, tmp_path):
    for _, view in shown(browser, page(), tmp_path / "log.html"):
        assert_verdict_shows(view)
        assert_readable(view)


def test_the_pointer_tells_numbers_and_a_drag_looks_closer(browser, tmp_path):
    views = shown(browser, page(), tmp_path / "log.html", "desktop")
    _, view = next(views)
    figure = view.locator("section[aria-labelledby=estimates] figure", has_text="tau:panda_joint2")
    frame = figure.locator(".frame")
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()

    def told(sample: int, low: float, high: float) -> float:
        share = (log().time[sample] - low) / (high - low)
        view.mouse.move(box["x"] + 1 + share * (box["width"] - 2), box["y"] + box["height"] / 2)
        return float(figure.locator(".key", has_text="estimated").locator("output").inner_text())

    x, end = log().estimates["tau:panda_joint2"], float(log().time[-1])
    for sample in (50, 700, 1700):
        near = slice(sample - 3, sample + 4)
        assert x[near].min() - 0.02 <= told(sample, 0.0, end) <= x[near].max() + 0.02
        assert view.locator(".time output").inner_text().startswith("t = ")
    view.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 20)
    view.mouse.down()
    view.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 20, steps=4)
    view.mouse.up()
    starts = view.evaluate(
        "[...new Set([...document.querySelectorAll('.frame svg')].map(s => s.getAttribute('viewBox').split(' ')[0]))]"
    )
    assert len(starts) == 1
    assert float(starts[0]) == pytest.approx(0.2 * SIZE, abs=0.01 * SIZE)
    labels = figure.locator(".xs span").all_inner_texts()
    assert all(0.18 * end <= float(label) <= 0.42 * end for label in labels)
    reach = 1 + math.ceil(0.2 * N / box["width"])  # samples of a pixel, and one
    near = slice(600 - reach, 601 + reach)
    assert x[near].min() - 0.01 <= told(600, 0.2 * end, 0.4 * end) <= x[near].max() + 0.01
    view.keyboard.press("Escape")
    assert view.evaluate("document.querySelector('.frame svg').getAttribute('viewBox')").startswith("0 ")
    assert not [*views]


# ----------------------------------------------------------------------------------------- the robot

SEEN = """() => ({
  bones: document.querySelector(".skeleton .bones").getAttribute("d"),
  arrow: document.querySelector(".skeleton .arrow").getAttribute("d"),
  cone: document.querySelector(".skeleton .cone").getAttribute("d"),
  now: [...document.querySelectorAll(".skeleton .mark")].map(each => each.classList.contains("now")),
  told: [...document.querySelectorAll(".skeleton .arrow-size")].map(each => each.textContent),
})"""
"""What a browser shows of the robot."""


def test_the_robot_is_drawn_at_the_time_that_one_points_at_and_turns(browser, tmp_path):
    views = shown(browser, page(), tmp_path / "log.html", "desktop")
    _, view = next(views)
    robot = skeleton(log(), int)
    first = view.evaluate(SEEN)
    assert first["bones"].count("M") == len(robot.bones) >= 5
    np.testing.assert_allclose(numbers_in(first["bones"]), numbers_in(robot.drawn[0]), atol=0.15)
    strip = view.locator(".frame.strip").first.bounding_box()

    def pointed(sample: int) -> dict:
        share = log().time[sample] / log().time[-1]
        view.mouse.move(strip["x"] + 1 + share * (strip["width"] - 2), strip["y"] + strip["height"] / 2)
        return view.evaluate(SEEN)

    faulty, spike = (pointed(k) for k in ((FAULTY.start + FAULTY.stop) // 2, SPIKE))
    assert faulty["bones"] != first["bones"] != spike["bones"]
    assert (faulty["now"], spike["now"]) == ([True, False], [False, True])
    for sample in (150, 1500):
        force, _ = pointed(sample)["told"]
        size, sigma, unit = re.fullmatch("(.*) ± (.*) (.*)", force).groups()
        near = slice(sample - 25, sample + 26)
        sizes = np.linalg.norm([log().estimates[f"fx:panda_link7.f{axis}"][near] for axis in "xyz"], axis=0)
        sigmas = [log().deviations[f"fx:panda_link7.f{axis}"][near] for axis in "xyz"]
        assert 0.99 * sizes.min() <= float(size) <= 1.01 * sizes.max()
        assert 0.99 * np.min(sigmas) <= float(sigma) <= 1.01 * np.max(sigmas)
        assert unit == "N"
    before = view.evaluate(SEEN)
    box = view.locator(".skeleton svg").bounding_box()
    view.mouse.move(box["x"] + 100, box["y"] + 100)
    view.mouse.down()
    view.mouse.move(box["x"] + 180, box["y"] + 120, steps=4)
    view.mouse.up()
    after = view.evaluate(SEEN)
    assert all(after[name] != before[name] for name in ("bones", "arrow", "cone"))
    assert after["told"] == before["told"]
    view.locator(".skeleton svg").focus()
    view.keyboard.press("ArrowLeft")
    assert view.evaluate(SEEN)["bones"] != after["bones"]
    view.locator(".playing input").fill("0")
    assert view.locator(".moment-shown").inner_text() == "t = 0.000 s"
    view.locator(".playing button").click()
    view.locator(".moment-shown", has_not_text="t = 0.000 s").wait_for()
    view.locator(".playing button").click()
    assert not [*views]


def numbers_in(path: str) -> np.ndarray:
    return np.array(re.findall(r"-?[\d.]+", path), dtype=float)


def test_only_torques_are_drawn_as_measured_torques(tmp_path, monkeypatch):
    """Neither y[0], the first reading of the plan, nor an accelerometer with an offset is a torque."""
    monkeypatch.chdir(tmp_path)
    imu = {"type": "accelerometer", "links": "link1", "sigma": 0.1, "offset": {"sigma": 1.0}, "name": "imu"}
    sensors = sensor_set(ACCELERATIONS, imu, UNLOADED, name="offset")
    plan = nd.plan(nd.autotree(1), sensors, outputs=["tau", "offset"])
    still = np.zeros((100, 1))
    np.savez("log.npz", t=np.arange(100) * 0.01, q=still, qd=still, y=np.zeros((100, plan.system.ny)))
    nd.view(nd.estimate("log.npz", plan, backend="numpy"), "log.html", log=nd.read_log("log.npz"))
    assert "Torques that are measured" not in Path("log.html").read_text()
