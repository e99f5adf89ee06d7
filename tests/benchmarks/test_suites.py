"""`python -m benchmarks`: what it prints, writes and refuses, on robots of few links."""

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.mechanisms import biped
from benchmarks.peers.base import Peer
from benchmarks.peers.registry import PEERS
from benchmarks.robots import Robot
from benchmarks.suites import counts, loops, tick
from benchmarks.suites.registry import SUITES
from benchmarks.urdf_writer import to_urdf
from nori_dyn.model.synthetic import autotree
from tests.words import plain


@pytest.fixture
def run(capsys):
    """Run `python -m benchmarks ARGUMENTS`; return its exit status, output and errors."""

    def call(*arguments):
        status = 0
        try:
            main(list(map(str, arguments)))
        except SystemExit as stopped:
            status = stopped.code
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(to_urdf(autotree(2, skew=1.5)))
    return path


@pytest.fixture
def few_counts(monkeypatch):
    monkeypatch.setattr(counts, "QUICK", (2,))
    monkeypatch.setattr(counts, "LONGEST", 3)
    monkeypatch.setattr(counts, "QUICK_REAL", ())
    monkeypatch.setattr(counts, "PROBLEMS", {"forward_dynamics": counts.PROBLEMS["forward_dynamics"]})


@pytest.fixture
def one_peer(monkeypatch):
    """Keep Pinocchio, and add one that is not there."""
    absent = Peer("Absent", "absent-package", "no_such_module", PEERS["Pinocchio"].tasks)
    monkeypatch.setattr(tick, "PEERS", {"Pinocchio": PEERS["Pinocchio"], "Absent": absent})


def test_a_tiny_suite_is_written_whole(told, arm, one_peer, tmp_path):
    out = tmp_path / "results"
    output = told("tick", "--robot", arm, "--quick", "--rounds", 2, "--out", out)
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


def test_counts_are_checked_exactly(run, told, few_counts, tmp_path):
    baseline = tmp_path / "baseline.json"
    output = told("counts", "--quick", "--write-baseline", baseline, "--json")
    by_case = {tuple(record["case"].values()): record["counts"] for record in json.loads(output)["suites"]["counts"]}
    chain = by_case["branching 1", 3, "forward_dynamics"]
    assert chain["program"] < chain["ABA"] < chain["ABA formula"] == 429 * 3 - 507
    data = json.loads(baseline.read_text())
    name = "branching 1, n 3, forward dynamics: program"
    data["counts"]["counts"][name] += 1
    data["counts"]["counts"]["another robot: program"] = 5
    baseline.write_text(json.dumps(data))
    status, _, errors = run("--check", baseline)
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
        assert said in refused("--check", path)
    status, _, errors = run("tik")
    assert (status, errors) == (1, "error: unknown suite 'tik'. Did you mean 'tick'?\n")
    assert "no such file" in refused("--robot", tmp_path / "no.urdf")
    assert str(arm) in refused("--out", arm)


def test_a_robot_whose_package_is_not_installed_is_left_out_by_name(refused, monkeypatch):
    monkeypatch.setattr("benchmarks.robots.installed_robots", dict)
    errors = refused("--robot", "panda", "--quick")
    assert "nothing could be measured. robot panda: " in errors
    assert "example-robot-data" in errors


def test_lists_suites_and_peers(told):
    words = told("--list").split()
    assert {*SUITES} <= {*words}
    assert {"Pinocchio", "MuJoCo", "KLU", "UMFPACK", "Drake"} <= {*words}


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
    n = len(json.loads(baseline.read_text())["counts"]["counts"])
    assert f"{n:,} counts, and 0 ratios in their band" in plain(told("--check", baseline))


@pytest.mark.long
def test_the_results_give_the_operations_of_loops_that_are_counted():
    results = Path(__file__).parents[2].joinpath("benchmarks", "results.md").read_text()
    for row, tree in (("four loops", biped()), ("without them", biped().replace(components=()))):
        operations = loops.planned(Robot(tree.name, "floating", tree), loops.PROBLEM).cost.total
        assert f"| {row} | {operations:,} | {loops.factorised_operations(tree):,} |" in results
