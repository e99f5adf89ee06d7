"""nori-dyn export: what it writes and prints, and what it refuses."""

import os

import pytest

import nori_dyn as nd
from nori_dyn.program.compiler import find_compiler
from tests.exported import checked, compile_c, written
from tests.systems import sensor_set
from tests.words import plain


@pytest.fixture
def chain(tmp_path):
    path = tmp_path / "chain.plan"
    system = nd.System(nd.autotree(3), nd.sensors("forward_dynamics"))
    nd.plan(system, outputs=("qdd", "f:link2")).save(path)
    return path


def test_it_writes_code_that_runs(told, chain, tmp_path):
    out = tmp_path / "out"
    output = told("export", chain, "--lang", "c", "--out", out, "--name", "chain")
    assert sorted(os.listdir(out)) == ["CMakeLists.txt", "chain.c", "chain.h", "chain.hpp", "main.c", "nori_dyn"]
    assert "chain_solve" in output
    assert "chain.h says how to call it" in plain(output)
    assert nd.Plan.load(chain).export(tmp_path / "python", name="chain").files == written(out)
    if find_compiler() is not None:
        compile_c("-o", tmp_path / "example", out / "chain.c", out / "main.c", "-lm")
        assert "qdd[2] = " in checked([tmp_path / "example"])


def test_figures_as_json_of_an_export_that_replaces_an_earlier_one(run, figures, chain, tmp_path):
    assert run("export", chain, "--out", tmp_path / "out")[0] == 0
    found = figures("export", chain, "--out", tmp_path / "out")
    assert (found["name"], found["lang"]) == ("autotree_3_1_0_1", "c")
    assert found["inputs"] == {"q": 3, "qd": 3, "y": 3}
    assert found["outputs"] == {"qdd": [3], "f_link2": [6]}
    assert found["files"] == {file: len(text) for file, text in written(tmp_path / "out").items()}
    assert found["cost"]["total"] > 50
    assert found["cost"]["divisions"] >= found["guarded_pivots"] >= 1
    assert found["sines_and_cosines"] == 4
    assert found["workspace_bytes"] > 0


def test_a_monitor_is_written_where_it_is_asked_for(told, refused, chain, tmp_path):
    weighed = tmp_path / "weighed.plan"
    sensors = [{"type": kind, "joints": "all", "sigma": 1} for kind in ("joint_acceleration", "joint_torque")]
    system = nd.System(nd.autotree(2), sensor_set(*sensors, {"type": "external_wrench", "links": "all", "value": 0}))
    nd.plan(system, outputs=("tau",)).save(weighed)
    assert "it_check: " in told("export", weighed, "--out", tmp_path / "out", "--name", "it", "--monitor")
    assert {"it_monitor.c", "it_monitor.h"} <= {*os.listdir(tmp_path / "out")}
    errors = refused("export", chain, "--out", tmp_path / "no", "--monitor")
    assert "hold exactly: there is nothing to judge them by" in errors
    assert not (tmp_path / "no").exists()


def test_a_plan_set_is_one_function_of_the_contacts(told, refused, figures, tmp_path):
    path, out = tmp_path / "walker.plans", tmp_path / "out"
    cell = {"type": "external_wrench", "links": "link2"}
    contact = {"closed": [cell], "open": [{**cell, "value": 0}]}
    rows = [{"type": "joint_acceleration", "joints": "all"}, {"type": "external_wrench", "links": "link1", "value": 0}]
    sensors = nd.SensorSet.from_dict({"name": "walker", "measurements": rows, "contacts": {"foot": contact}})
    nd.plan(nd.autotree(2), sensors, outputs=("tau",)).save(path)
    assert "in each of 2 contact states" in plain(told("export", path, "--out", out, "--name", "it"))
    assert {"it_state_foot.c", "it_state_no_contact.c", "it_states.h"} <= {*os.listdir(out)}
    found = figures("export", path, "--out", out, "--name", "it")
    assert list(found["functions"]) == ["it_solve_foot", "it_solve_no_contact"]
    assert "a monitor is of one contact state" in refused("export", path, "--out", tmp_path / "no", "--monitor")


def test_a_filter_is_written_where_it_is_asked_for(run, told, refused, figures, chain, tmp_path):
    path, out = tmp_path / "observer.plan", tmp_path / "out"
    nd.plan(nd.System(nd.autotree(2), nd.sensors("momentum_observer")), outputs=("tau",)).save(path)
    command = ("export", path, "--out", out, "--name", "it", "--filter", "--dt", "0.001")
    assert "it_step: " in told(*command)
    assert {"it.h", "it.c", "it_parts.h", "it_rows.c", "it_outputs.c", "it_tick.c"} <= {*os.listdir(out)}
    found = figures(*command)
    assert found["outputs"]["memory"] == [4]
    assert list(found["functions"]) == ["it_compute_rows", "it_compute_outputs"]
    for wrong in (["--filter"], ["--dt", "0.001"], ["--filter", "--dt", "0.001", "--monitor"]):
        assert run("export", path, "--out", tmp_path / "no", *wrong)[0] == 2
    nd.Tracker(nd.Plan.load(path), 0.002, 4, backend="numpy").save(path)
    assert "it_step: " in told("export", path, "--out", tmp_path / "late", "--name", "it", "--filter")
    assert "4 ticks late" in (tmp_path / "late" / "it.h").read_text()
    errors = refused("export", path, "--out", tmp_path / "no", "--filter", "--dt", "0")
    assert "the time from one tick to the next is a positive number" in errors
    errors = refused("export", chain, "--out", tmp_path / "no", "--filter", "--dt", "0.001")
    assert "nothing persists by sensors 'forward_dynamics'" in errors
    assert not (tmp_path / "no").exists()


def test_wrong_usage_is_status_2_and_leaves_nothing(run, refused, chain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("2d", "a b", "int", "math", "../x", ""):
        assert "cannot name exported code" in refused("export", chain, "--out", "out", "--name", name, status=2), name
    for arguments in (("--lang", "rust", "--out", "out"), ("--lang", "c")):
        assert run("export", chain, *arguments)[0] == 2, arguments
    assert os.listdir() == ["chain.plan"]


def test_bad_input_is_one_clear_line_and_leaves_nothing(refused, chain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    for plan, out, message in (
        ("no.plan", "out", "there is no such file"),
        ("notes.txt", "out", "notes.txt"),
        ("chain.plan", "no/such", "does not exist"),
        ("chain.plan", "notes.txt", "is a file"),
        ("chain.plan", ".", "notes.txt. Name a new or an empty folder"),
    ):
        assert message in refused("export", plan, "--out", out)
        assert sorted(os.listdir()) == ["chain.plan", "notes.txt"], message
