"""nori-dyn identifiability: its words, its JSON, and wrong usage."""

from __future__ import annotations

import json

from tests.robots import ROBOTS

PENDULUM = ROBOTS["double_pendulum"]


def test_it_says_what_is_told(run):
    status, output, errors = run("identifiability", PENDULUM)
    assert status == 0, errors
    assert output.startswith("6 combinations of 20 parameters are told.")
    assert "What is told in combinations:" in output


def test_parameters_and_joints_that_stand_still(run):
    status, output, _ = run("identifiability", PENDULUM, "--parameters", "inertias, rotors", "--json")
    assert status == 0
    assert json.loads(output)["rank"] == 7
    status, output, _ = run("identifiability", PENDULUM, "--still", "joint1", "--still", "joint2", "--json")
    assert status == 0
    found = json.loads(output)
    assert found["still"] == ["joint1", "joint2"]
    assert found["rank"] == 2  # what each joint holds up


def test_a_floating_base_has_sensors_of_its_own(run):
    status, output, errors = run("identifiability", PENDULUM, "--base", "floating", "--json")
    assert status == 0, errors
    found = json.loads(output)
    assert found["sensors"] == "identification_floating"
    assert found["unknown_wrenches"]["eliminated"] == 6


def test_mistakes_are_one_line(run):
    status, _, errors = run("identifiability", PENDULUM, "--parameters", "masses")
    assert status == 1
    assert errors.startswith("error: unknown parameter 'masses' in robot")
    assert errors.count("\n") == 1
    status, _, errors = run("identifiability", PENDULUM, "--sensors", "inverse_dynamics")
    assert status == 1
    assert "none says anything of the parameters" in errors
