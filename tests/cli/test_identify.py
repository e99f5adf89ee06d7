"""nori-dyn identify: what it finds in logs of simulated robots, what it writes, what it notices, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from tests.browser import parsed, text
from tests.robots import ROBOTS, load
from tests.unit.identification.simulated import changed, saved_log

UR5 = ("--robot", ROBOTS["ur5"])


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in a new folder with a log of an arm with friction and other inertias; return the arm as simulated."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    _, other = changed(load("ur5"), seed=1)
    other = other.replace(components=(nd.components.Friction(joints="all", viscous=0.7, coulomb=1.5, width=0.01),))
    saved_log(Path("log.npz"), other, sigma=0.05, seed=1)
    return other


def test_a_robot_is_found_written_and_drawn(run, here):
    files = ("--out", "found.urdf", "--components-out", "found.yaml", "--html", "found.html")
    status, output, errors = run("identify", "log.npz", *UR5, *files)
    assert (status, errors) == (0, "")
    lines = output.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("58 of 58 combinations are told.")
    assert "Robot written to found.urdf." in lines
    assert "Page written to found.html." in lines
    assert any(line.startswith("held out  the last 33 % of each log") for line in lines)
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 6))
    expected = nd.rnea(here, q, qd, qdd)
    found = nd.load_robot("found.urdf", components="found.yaml")
    np.testing.assert_allclose(nd.rnea(found, q, qd, qdd), expected, atol=0.1)
    page = parsed(Path("found.html").read_text())
    assert text(page.find(".//h1")).startswith("✓Errors of 0.048 to 0.051 N m now, ")


def test_nothing_is_written_unasked(run, here):
    before = sorted(Path().iterdir())
    status, output, _ = run("identify", "log.npz", *UR5, "--no-physical", "--parameters", "inertias,friction")
    assert status == 0
    assert "--out ROBOT.urdf does." in output
    assert sorted(Path().iterdir()) == before


def test_all_of_it_in_json_judged_on_another_log(run, here):
    saved_log(Path("second.npz"), here, n=800, sigma=0.05, seed=7)
    status, output, _ = run("identify", "log.npz", *UR5, "--no-physical", "--held-out", "second.npz", "--json")
    found = json.loads(output)
    assert status == 0
    assert (found["held_out"], found["samples"], found["written"]) == ("second.npz", 2000, {})
    assert all(fit["held_out"] == pytest.approx(0.05, rel=0.15) for fit in found["fits"])
    by_name = {each["name"]: each for each in found["parameters"]}
    viscous = by_name["viscous:wrist_1_joint"]
    assert viscous["how"] == "told"
    assert viscous["value"] == pytest.approx(0.7, abs=5 * viscous["deviation"])


def test_a_load_whose_mass_is_known_tells_gains(run, here):
    arm = load("ur5")
    gains = np.array([2.0, 3.0, 1.5, 4.0, 2.5, 3.5])
    I = arm.I.copy()
    I[5] += ball(2.0)
    for name, tree, seed in (("free.npz", arm, 1), ("loaded.npz", arm.replace(I=I), 2)):
        arrays = dict(np.load(saved_log(Path(name), tree, sigma=0.02, seed=seed)))
        np.savez(name, **arrays | {"tau": arrays["tau"] / gains})
    load_options = ("--loaded", "loaded.npz", "--load-on", arm.names[5], "--known", "m:load=2")
    wanted = ("--parameters", "inertias,gains", "--no-physical")
    status, output, _ = run("identify", "free.npz", *UR5, *wanted, *load_options, "--json")
    by_name = {each["name"]: each for each in json.loads(output)["parameters"]}
    assert status == 0
    assert by_name["m:load"]["how"] == "known"
    for joint, gain in zip(arm.joint_names, gains, strict=True):
        assert by_name[f"gain:tau:{joint}"]["value"] == pytest.approx(gain, rel=0.02)


def ball(m: float) -> np.ndarray:
    """Return the spatial inertia of a ball about its centre."""
    return np.diag([0.01 * m] * 3 + [m] * 3)


def test_offsets_alone_are_a_calibration(run, here):
    arrays = dict(np.load(saved_log(Path("log.npz"), load("ur5"), sigma=0.01)))
    np.savez("log.npz", **arrays | {"tau": arrays["tau"] + np.arange(6)})
    status, output, _ = run("identify", "log.npz", *UR5, "--parameters", "offsets")
    assert status == 0
    assert "6 of 6 combinations are told" in output
    assert "--out" not in output  # there is nothing of a robot to write
    assert "wrist_3_joint" in output


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda log: log | {"tau": log["tau"] * np.array([1, -1, 1, 1, 1, 1])}, "Its sign is likely turned"),
        (lambda log: log | {"tau": -log["tau"]}, "would have a negative inertia in every pose"),
        (lambda log: {k: v[8:] for k, v in log.items()} | {"tau": log["tau"][:-8]}, "seem to come after the motion"),
        (lambda log: {k: v if k == "t" else 0 * v + v[5] for k, v in log.items()}, "stood still all the time"),
    ],
    ids=["a sign turned", "all signs turned", "late readings", "no motion"],
)
def test_what_is_odd_is_said_first(run, here, spoil, said):
    arrays = dict(np.load(saved_log(Path("log.npz"), load("ur5"), sigma=0.01, dt=0.004, n=3000)))
    np.savez("log.npz", **spoil(arrays))
    status, output, errors = run("identify", "log.npz", *UR5, "--no-physical")
    assert (status, errors) == (0, "")
    said_first = " ".join(output.partition("Fit by reading")[0].split())
    assert "Look at this first:" in said_first
    assert said in said_first


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--parameters", "I:elbow.*"), "unknown parameter 'I:elbow.*'"),
        (("--known", "m:load"), "such as m:load=2.5"),
        (("--loaded", "log.npz"), "which link carries the load"),
        (("--held-out", "none.npz"), "none.npz"),
        (("--held-out", "2"), "the share held out is 2"),
        (("--cutoff", "500"), "the cutoff is 500 Hz"),
        (("--cutoff", "0.05"), "too few"),
        (("--parameters", "gains,inertias"), "nothing tells how large forces are"),
        (("--out", "found.xml"), "is a URDF"),
        (("--out", "no/found.urdf"), "does not exist"),
        (("--html", "no/found.html"), "does not exist"),
        (("--sensors", "forward_dynamics"), "do not tell the motion"),
    ],
)
def test_what_is_refused_in_words(run, here, options, said):
    status, output, errors = run("identify", "log.npz", *UR5, *options)
    assert status == 1
    assert output == ""
    assert errors.startswith("error: ")
    assert said in errors
    assert [path.name for path in Path().iterdir()] == ["log.npz"]
