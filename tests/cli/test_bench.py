"""`nori-dyn bench`: what it counts and times of a plan, and what it refuses."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.bench import in_turns, quartiles, random_states
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, WRENCHES, sensor_set
from tests.words import plain

CONTACT = sensor_set(ACCELERATIONS, name="touch", contacts={"tip": {"closed": [WRENCHES], "open": [UNLOADED]}})


@pytest.fixture
def plan(tmp_path):
    made = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
    made.save(tmp_path / "arm.plan")
    return made


def test_a_plan_is_counted_and_timed(told, figures, plan, tmp_path, monkeypatch):
    options = "bench", tmp_path / "arm.plan", "--rounds", 2, "--batch", 16
    monkeypatch.setenv("COLUMNS", "80")
    shown = told(*options)
    assert max(map(len, shown.splitlines())) <= 80
    assert f"{plan.cost.total}" in shown
    assert [line.split("  ")[0] for line in shown.splitlines() if line.startswith(("tick ", "solve ", "batch "))] == [
        "tick",
        "solve",
        "batch",
    ]
    found = figures(*options)
    (state,) = found["states"]
    assert (found["outputs"], state["closed"]) == (["tau"], [])
    assert state["operations"]["total"] == plan.cost.total
    assert {run: len(times["rounds"]) for run, times in state["seconds"].items()} == dict.fromkeys(
        ("tick", "solve", "batch"), 2
    )


def test_contact_states_are_measured_one_by_one_or_as_named(figures, tmp_path):
    plan = nd.plan(nd.autotree(1), CONTACT, outputs=["tau"])
    plan.save(tmp_path / "touch.plan")
    options = "bench", tmp_path / "touch.plan", "--rounds", 1, "--batch", 4
    found = {tuple(state["closed"]): state["operations"]["total"] for state in figures(*options)["states"]}
    assert found == {state: one.cost.total for state, one in plan.states.items()}
    (named,) = figures(*options, "--contacts", "tip")["states"]
    assert named["operations"]["total"] == found["tip",]


def test_a_robot_needs_sensors_and_a_plan_has_its_own(run, refused, plan, tmp_path):
    assert run("bench")[0] == 2
    assert "--sensors" in refused("bench", "panda", status=2)
    assert "a plan has its own" in refused("bench", tmp_path / "arm.plan", "--sensors", "inverse_dynamics", status=2)
    assert "no_such" in refused("bench", "no_such_robot", "--sensors", "inverse_dynamics")
    (tmp_path / "no.plan").write_text(json.dumps({"format": "another"}))
    assert "no.plan" in plain(refused("bench", tmp_path / "no.plan"))


def test_runs_take_turns_for_a_time_each(monkeypatch):
    """The first call warms up, four fill a quarter of the time, and 16 then fill it."""
    now, called = 0.0, ""

    def call(name, *seconds):
        left = list(seconds)

        def take():
            nonlocal now, called
            now += left.pop(0) if len(left) > 1 else left[0]
            called += name

        return take

    monkeypatch.setattr("nori_dyn.bench.time", SimpleNamespace(perf_counter=lambda: now))
    calls = {"a": call("a", 100.0, 1.0), "b": call("b", 2.0)}
    assert in_turns(calls, 2, 16.0) == {"a": [1.0, 1.0], "b": [2.0, 2.0]}
    assert called == "a" * 6 + "b" * 6 + 2 * ("a" * 16 + "b" * 8)
    assert quartiles([1.0, 2.0, 4.0]) == (1.5, 2.0, 3.0)


def test_random_readings_are_within_the_ranges_of_their_sensors():
    torque = TORQUES | {"range": [0.5, 0.7]}
    system = nd.System(nd.autotree(2), sensor_set(torque, UNLOADED, name="ranged"))
    *_, Y = random_states(system, 50, 0)
    assert not system.saturated(Y).any()
    assert np.ptp(Y) > 0
