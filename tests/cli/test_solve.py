"""nori-dyn solve: what it says about a log that is not likely, and what a monitor adds to the estimates."""

from __future__ import annotations

import json

import numpy as np
import pytest

import nori_dyn as nd
from tests.cli.test_cli import FINGERS, HELD, PANDA, write_gaps, write_states

N, DT = 60, 0.02
CENTRE = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])

SOFT = """
name: soft
measurements:
  - {type: joint_acceleration, joints: all, sigma: 0.5}
  - {type: joint_torque, joints: all, sigma: 0.5}
  - {type: external_wrench, links: all, value: 0}
"""


@pytest.fixture
def soft_plan(run, tmp_path):
    path, sensors = tmp_path / "soft.plan", tmp_path / "soft.yaml"
    sensors.write_text(SOFT)
    assert run("plan", PANDA, "--sensors", sensors, "--out", path, "--outputs", "tau,qdd", *FINGERS)[0] == 0
    return path


def write_log(path, plan, units=(1.0, 1.0, 1.0), **more):
    """Write a swing of the arm, with q, qd and torques in units of one's own."""
    tree = nd.Plan.load(plan).system.tree
    t = DT * np.arange(N)
    phases = np.multiply.outer(t, np.linspace(2, 4, 7)) + np.arange(7)
    q = CENTRE + 0.5 * np.sin(phases)
    qd, qdd = 0.5 * np.linspace(2, 4, 7) * np.cos(phases), -0.5 * np.linspace(2, 4, 7) ** 2 * np.sin(phases)
    tau = np.array([nd.rnea(tree, *state) for state in zip(q, qd, qdd, strict=True)])
    tau += np.random.default_rng(0).normal(scale=0.5, size=tau.shape)
    np.savez(path, q=q * units[0], qd=qd * units[1], y=np.column_stack([qdd, tau * units[2]]), **more)
    return t


def test_a_likely_log_is_solved_without_a_word(run, soft_plan, tmp_path):
    write_log(tmp_path / "log.npz", soft_plan)
    arguments = ("solve", "--plan", soft_plan, "--input", tmp_path / "log.npz", "--out", tmp_path / "out.csv")
    status, _, errors = run(*arguments, "--dt", DT)
    assert (status, errors) == (0, "")
    assert json.loads(run(*arguments, "--json")[1])["warnings"] == []


def test_an_unlikely_log_is_solved_and_doubted(run, soft_plan, tmp_path):
    write_log(tmp_path / "log.npz", soft_plan, units=(180 / np.pi, 1.0, 1.0))
    arguments = ("solve", "--plan", soft_plan, "--input", tmp_path / "log.npz", "--out", tmp_path / "out.npz")
    status, output, errors = run(*arguments, "--dt", DT)
    assert status == 0
    assert "60 samples" in output
    lines = errors.splitlines()
    assert all(line.startswith("warning: ") for line in lines)
    assert any("Angles look like degrees" in line for line in lines)
    told = json.loads(run(*arguments, "--dt", DT, "--json")[1])["warnings"]
    assert {"limits", "rates", "consistency"} <= {doubt["check"] for doubt in told}
    assert all(0 < doubt["share"] <= 1 for doubt in told)
    with np.load(tmp_path / "out.npz") as found, np.load(tmp_path / "log.npz") as log:
        expected = nd.Plan.load(soft_plan).solver().solve_batch(log["q"], log["qd"], log["y"])
        np.testing.assert_array_equal(found["tau"], expected.tau)  # as it was given


def test_torques_in_another_unit(run, soft_plan, tmp_path):
    write_log(tmp_path / "log.npz", soft_plan, units=(1.0, 1.0, 1000.0))
    arguments = ("solve", "--plan", soft_plan, "--input", tmp_path / "log.npz", "--out", tmp_path / "out.npz")
    errors = run(*arguments)[2]
    assert "joint_torque looks a thousand times too large (mN m for N m" in errors


def test_the_step_of_time_is_that_of_the_log_or_given(run, soft_plan, tmp_path):
    t = DT * np.arange(N)
    write_log(tmp_path / "log.npz", soft_plan, time=t)
    arguments = ("solve", "--plan", soft_plan, "--input", tmp_path / "log.npz", "--out", tmp_path / "out.npz")
    assert run(*arguments)[2] == ""
    assert "They agree with 0.02 s between samples" in run(*arguments, "--dt", 1)[2]
    write_log(tmp_path / "log.npz", soft_plan, time=1000 * t)
    assert "They agree with 0.02 s between samples" in run(*arguments)[2]
    assert "must be positive" in run(*arguments, "--dt", 0)[2]


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_a_monitor_adds_what_the_estimates_are_worth(run, soft_plan, tmp_path, ending):
    write_log(tmp_path / "log.npz", soft_plan)
    out = tmp_path / f"out.{ending}"
    assert run("solve", "--plan", soft_plan, "--input", tmp_path / "log.npz", "--out", out, "--monitor")[0] == 0
    with np.load(tmp_path / "log.npz") as log:
        expected = nd.Plan.load(soft_plan).monitor().check_batch(log["q"], log["qd"], log["y"])
    if ending == "npz":
        with np.load(out) as found:
            tau, sigma, p_value = found["tau"], found["sigma:tau"], found["p_value"]
    else:
        table = np.genfromtxt(out, delimiter=",", names=True, deletechars="", replace_space=" ")
        tau, sigma = (
            np.column_stack([table[f"{kind}tau:panda_joint{k + 1}"] for k in range(7)]) for kind in ("", "sigma:")
        )
        p_value = table["p_value"]
    np.testing.assert_array_equal(tau, expected.estimate.tau)
    np.testing.assert_array_equal(sigma, expected.deviations["tau"])
    np.testing.assert_array_equal(p_value, expected.p_value)


def test_a_monitor_goes_with_dropped_sensors_and_needs_some_that_are_weighed(run, tmp_path):
    sensors, plan, log = (tmp_path / name for name in ("held.yaml", "held.plan", "log.csv"))
    sensors.write_text(HELD)
    assert run("plan", PANDA, "--sensors", sensors, "--out", plan, *FINGERS)[0] == 0
    write_gaps(log, np.random.default_rng(8))
    arguments = ("--input", log, "--out", tmp_path / "out.npz", "--monitor", "--missing", "drop")
    assert run("solve", "--plan", plan, *arguments)[0] == 0
    exact = tmp_path / "exact.plan"
    assert run("plan", PANDA, "--sensors", "inverse_dynamics", "--out", exact, *FINGERS)[0] == 0
    write_states(log, np.random.default_rng(8))
    status, _, errors = run("solve", "--plan", exact, *arguments)
    assert status == 1
    assert "there is nothing to judge them by" in errors


def test_a_log_with_two_columns_of_one_name_is_refused(run, soft_plan, tmp_path):
    (tmp_path / "log.csv").write_text("q[0],q[0]\n1,2\n")
    errors = run("solve", "--plan", soft_plan, "--input", tmp_path / "log.csv", "--out", tmp_path / "out.csv")[2]
    assert "has two columns 'q[0]'" in errors
