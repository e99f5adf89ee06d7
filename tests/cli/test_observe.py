"""nori-dyn observe: its verdict, its exit status, and what a newcomer reads."""

from __future__ import annotations

import json

import numpy as np
import pytest

import nori_dyn as nd
from tests.robots import ROBOTS, load

ICUB = (str(ROBOTS["iCubGenova04"]), "--base", "floating", "--sensors")
TALOS = (str(ROBOTS["talos_reduced"]), "--base", "floating", "--sensors")


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_sensors_that_do_not_suffice(run):
    status, output, errors = run("observe", *ICUB, "icub_feet_three_axes", "--where", "coplanar:l_sole,r_sole")
    assert (status, errors) == (1, "")
    lines = output.splitlines()
    assert lines[0] == "Not observable: 92 of 670 unknowns are not determined, whatever the pose."
    assert max(map(len, lines)) <= 80
    text = " ".join(output.split())
    assert "670 equations of rank 669, 1 short" in text
    assert "- an internal force along the line in which the planes of r_sole and l_sole meet" in text
    assert "Not determined: fx:r_ankle_2 (5), fx:l_ankle_2 (5)" in text
    assert "- any internal force in the common plane of r_sole and l_sole (3 independent)" in text


def test_sensors_that_suffice_but_for_some_poses(run):
    status, output, errors = run("observe", *ICUB, "load_cells_five")
    assert (status, errors) == (0, "")
    text = " ".join(output.split())
    assert text.startswith("Observable, but not at every pose: all 670 unknowns are determined at almost every one.")
    assert "r_sole and l_sole with parallel normals 669 1" in text
    assert "only the sum of the two is seen" in text


def test_poses_that_are_asked_for_count(run, tmp_path):
    assert run("observe", *ICUB, "load_cells_five", "--where", "flat:l_sole,r_sole")[0] == 1
    tree = load("iCubGenova04", "floating")
    Q = [tree.neutral_configuration(), tree.random_configuration(0)]
    path = tmp_path / "poses.npz"
    np.savez(path, q=np.array(Q))
    status, output, _ = run("observe", *ICUB, "load_cells_five", "--poses", path, "--where", "at_limits")
    assert status == 1
    assert "Of 2 poses given, 1 lack rank" in output
    np.savez(path, q=np.array(Q[1:]))
    assert run("observe", *ICUB, "load_cells_five", "--poses", path)[0] == 0


def test_poses_from_a_table(run, tmp_path):
    tree = nd.load_urdf(ROBOTS["ur5"])
    path = tmp_path / "poses.csv"
    names = ",".join(f"q:{name}" for name in tree.joint_names)
    np.savetxt(path, [tree.random_configuration(0)] * 2, delimiter=",", header=names, comments="")
    status, output, _ = run("observe", ROBOTS["ur5"], "--sensors", "forward_dynamics", "--poses", path)
    assert status == 0
    assert output.startswith("Observable: all 120 unknowns are determined at almost every pose.")
    assert "Of 2 poses given, 0 lack rank" in output


def test_figures_as_json(run):
    where = ("--where", "parallel:left_sole_link,right_sole_link", "--where", "at_zero")
    status, output, _ = run("observe", *TALOS, "load_cells_five", *where, "--json")
    found = json.loads(output)
    assert status == 1
    assert (found["is_observable"], found["generic_rank"], found["variables"]) == (True, 670, 670)
    assert [(c["condition"], c["lost"]) for c in found["conditions"]] == [("parallel", 1), ("at_zero", 1)]
    (part,) = found["conditions"][0]["unseen"]
    assert part["dimension"] == 1
    assert "fx:leg_left_6_link.mz" in part["vectors"][0]


def test_wrong_use(run):
    bad = run("observe", *TALOS, "load_cells_five", "--where", "paralel:left_sole_link")
    assert bad[0] == 2
    assert "is no special pose" in " ".join(bad[2].split())
    assert run("observe", *TALOS, "load_cells_five", "--where", "at_zero", "--where", "at_zero")[0] == 2
    status, _, errors = run("observe", *TALOS, "load_cells_five", "--where", "parallel:left_sole_link,nope")
    assert status == 1
    assert "nope" in errors
    status, output, errors = run("observe", *TALOS, "load_cells_five", "--poses", "none.csv")
    assert status == 1
    assert "there is no such file" in errors
    assert output == ""


def test_help_has_an_example(run):
    status, output, _ = run("observe", "--help")
    assert status == 0
    assert "Example: nori-dyn observe" in " ".join(output.split())
