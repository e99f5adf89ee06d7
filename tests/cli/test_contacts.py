"""Contact states on the command line."""

from __future__ import annotations

import nori_dyn as nd
from tests.robots import ROBOTS

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


def test_wrong_contacts_and_none_at_all_are_clear_errors(run, tmp_path):
    options = ("--sensors", "quadruped_contacts", "--out", tmp_path / "x.plan", *COMMON)
    status, _, errors = run("plan", GO2, *options, "--contacts", "fore_lift")
    assert status == 1
    assert "Did you mean 'fore_left'" in errors.replace("\n", " ")
    status, _, errors = run("plan", GO2, *options)
    assert status == 1
    assert "--contacts fore_left,fore_right,hind_left,hind_right" in " ".join(errors.split())
    options = ("--sensors", "inverse_dynamics", "--out", tmp_path / "x.plan", *COMMON)
    assert "There is none" in run("plan", GO2, *options, "--contacts", "fore_left")[2]
