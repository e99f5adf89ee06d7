"""Contact states on the command line."""

import numpy as np
import pytest
import yaml

import nori_dyn as nd
from nori_dyn.bench.urdf import urdf_of
from tests.robots import ROBOTS
from tests.unit.logs.test_reading import FOOT

GO2 = str(ROBOTS["go2"])
COMMON = ("--base", "floating", "--ordering", "recursive", "--outputs", "fx")


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
    (tmp_path / "arm.urdf").write_text(urdf_of(nd.autotree(1)))
    (tmp_path / "foot.yaml").write_text(yaml.safe_dump(FOOT))
    return ("plan", "arm.urdf", "--sensors", "foot.yaml", "--contacts", "all", "--outputs", "tau")


def test_a_plan_set_goes_through_all_commands(run, told, refused, figures, tip, tmp_path):
    assert "Columns contact:tip of a log say by 1 and 0 which contacts are closed." in told(*tip, "--out", "foot.plan")
    assert sorted(one["closed"] for one in figures(*tip)["states"]) == [[], ["tip"]]
    assert "no contact" in told("info", "foot.plan")
    assert figures("info", "foot.plan")["contacts"] == ["tip"]
    assert "--contacts tip" in refused("observe", "foot.plan", "--outputs", "tau")
    assert run("observe", "foot.plan", "--contacts", "tip", "--samples", 8)[0] == 0
    assert run("observe", "foot.plan", "--sensors", "foot.yaml")[0] == 2

    plans = nd.PlanSet.load("foot.plan")
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
