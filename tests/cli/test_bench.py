"""`nori-dyn bench`: what it prints, writes and refuses, on robots of few links."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nori_dyn.bench.peers import registry as peers
from nori_dyn.bench.peers.base import Peer
from nori_dyn.bench.suites import counts
from nori_dyn.bench.urdf import urdf_of
from nori_dyn.model.synthetic import autotree
from tests.words import plain


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(urdf_of(autotree(2, skew=1.5)))
    return path


@pytest.fixture
def few_counts(monkeypatch):
    monkeypatch.setattr(counts, "QUICK", (2,))
    monkeypatch.setattr(counts, "LONGEST", 3)
    monkeypatch.setattr(counts, "QUICK_REAL", ())


@pytest.fixture
def one_peer(monkeypatch):
    """Keep Pinocchio, and add one that is not there."""
    absent = Peer("Absent", "absent-package", "no_such_module", peers.PEERS["Pinocchio"].tasks)
    monkeypatch.setattr(peers, "PEERS", {"Pinocchio": peers.PEERS["Pinocchio"], "Absent": absent})


def test_a_tiny_suite_is_written_whole(told, arm, one_peer, tmp_path):
    out = tmp_path / "results"
    output = told("bench", "--suite", "tick", "--robot", arm, "--quick", "--rounds", 2, "--out", out)
    assert "Left out: Absent: absent-package is not installed" in output
    found = json.loads((out / "bench.json").read_text())
    assert found["versions"]["pin"]
    assert found["machine"]["cores"] >= 1
    records = found["suites"]["tick"]
    assert [record["case"]["problem"] for record in records] == ["inverse_dynamics", "forward_dynamics"]
    for record in records:
        assert {name: len(samples) for name, samples in record["seconds"].items()} == {
            "nori_dyn tick": 2,
            "nori_dyn solve": 2,
            "Pinocchio": 2,
        }
        assert all(off < 1e-9 for off in record["differences"].values())
        assert record["wrong"] == {}
        assert record["skipped"] == {"Absent": "absent-package is not installed"}
        assert record["counts"]["operations"] > 0
    assert (out / "tick.png").read_bytes().startswith(b"\x89PNG")


def test_counts_are_checked_exactly(run, told, few_counts, tmp_path):
    baseline = tmp_path / "baseline.json"
    output = told("bench", "--suite", "counts", "--quick", "--write-baseline", baseline, "--json")
    by_case = {tuple(record["case"].values()): record["counts"] for record in json.loads(output)["suites"]["counts"]}
    chain = by_case["branching 1", 3, "forward_dynamics"]
    assert chain["program"] < chain["ABA"] < chain["ABA formula"] == 429 * 3 - 507
    output = told("bench", "--check", baseline)
    data = json.loads(baseline.read_text())
    assert f"{len(data['counts']['counts'])} counts" in plain(output)

    name = "branching 1, n 3, forward dynamics: program"
    data["counts"]["counts"][name] += 1
    data["counts"]["counts"]["another robot: program"] = 5
    baseline.write_text(json.dumps(data))
    status, _, errors = run("bench", "--check", baseline)
    assert status == 1
    before = data["counts"]["counts"][name]
    assert f"counts: {name}: {before:,} before, {before - 1:,} now" in errors
    assert "counts: another robot: program: 5 before, not counted now" in errors
    assert "--write-baseline" in errors


def test_what_does_not_exist_or_is_no_baseline_is_refused_before_the_work(run, refused, tmp_path, arm):
    path, baseline = tmp_path / "baseline.json", {"format": 1, "quick": True, "seed": 0, "counts": {}, "ratios": {}}
    for content, said in (
        (None, "there is no such file"),
        ("not json", "is not a baseline"),
        (json.dumps(baseline | {"format": 99}), "'format'"),
        (json.dumps(baseline | {"counts": {"counts": {"x": "many"}}}), "'counts.counts.x'"),
    ):
        if content is not None:
            path.write_text(content)
        assert said in refused("bench", "--check", path)
    status, _, errors = run("bench", "--suite", "tik")
    assert (status, errors) == (1, "error: unknown suite 'tik'. Did you mean 'tick'?\n")
    assert "no such file" in refused("bench", "--robot", tmp_path / "no.urdf")
    assert str(arm) in refused("bench", "--out", arm)
    assert run("bench", "--rounds", 0)[0] == 2


def test_a_robot_whose_package_is_not_installed_is_left_out_by_name(refused, monkeypatch):
    monkeypatch.setattr("nori_dyn.bench.robots.installed_robots", dict)
    errors = refused("bench", "--robot", "panda", "--quick")
    assert "nothing could be measured. robot panda: " in errors
    assert "example-robot-data" in errors


def test_lists_suites_and_peers(figures):
    found = figures("bench", "--list")
    assert {"tick", "batch", "estimation", "recursions", "planning", "scaling", "counts"} <= set(found["suites"])
    assert {"Pinocchio", "MuJoCo", "KLU", "UMFPACK", "Drake"} <= set(found["peers"])


def test_it_runs_as_a_module():
    called = subprocess.run(
        [sys.executable, "-m", "nori_dyn.bench", "--help"], capture_output=True, text=True, check=True
    )
    assert "nori-dyn bench" in called.stdout


@pytest.mark.parametrize("large", [False, pytest.param(True, marks=pytest.mark.long)])
def test_programs_need_the_operations_that_they_did(told, tmp_path, monkeypatch, large):
    """A change of a count is meant, and written to the baseline: see benchmarks/README.md."""
    baseline = Path(__file__).parents[2] / "benchmarks" / "baseline.json"
    if not large:
        monkeypatch.setattr(counts, "QUICK", (2, 5))
        monkeypatch.setattr(counts, "LONGEST", 5)
        monkeypatch.setattr(counts, "QUICK_REAL", counts.QUICK_REAL[:1])
        data = json.loads(baseline.read_text())
        numbers, left_out = data["counts"]["counts"], ("n 10", "n 30", "talos")
        data["counts"]["counts"] = {k: n for k, n in numbers.items() if not any(each in k for each in left_out)}
        baseline = tmp_path / "baseline.json"
        baseline.write_text(json.dumps(data))
    assert "counts, and 0 ratios in their band" in plain(told("bench", "--check", baseline))
