"""nori-dyn solve: what it says about an unlikely log, and what a monitor adds; contact states on the command line."""

import json
from dataclasses import replace

import numpy as np
import pytest
import yaml

import nori_dyn as nd
from benchmarks.urdf_writer import to_urdf
from tests.cli.test_cli import FINGERS, HELD, PANDA, write_gaps, write_states
from tests.robots import ROBOTS
from tests.unit.logs.test_reading import FOOT

N, DT = 60, 0.02
RATES = np.array([2.0, 3.0, 4.0])

SOFT = """
name: soft
measurements:
  - {type: joint_acceleration, joints: all, sigma: 0.5}
  - {type: joint_torque, joints: all, sigma: 0.5}
  - {type: external_wrench, links: all, value: 0}
"""


@pytest.fixture(scope="module")
def soft_plan(tmp_path_factory):
    arm = nd.autotree(len(RATES), skew=0.4)
    arm = arm.replace(joints=tuple(replace(joint, limits=(-2.8, 2.8)) for joint in arm.joints))
    path = tmp_path_factory.mktemp("soft") / "soft.plan"
    nd.plan(nd.System(arm, nd.SensorSet.from_dict(yaml.safe_load(SOFT))), outputs=["tau", "qdd"]).save(path)
    return path


@pytest.fixture
def solve(run, soft_plan, tmp_path):
    """Solve the log of a folder by its plan; no test here is about the backend."""

    def call(*options, out="out.npz"):
        files = ("--plan", soft_plan, "--input", tmp_path / "log.npz", "--out", tmp_path / out)
        return run("solve", *files, "--backend", "numpy", *options)

    return call


def write_log(path, plan, units=(1.0, 1.0, 1.0), **more):
    """Write a swing of the arm, with q, qd and torques in units of one's own."""
    tree = nd.Plan.load(plan).system.tree
    t = DT * np.arange(N)
    phases = np.multiply.outer(t, RATES) + np.arange(len(RATES))
    q, qd, qdd = 0.5 * np.sin(phases), 0.5 * RATES * np.cos(phases), -0.5 * RATES**2 * np.sin(phases)
    tau = nd.rnea(tree, q.T, qd.T, qdd.T).T
    tau += np.random.default_rng(0).normal(scale=0.5, size=tau.shape)
    np.savez(path, q=q * units[0], qd=qd * units[1], y=np.column_stack([qdd, tau * units[2]]), **more)
    return t


def test_a_likely_log_is_solved_without_a_word(solve, soft_plan, tmp_path):
    write_log(tmp_path / "log.npz", soft_plan)
    status, _, errors = solve("--dt", DT)
    assert (status, errors) == (0, "")
    assert json.loads(solve("--json")[1])["warnings"] == []


def test_an_unlikely_log_is_solved_and_doubted(solve, soft_plan, tmp_path):
    write_log(tmp_path / "log.npz", soft_plan, units=(180 / np.pi, 1.0, 1.0))
    status, output, errors = solve("--dt", DT)
    assert status == 0
    assert "60 samples" in output
    lines = errors.splitlines()
    assert all(line.startswith("warning: ") for line in lines)
    assert any("Angles look like degrees" in line for line in lines)
    told = json.loads(solve("--dt", DT, "--json")[1])["warnings"]
    assert {"limits", "rates", "consistency"} <= {doubt["check"] for doubt in told}
    assert all(0 < doubt["share"] <= 1 for doubt in told)
    with np.load(tmp_path / "out.npz") as found, np.load(tmp_path / "log.npz") as log:
        solver = nd.Plan.load(soft_plan).solver("numpy")
        with pytest.warns(nd.errors.NoriWarning, match="Angles look like degrees"):
            expected = solver.solve_batch(log["q"], log["qd"], log["y"])
        np.testing.assert_array_equal(found["tau"], expected.tau)  # as it was given
    write_log(tmp_path / "log.npz", soft_plan, units=(1.0, 1.0, 1000.0))
    assert "joint_torque looks a thousand times too large (mN m for N m" in solve()[2]


def test_the_step_of_time_is_that_of_the_log_or_given(solve, soft_plan, tmp_path):
    t = DT * np.arange(N)
    write_log(tmp_path / "log.npz", soft_plan, time=t)
    assert solve()[2] == ""
    assert "They agree with 0.02 s between samples" in solve("--dt", 1)[2]
    write_log(tmp_path / "log.npz", soft_plan, time=1000 * t)
    assert "They agree with 0.02 s between samples" in solve()[2]
    assert "must be positive" in solve("--dt", 0)[2]


def test_a_monitor_goes_with_dropped_sensors_and_needs_some_that_are_weighed(run, refused, tmp_path):
    sensors, plan, log = (tmp_path / name for name in ("held.yaml", "held.plan", "log.csv"))
    sensors.write_text(HELD)
    assert run("plan", PANDA, "--sensors", sensors, "--out", plan, *FINGERS)[0] == 0
    write_gaps(log, np.random.default_rng(8))
    options = ("--input", log, "--out", tmp_path / "out.npz", "--monitor", "--missing", "drop", "--backend", "numpy")
    assert run("solve", "--plan", plan, *options)[0] == 0
    exact = tmp_path / "exact.plan"
    assert run("plan", PANDA, "--sensors", "inverse_dynamics", "--out", exact, *FINGERS)[0] == 0
    write_states(log, np.random.default_rng(8))
    assert "there is nothing to judge them by" in refused("solve", "--plan", exact, *options)
    log.write_text("q[0],q[0]\n1,2\n")
    assert "has two columns 'q[0]'" in run("solve", "--plan", exact, *options)[2]


GO2 = str(ROBOTS["go2"])
LOCKED = (f"--lock={leg}_{joint}_joint" for leg in ("FL", "FR", "RL", "RR") for joint in ("hip", "thigh"))
COMMON = ("--base", "floating", *LOCKED, "--ordering", "recursive", "--outputs", "fx")


def test_a_contact_state_is_chosen_by_name(run, tmp_path):
    path = tmp_path / "go2.plan"
    for contacts, state in {"hind_left, fore_left": "fore_left, hind_left", "none": "no contact"}.items():
        options = ("--sensors", "quadruped_contacts", "--contacts", contacts, "--out", path)
        assert run("plan", GO2, *options, *COMMON)[0] == 0
        plan = nd.Plan.load(path)
        assert plan.system.sensors.name == f"quadruped_contacts ({state})"
        known = nd.sensors("quadruped_contacts").in_contact(*(() if contacts == "none" else contacts.split(", ")))
        assert plan.system.fingerprint == nd.System(plan.system.tree, known).fingerprint


def test_wrong_contacts_and_none_at_all_are_clear_errors(run, refused, tmp_path):
    options = ("--sensors", "quadruped_contacts", "--out", tmp_path / "x.plan", *COMMON)
    assert "Did you mean 'fore_left'" in refused("plan", GO2, *options, "--contacts", "fore_lift")
    assert "--contacts fore_left,fore_right,hind_left,hind_right" in refused("plan", GO2, *options)
    options = ("--sensors", "inverse_dynamics", "--out", tmp_path / "x.plan", *COMMON)
    assert "There is none" in run("plan", GO2, *options, "--contacts", "fore_left")[2]


@pytest.fixture
def tip(tmp_path, monkeypatch):
    """Go where a robot of one link and its sensors with a contact are files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(to_urdf(nd.autotree(1)))
    (tmp_path / "foot.yaml").write_text(yaml.safe_dump(FOOT.to_dict()))
    return ("plan", "arm.urdf", "--sensors", "foot.yaml", "--contacts", "all", "--outputs", "tau")


def test_a_plan_set_goes_through_all_commands(run, told, refused, figures, tip, tmp_path):
    assert "Columns contact:tip of a log say by 1 and 0 which contacts are closed." in told(*tip, "--out", "foot.plan")
    assert sorted(one["closed"] for one in figures(*tip)["states"]) == [[], ["tip"]]
    assert "no contact" in told("info", "foot.plan")
    assert figures("info", "foot.plan")["contacts"] == ["tip"]
    assert "--contacts tip" in refused("observe", "foot.plan", "--outputs", "tau")
    assert run("observe", "foot.plan", "--contacts", "tip", "--samples", 8)[0] == 0
    assert run("observe", "foot.plan", "--sensors", "foot.yaml")[0] == 2

    plans = nd.Plan.load("foot.plan")
    q, qd, y = np.ones((4, 1)), np.ones((4, 1)), np.arange(28.0).reshape(4, 7)
    closed = np.array([[True], [False], [True], [True]])
    names = ["q[0]", "qd[0]", *plans.measurement_names, "contact:tip"]
    np.savetxt("log.csv", np.hstack([q, qd, y, closed]), delimiter=",", header=",".join(names), comments="")
    expected = plans.solver().solve_batch(q, qd, y, contacts=closed)
    arguments = ("solve", "--plan", "foot.plan", "--input", "log.csv", "--out", "out.npz")
    assert run(*arguments)[0] == 0
    with np.load("out.npz") as found:
        np.testing.assert_array_equal(found["tau"], expected.tau)
    assert run(*arguments, "--contacts", "none")[0] == 0
    with np.load("out.npz") as found:
        np.testing.assert_array_equal(found["tau"], plans[()].solver().solve_batch(q, qd, y[:, :1]).tau)
    assert "a monitor is for one contact state" in run(*arguments, "--monitor")[2]
    assert "Did you mean 'tip'?" in run(*arguments, "--contacts", "tipp")[2]
