"""Robots that have a preset, from the command line: listed, a sample log, one command from a log to a page."""

import numpy as np
import pytest

import nori_dyn as nd


@pytest.fixture
def pendulum(run, tmp_path, monkeypatch):
    """The sample log, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    status, out, _ = run("demo", "--log", "pendulum.csv")
    assert status == 0
    assert "Next: nori-dyn estimate pendulum.csv --robot double_pendulum" in out
    return tmp_path / "pendulum.csv"


def test_one_command_from_a_log_to_a_page(run, pendulum):
    status, out, warned = run("estimate", "pendulum.csv", "--robot", "double_pendulum", "--backend", "numpy")
    assert (status, warned) == (0, "")
    assert "recorded: columns time, pos1, pos2, vel1, vel2, tau1, tau2" in out
    page = (pendulum.parent / "pendulum.double_pendulum.html").read_text()
    assert "Estimated: joint torque" in page
    assert page.count("rms difference") == 2  # measured beside estimated, of each joint
    table = np.genfromtxt(pendulum.parent / "pendulum.double_pendulum.csv", delimiter=",", names=True)
    measured = np.genfromtxt(pendulum, delimiter=",", names=True)
    off = table["taushoulder"] - np.interp(table["t"], measured["time"], measured["tau1"])
    assert np.median(np.abs(off)) < 0.1


def test_what_different_sensors_estimate_is_run_one_after_the_other(run, refused, pendulum):
    preset = nd.preset("double_pendulum").path
    more = "  known:\n    about: torques of the motion alone\n    sensors: inverse_dynamics\n    outputs: [tau]\nlogs:"
    text = preset.read_text().replace("models/", f"{preset.parent}/models/").replace("logs:", more)
    (pendulum.parent / "arm.yaml").write_text(text)
    command = ("estimate", "pendulum.csv", "--robot", "arm.yaml", "--backend", "numpy", "--what", "torques,known")
    assert "--out: does not go with 2 runs" in refused(*command, "--out", "found.csv", status=2)
    status, out, _ = run(*command)
    assert status == 0
    for what in ("torques", "known"):
        assert f"Estimates written to pendulum.arm.{what}.csv" in out
        columns = (pendulum.parent / f"pendulum.arm.{what}.csv").read_text().splitlines()[0].split(",")
        assert "tau:shoulder" in columns
        assert ("offset:tau:shoulder" in columns) == (what == "torques")
        assert (pendulum.parent / f"pendulum.arm.{what}.html").exists()


def test_what_is_doubtful_stops_before_anything_is_written(run, pendulum):
    table = np.loadtxt(pendulum, delimiter=",", skiprows=1)
    table[:, 5:] *= -1
    np.savetxt("turned.csv", table, delimiter=",", header="time,pos1,pos2,vel1,vel2,tau1,tau2", comments="")
    command = ("estimate", "turned.csv", "--robot", "double_pendulum", "--backend", "numpy")
    status, _, said = run(*command)
    assert status == 1
    assert "turned.csv was not read: 1 thing to look at first" in said
    assert "They have the other sign" in said
    assert not list(pendulum.parent.glob("turned.double*"))
    assert run(*command, "--yes", "--out", "found.npz")[0] == 0
    assert (pendulum.parent / "found.npz").exists()


def test_a_model_is_enough_where_a_robot_has_no_preset(run, pendulum):
    preset = nd.preset("double_pendulum")
    (pendulum.parent / "arm.urdf").write_text(preset.file.read_text())
    table = np.genfromtxt(pendulum, delimiter=",", names=True)
    columns = {"time": "time", "pos1": "shoulder_pos", "pos2": "elbow_pos", "tau1": "shoulder_tau", "tau2": "elbow_tau"}
    numbers = np.column_stack([table[name] for name in columns])
    np.savetxt("named.csv", numbers, delimiter=",", header=",".join(columns.values()), comments="")
    status, out, _ = run("estimate", "named.csv", "--model", "arm.urdf", "--backend", "numpy")
    assert status == 0
    assert "made of the positions, by a smoother" in out
    found = np.genfromtxt("named.arm.csv", delimiter=",", names=True)
    off = found["taushoulder"] + found["offsettaushoulder"] - np.interp(found["t"], table["time"], table["tau1"])
    assert np.abs(off).max() < 1e-6


def test_a_folder_is_a_log_and_what_of_it_is_not_read_is_said_once(run, pendulum):
    (pendulum.parent / "run").mkdir()
    pendulum.rename("run/pendulum.csv")
    (pendulum.parent / "run/notes.txt").write_text("A pendulum, by hand:\nit swings.\n")
    status, out, warned = run("estimate", "run", "--robot", "double_pendulum", "--backend", "numpy", "--yes")
    assert status == 0
    assert "Estimates written to run.double_pendulum.csv" in out
    assert warned.count("run/notes.txt:2") == 1


def test_robots_that_are_ready_are_listed_with_what_each_can_estimate(told, figures):
    assert "Then: nori-dyn estimate LOG --robot PRESET" in told("robots")
    assert figures("robots")["presets"]["double_pendulum"]["estimates"] == ["torques"]
    assert "PM_measured" in told("robots", "double_pendulum")
    assert figures("robots", "double_pendulum")["order"] == ["shoulder", "elbow"]


def test_a_plan_or_a_robot_and_not_both(refused, pendulum):
    for given in ((), ("--plan", "a.plan", "--robot", "double_pendulum"), ("--plan", "a.plan", "--model", "arm.urdf")):
        assert "name a plan, or a robot: --robot" in refused("estimate", "pendulum.csv", *given, status=2)
    assert "--what: needs --robot" in refused("estimate", "pendulum.csv", "--plan", "a.plan", "--what", "tau", status=2)
    assert "unknown robot" in refused("estimate", "pendulum.csv", "--robot", "pendulum")
