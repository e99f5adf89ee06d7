"""`nori-dyn bench`: what it prints, writes and refuses, on robots of few links."""

from __future__ import annotations

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


def test_a_tiny_suite_is_written_whole(run, arm, one_peer, tmp_path):
    out = tmp_path / "results"
    status, output, errors = run("bench", "--suite", "tick", "--robot", arm, "--quick", "--rounds", 2, "--out", out)
    assert (status, errors) == (0, "")
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


def test_the_same_figures_as_json(run, arm, one_peer):
    status, output, _ = run("bench", "--robot", arm, "--quick", "--rounds", 1, "--json")
    assert status == 0
    assert list(json.loads(output)["suites"]) == ["tick"]


def test_counts_are_checked_exactly(run, few_counts, tmp_path):
    baseline = tmp_path / "baseline.json"
    status, output, _ = run("bench", "--suite", "counts", "--quick", "--write-baseline", baseline, "--json")
    assert status == 0
    by_case = {tuple(record["case"].values()): record["counts"] for record in json.loads(output)["suites"]["counts"]}
    chain = by_case["branching 1", 3, "forward_dynamics"]
    assert chain["program"] < chain["ABA"] < chain["ABA formula"] == 429 * 3 - 507
    status, output, errors = run("bench", "--check", baseline)
    assert (status, errors) == (0, "")
    data = json.loads(baseline.read_text())
    assert f"{len(data['counts']['counts'])} counts" in " ".join(output.split())

    name = "branching 1, n 3, forward dynamics: program"
    data["counts"]["counts"][name] += 1
    data["counts"]["counts"]["another robot: program"] = 5
    baseline.write_text(json.dumps(data))
    status, _, errors = run("bench", "--check", baseline)
    assert status == 1
    assert (
        f"counts: {name}: {data['counts']['counts'][name]:,} before, {data['counts']['counts'][name] - 1:,} now"
        in errors
    )
    assert "counts: another robot: program: 5 before, not counted now" in errors
    assert "--write-baseline" in errors


def test_ratios_are_checked_in_a_wide_band(run, arm, one_peer, tmp_path):
    baseline = tmp_path / "baseline.json"
    options = ("--suite", "tick", "--robot", arm, "--quick", "--rounds", 3)
    assert run("bench", *options, "--write-baseline", baseline)[0] == 0
    data = json.loads(baseline.read_text())
    assert any("Pinocchio over nori_dyn tick" in name for name in data["ratios"]["tick"])
    for factor, status in ((0.1, 0), (100, 1)):
        changed = {name: factor * ratio for name, ratio in data["ratios"]["tick"].items()}
        baseline.write_text(json.dumps({**data, "ratios": {"tick": changed}}))
        assert run("bench", *options, "--check", baseline)[0] == status


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no such file"),
        ("not json", "is not a baseline"),
        ('{"format": 99, "quick": true, "seed": 0, "counts": {}, "ratios": {}}', "'format'"),
        (
            '{"format": 1, "quick": true, "seed": 0, "counts": {"counts": {"x": "many"}}, "ratios": {}}',
            "'counts.counts.x'",
        ),
    ],
)
def test_a_file_that_is_no_baseline(run, tmp_path, content, said):
    path = tmp_path / "baseline.json"
    if content is not None:
        path.write_text(content)
    status, _, errors = run("bench", "--check", path)
    assert status == 1
    assert said in errors


def test_what_does_not_exist_is_refused_before_the_work(run, tmp_path, arm):
    status, _, errors = run("bench", "--suite", "tik")
    assert (status, errors) == (1, "error: unknown suite 'tik'. Did you mean 'tick'?\n")
    status, _, errors = run("bench", "--robot", tmp_path / "no.urdf")
    assert status == 1
    assert "no such file" in errors
    status, _, errors = run("bench", "--out", arm)
    assert status == 1
    assert str(arm) in errors
    assert run("bench", "--rounds", 0)[0] == 2


def test_a_robot_whose_package_is_not_installed_is_left_out_by_name(run, monkeypatch):
    monkeypatch.setattr("nori_dyn.bench.robots.installed_robots", dict)
    status, _, errors = run("bench", "--robot", "panda", "--quick")
    assert status == 1
    assert "nothing could be measured. robot panda: " in errors
    assert "example-robot-data" in errors


def test_lists_suites_and_peers(run):
    status, output, _ = run("bench", "--list", "--json")
    found = json.loads(output)
    assert status == 0
    assert {"tick", "batch", "estimation", "recursions", "planning", "scaling", "counts"} <= set(found["suites"])
    assert {"Pinocchio", "MuJoCo", "KLU", "UMFPACK", "Drake"} <= set(found["peers"])


def test_it_runs_as_a_module():
    called = subprocess.run(
        [sys.executable, "-m", "nori_dyn.bench", "--help"], capture_output=True, text=True, check=True
    )
    assert "nori-dyn bench" in called.stdout


def test_programs_need_the_operations_that_they_did(run):
    """A change of a count is meant, and written to the baseline: see benchmarks/README.md."""
    baseline = Path(__file__).parents[2] / "benchmarks" / "baseline.json"
    status, output, errors = run("bench", "--check", baseline)
    assert (status, errors) == (0, "")
    assert "counts, and 0 ratios in their band" in " ".join(output.split())
