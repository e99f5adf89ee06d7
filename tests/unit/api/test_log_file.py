"""Files of estimates: whole or not at all, and after a kill what an uninterrupted run gives."""

import json
import subprocess
import sys
import textwrap
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.api.log_file import estimate_to_file
from nori_dyn.api.log_run import LogRunner, options_of
from nori_dyn.errors import FileFormatError, InputError
from nori_dyn.logs.log import whole_table
from nori_dyn.logs.partial import Partial
from nori_dyn.logs.registry import open_log
from nori_dyn.report.log_lines import report_lines

N = 1000
CHECKPOINT = 100
RESAMPLED = {
    "columns": [
        {"of": "q:{joint}", "from": "a_q[{k}]"},
        {"of": "qd:{joint}", "from": "a_qd[{k}]"},
        {"of": "qdd:{joint}", "from": "b_qdd[{k}]"},
    ]
}

KILLED = """
    import os, signal, sys
    import nori_dyn as nd
    import pytest
    from nori_dyn.api.log_file import estimate_to_file
    from nori_dyn.logs.partial import Partial
    from tests.unit.api.test_log_file import CHECKPOINT, RESAMPLED, in_small_blocks, runner

    in_small_blocks(pytest.MonkeyPatch())
    keep, kept = Partial.keep, []

    def killed(self, *arguments):
        keep(self, *arguments)
        kept.append(1)
        if len(kept) == 4:
            os.kill(os.getpid(), signal.SIGKILL)

    Partial.keep = killed
    log, plan, out, window, mapping = sys.argv[1:]
    log = nd.read_log(log, RESAMPLED if mapping else None)
    estimate_to_file(runner(int(window) if window else None, nd.Plan.load(plan)), log, out, checkpoint=CHECKPOINT)
"""


@cache
def arm_plan():
    return nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"], cache=False)


def saved(path):
    rng = np.random.default_rng(7)
    t = 0.01 * np.arange(N)
    told = {"q": rng.normal(size=(N, 2)), "qd": rng.normal(size=(N, 2)), "t": t}
    other = {"a_t": t, "a_q": told["q"], "a_qd": told["qd"], "b_t": t + 0.003, "b_qdd": rng.normal(size=(N, 2))}
    np.savez(path, **(other if "two" in path.name else told))


def runner(window, plan=None):
    return LogRunner(plan or arm_plan(), options_of(window, backend="numpy"))


def raising(error):
    def fail(*_: object) -> None:
        raise error

    return fail


def in_small_blocks(monkeypatch):
    for module in ("chunks", "clock", "formats.arrays"):
        monkeypatch.setattr(f"nori_dyn.logs.{module}.BLOCK", 50)


def stop_before_the_last_step(monkeypatch, log, out, **options):
    with monkeypatch.context() as patched:
        patched.setattr("nori_dyn.logs.partial.Partial.finish", raising(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            estimate_to_file(runner(11), log, out, **options)


@pytest.mark.parametrize(
    ("ending", "name"), [(".csv", "two"), (".parquet", "one"), pytest.param(".npz", "one", marks=pytest.mark.long)]
)
def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path, monkeypatch, ending, name):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    window = 11 if name == "one" else None
    log, out, plan = tmp_path / f"{name}.npz", tmp_path / f"out{ending}", tmp_path / "it.plan"
    saved(log)
    arm_plan().save(plan)
    mapping = RESAMPLED if name == "two" else None
    arguments = [str(log), str(plan), str(out), str(window or ""), "mapped" if mapping else ""]
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), *arguments], capture_output=True, text=True)
    assert killed.returncode == -9, killed.stderr
    assert not out.exists()
    journal = json.loads((tmp_path / f"out{ending}.partial/journal.json").read_text())
    assert len(journal["parts"]) == 4
    assert 0 < journal["next"] < N

    in_small_blocks(monkeypatch)
    read = nd.read_log(log, mapping)
    report = estimate_to_file(runner(window), read, out, checkpoint=CHECKPOINT)
    assert report.resumed > 0
    assert not (tmp_path / f"out{ending}.partial").exists()
    whole = tmp_path / f"whole{ending}"
    other = estimate_to_file(runner(window), read, whole)
    assert other.resumed == 0
    for figure in ("samples", "counts", "doubts", "largest_residual", "n_singular", "fell_back"):
        assert getattr(report, figure) == getattr(other, figure)
    again, once = whole_table(out), whole_table(whole)
    assert again.keys() == once.keys()
    for column in once:
        np.testing.assert_array_equal(again[column], once[column])
    if ending == ".csv":
        assert out.read_bytes() == whole.read_bytes()
    assert len(once["t"]) == report.samples


def test_what_is_left_of_another_run_is_not_gone_on_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "one.npz")
    in_small_blocks(monkeypatch)
    log = nd.read_log("one.npz")
    stop_before_the_last_step(monkeypatch, log, "out.csv", checkpoint=CHECKPOINT)
    assert (tmp_path / "out.csv.partial").is_dir()
    report = estimate_to_file(runner(13), log, "out.csv", checkpoint=CHECKPOINT)
    assert (report.resumed, report.samples) == (0, N)
    assert not (tmp_path / "out.csv.partial").exists()


def test_a_run_that_was_stopped_before_its_last_step_only_takes_that(tmp_path, monkeypatch):
    saved(tmp_path / "one.npz")
    log, out = nd.read_log(tmp_path / "one.npz"), tmp_path / "out.npz"
    stop_before_the_last_step(monkeypatch, log, out)
    report = estimate_to_file(runner(11), log, out)
    assert (report.resumed, report.samples) == (N, N)
    assert "backend numpy: 5,000,000 us a sample" in next(report_lines(replace(report, seconds=5.0), log.path))
    with np.load(out) as arrays:
        assert arrays["tau"].shape == (N, 2)


def test_a_run_waits_for_another_that_writes_the_same_file(tmp_path):
    saved(tmp_path / "one.npz")
    log, out = nd.read_log(tmp_path / "one.npz"), tmp_path / "out.npz"
    first, waits = Partial.of(out, "first"), threading.Event()
    with ThreadPoolExecutor() as pool, warnings.catch_warnings():
        warnings.showwarning = lambda *_: waits.set()
        warnings.simplefilter("always")
        second = pool.submit(estimate_to_file, runner(11), log, out)
        waits.wait()
        assert not second.done()
        assert not out.exists()
        first.tidy()
        assert second.result().samples == N
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.npz", "out.npz"]


def test_a_log_that_is_refused_and_a_full_disk_leave_nothing(tmp_path, monkeypatch):
    log, one = tmp_path / "log.npz", np.ones((3, 2))
    np.savez(log, q=np.nan * one, qd=one, qdd=one)
    with pytest.raises(InputError, match=r"sample 0: column 'q\[0\]' is empty or nan"):
        estimate_to_file(runner(None), nd.read_log(log), tmp_path / "out.csv")
    np.savez(log, q=one, qd=one, qdd=one)
    full = raising(OSError(28, "No space left on device"))
    monkeypatch.setattr("nori_dyn.logs.formats.csv_table.CsvWriter.write", full)
    with pytest.raises(FileFormatError, match="No space left on device"):
        estimate_to_file(runner(None), nd.read_log(log), tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["log.npz"]


def test_the_numbers_names_and_metadata_in_each_format(tmp_path):
    rng = np.random.default_rng(8)
    arrays = {"q": rng.normal(size=(9, 2)), "qd": rng.normal(size=(9, 2)), "qdd": rng.normal(size=(9, 2))}
    np.savez(tmp_path / "log.npz", **arrays)
    expected = [nd.rnea(arm_plan().system.tree, *state) for state in zip(*arrays.values(), strict=True)]
    log = nd.read_log(tmp_path / "log.npz")
    for ending in (".csv", ".csv.gz", ".npz"):
        out = tmp_path / f"out{ending}"
        estimate_to_file(runner(None), log, out)
        read = whole_table(out)
        np.testing.assert_allclose(np.column_stack([read["tau:joint1"], read["tau:joint2"]]), expected, rtol=1e-12)
        with open_log(out) as source:
            assert source.metadata["nori_dyn.fingerprint"] == arm_plan().system.fingerprint
            assert source.streams[0].units["tau:joint1"] == "N m"


def test_samples_left_out_and_dropped_are_counted(tmp_path):
    q = np.zeros((200, 2))
    q[50:60, 1] = np.nan
    np.savez(tmp_path / "log.npz", q=q, qd=np.zeros((200, 2)), qdd=np.zeros((200, 2)))
    found = nd.estimate(tmp_path / "log.npz", arm_plan(), missing="drop", backend="numpy")
    assert found.report.counts.left_out == {"q is not a number": 10}
    assert found.samples.numbers.tolist() == [*range(50), *range(60, 200)]
    table = pytest.importorskip("pandas") and found.to_pandas()
    assert table.attrs["units"]["tau:joint2"] == "N m"
    assert table.index.tolist() == found.samples.numbers.tolist()
    np.testing.assert_array_equal(table[["tau:joint1", "tau:joint2"]].to_numpy(), found["tau"])
