"""Many logs: the same as one by one, wherever they run; what fails is named, and the rest finishes."""

import json
import os
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError
from nori_dyn.estimation.log_file import estimate_to_file
from nori_dyn.estimation.log_run import LogRunner
from nori_dyn.estimation.many_logs import estimate_logs
from nori_dyn.estimation.run_options import RunOptions
from nori_dyn.logs.formats.source import BLOCK
from nori_dyn.logs.log import whole_table
from tests.mortal import Mortal
from tests.words import plain

SAMPLES = 2 * BLOCK + 1
"""More than two chunks."""

NAMES = [f"{kind}[{k}]" for kind in ("q", "qd", "qdd") for k in range(2)]


@pytest.fixture(scope="module")
def plan():
    return nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with three logs."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(18)
    for name in ("a", "b", "c"):
        table = rng.standard_normal((SAMPLES, len(NAMES)))
        np.savetxt(folder / f"{name}.csv", table, "%.6f", ",", header=",".join(NAMES), comments="")
    return folder


@pytest.fixture(scope="module")
def expected(plan, runs, tmp_path_factory):
    """The estimates of each log, run by itself."""
    folder = tmp_path_factory.mktemp("expected")
    for log in sorted(runs.iterdir()):
        estimate_to_file(LogRunner(plan), nd.read_log(log), folder / log.name)
    return {out.name: whole_table(out) for out in sorted(folder.glob("*.csv"))}


def check(folder, expected):
    found = sorted(folder.glob("*.csv"))
    assert [out.name for out in found] == sorted(expected)
    for out in found:
        table = whole_table(out)
        for name, column in expected[out.name].items():
            assert np.array_equal(table[name], column), (out, name)
    assert not [*folder.glob(".partial-*")]


def assert_told(told):
    """Assert that the progress goes on to its end."""
    assert told[0] == ("compiling", None)
    shares = [done for _, done in told[1:]]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])  # two by default: one that is killed
def test_as_one_by_one(plan, runs, expected, tmp_path, workers):
    told = []
    watch = lambda stage, done=None: told.append((stage, done))  # noqa: E731
    outcomes = estimate_logs(LogRunner(plan), f"{runs}/*.csv", tmp_path, workers=workers, watched=watch)
    assert [(each.log.name, each.error, each.report.samples) for each in outcomes] == [
        (f"{name}.csv", "", SAMPLES) for name in "abc"
    ]
    check(tmp_path, expected)
    assert_told(told)


@pytest.mark.long
def test_a_worker_that_is_killed_loses_nothing(plan, runs, expected, tmp_path):
    out, told = tmp_path / "out", []
    watch = lambda stage, done=None: told.append((stage, done))  # noqa: E731
    runner = Mortal(plan, folder=tmp_path, victim="b.csv", owner=os.getpid())
    outcomes = estimate_logs(runner, f"{runs}/*.csv", out, workers=2, watched=watch)
    assert len([*tmp_path.glob("died-*")]) == 1
    assert [(each.error, each.report.samples) for each in outcomes] == [("", SAMPLES)] * 3
    check(out, expected)
    assert_told(told)


def test_a_log_that_kills_every_worker_is_named(plan, runs, expected, tmp_path, monkeypatch):
    """What is killed indeed is no part of it: see above, and test_sweep.py."""

    @contextmanager
    def dying(n, task):
        def submit(part):
            if part[0].name == "b.csv":
                raise BrokenExecutor
            future = Future()
            future.set_result(task(part))
            return future

        yield submit

    monkeypatch.setattr("nori_dyn.observe.sweep._processes", dying)
    out = tmp_path / "out"
    outcomes = estimate_logs(LogRunner(plan), f"{runs}/*.csv", out, workers=2)
    assert [bool(each.error) for each in outcomes] == [False, True, False]
    assert "b.csv: the processes that ran it died" in outcomes[1].error
    assert (whole_table(out / "c.csv")["tau:joint1"] == expected["c.csv"]["tau:joint1"]).all()
    assert not (out / "b.csv").exists()


def test_one_that_is_damaged_is_named_and_the_rest_finishes(plan, runs, tmp_path, run, figures):
    pytest.importorskip("pyarrow")
    estimate = nd.estimate(runs / "a.csv", plan)
    for name in ("good", "cut", "other"):
        log = tmp_path / "logs" / name / "run.parquet"
        log.parent.mkdir(parents=True)
        estimate.save(log)
    columns = {"columns": [{"of": f"{kind}:{{joint}}", "from": "tau:{joint}"} for kind in ("q", "qd", "qdd")]}
    (tmp_path / "mapping.yaml").write_text(json.dumps(columns))
    cut = tmp_path / "logs" / "cut" / "run.parquet"
    cut.write_bytes(cut.read_bytes()[:-100])
    plan.save(tmp_path / "arm.plan")
    command = ["solve", "--plan", tmp_path / "arm.plan", "--logs", f"{tmp_path}/logs/**/*.parquet"]
    command += ["--out", tmp_path / "out", "--mapping", tmp_path / "mapping.yaml", "--workers", "2"]
    status, output, errors = run(*command)
    assert status == 1, output
    assert "Estimates of 2 of 3 logs written" in output
    assert f"failed: {cut}: is damaged" in errors
    written = sorted((tmp_path / "out").rglob("*.parquet"))
    assert written == [tmp_path / "out" / name / "run.parquet" for name in ("good", "other")]
    output = plain(run(*command, "--workers", "1")[1])
    assert f"Estimates of 2 of 3 logs written to {tmp_path}/out, 2 of them by an earlier run." in output
    written[0].unlink()
    told = figures(*command, "--workers", "1", status=1)["logs"]
    found = [(each.get("samples"), each.get("was_there")) for each in told]
    assert found == [(None, None), (SAMPLES, False), (None, True)]
    assert "damaged" in told[0]["error"]


def small_logs(folder):
    """Write two short logs, one as a table of text and one as arrays."""
    folder.mkdir()
    rows = np.random.default_rng(3).standard_normal((30, len(NAMES)))
    np.savetxt(folder / "a.csv", rows, "%.6f", ",", header=",".join(NAMES), comments="")
    np.savez(folder / "b.npz", q=rows[:, :2], qd=rows[:, 2:4], qdd=rows[:, 4:])
    return folder


def run_again(folder, **how):
    runner = LogRunner(how.pop("plan"), RunOptions(backend="numpy", **how))
    outcomes = estimate_logs(runner, f"{folder}/logs/*", folder / "out", workers=1)
    assert not any(each.error for each in outcomes)
    return [each.report is not None for each in outcomes]


def test_what_was_estimated_is_not_estimated_again_unless_plan_log_or_options_are_others(plan, tmp_path):
    logs, out = small_logs(tmp_path / "logs"), tmp_path / "out"
    assert run_again(tmp_path, plan=plan) == [True, True]
    before = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    assert run_again(tmp_path, plan=plan) == [False, False]
    assert before == {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    assert run_again(tmp_path, plan=plan, dt=0.5) == [True, True]
    other = nd.plan(nd.System(nd.autotree(2, taper=2.0), "inverse_dynamics"), outputs=["tau"])
    assert run_again(tmp_path, plan=other, dt=0.5) == [True, True]
    os.utime(logs / "b.npz", ns=(0, 1))
    assert run_again(tmp_path, plan=other, dt=0.5) == [False, True]
    for name in ("a.csv", "b.npz"):
        whole = (out / name).read_bytes()
        (out / name).write_bytes(whole[:-9])
        assert run_again(tmp_path, plan=other, dt=0.5) == [name == "a.csv", name == "b.npz"]
        assert (out / name).read_bytes() == whole
    (out / "a.csv").write_bytes((out / "a.csv").read_bytes().replace(b".1", b".2"))  # as long as before
    assert run_again(tmp_path, plan=other, dt=0.5) == [True, False]


def test_no_log_and_estimates_in_the_place_of_logs_are_refused(plan, runs):
    with pytest.raises(InputError, match=r"no log is called '.*\.mcap'"):
        estimate_logs(LogRunner(plan), f"{runs}/*.mcap", runs)
    with pytest.raises(InputError, match=r"a\.csv: the estimates would take its place"):
        estimate_logs(LogRunner(plan), f"{runs}/*.csv", runs)
