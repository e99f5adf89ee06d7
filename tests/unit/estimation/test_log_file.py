"""Files of estimates: each appears whole, or not at all, whatever happens to the run and beside it."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import FileFormatError, InputError, PlanError
from nori_dyn.estimation.log_file import estimate_to_file
from nori_dyn.estimation.log_run import LogRunner
from nori_dyn.estimation.run_options import options_of
from nori_dyn.io.files import drafted
from nori_dyn.logs.formats.registry import open_log
from nori_dyn.logs.log import whole_table
from tests import covering

N = 1000

KILLED = """
    import os, signal, sys
    import nori_dyn as nd
    from nori_dyn.io import files
    from nori_dyn.logs.formats.registry import writer_of
    from tests.unit.estimation.test_log_file import estimate_to_file, runner

    def killed(self, *rows):
        write(self, *rows)
        if sys.argv[4] == "first rows":
            os.kill(os.getpid(), signal.SIGKILL)

    def killed_at_last(*paths):
        os.kill(os.getpid(), signal.SIGKILL)

    log, plan, out, when = sys.argv[1:]
    writer = writer_of(out)
    write, writer.write = writer.write, killed
    if when == "at last":
        files._publish = killed_at_last
    estimate_to_file(runner(None, nd.Plan.load(plan)), nd.read_log(log), out)
"""


@cache
def arm_plan():
    return nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])


@cache
def observer():
    return nd.plan(nd.System(nd.autotree(2), "momentum_observer"), outputs=["qdd", "offset"])


def saved(path, n=N):
    rng = np.random.default_rng(7)
    arrays = {name: rng.normal(size=(n, 2)) for name in ("q", "qd", "qdd", "tau")}
    np.savez(path, t=0.01 * np.arange(n), **arrays)
    return path


def runner(window=None, plan=None, **options):
    return LogRunner(plan or arm_plan(), options_of(window, backend="numpy", **options))


def raising(error):
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@covering.covering(strength=1, when=["first rows", "at last"], ending=[".npz", ".csv", *[".parquet"] * covering.ALL])
def test_a_run_that_is_killed_leaves_no_file_and_the_next_one_tidies_up(tmp_path, ending, when):
    log, out, plan = saved(tmp_path / "one.npz"), tmp_path / "out" / f"out{ending}", tmp_path / "it.plan"
    arm_plan().save(plan)
    out.parent.mkdir()
    (out.parent / "other.txt").write_text("kept")
    arguments = list(map(str, (log, plan, out, when)))
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), *arguments], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    left = names(out.parent)
    assert [name.startswith(f".partial-out{ending}-") for name in left] == [True, False]
    assert (out.parent / "other.txt").read_text() == "kept"

    report = estimate_to_file(runner(), nd.read_log(log), out)
    assert report.samples == N == len(whole_table(out)["t"])
    assert names(out.parent) == ["other.txt", out.name, *([f"{out.name}-metadata.json"] if ending == ".csv" else [])]


def test_runs_that_write_the_same_file_at_once_leave_that_of_one(tmp_path):
    log, out = nd.read_log(saved(tmp_path / "one.npz")), tmp_path / "out" / "out.csv"
    out.parent.mkdir()
    both = threading.Barrier(2)

    def run(plan):
        with drafted(out) as draft:  # lives through the whole of the other
            both.wait()
            estimate_to_file(runner(plan=plan), log, out)
            assert draft.parent.exists()
            draft.write_text("the last wins\n")

    other = nd.plan(nd.System(nd.autotree(2, taper=2.0), "inverse_dynamics"), outputs=["tau"])
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, (arm_plan(), other)))
    assert out.read_text() == "the last wins\n"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda plan: estimate_to_file(runner(plan=plan), log, out), (arm_plan(), other) * 4))
    assert names(out.parent) == ["out.csv", "out.csv-metadata.json"]
    with open_log(out) as source:
        of = source.metadata["nori_dyn.fingerprint"]
    plan = next(each for each in (arm_plan(), other) if each.system.fingerprint == of)  # both files are of one run
    np.testing.assert_array_equal(whole_table(out)["tau:joint1"], nd.estimate(log, plan, backend="numpy")["tau"][:, 0])


def test_a_draft_that_somebody_writes_stays_and_one_that_nobody_does_goes(tmp_path):
    out = tmp_path / "out.npz"
    (tmp_path / ".partial-out.npz-dead").mkdir()
    (tmp_path / ".partial-out.npz-dead" / "out.npz").write_bytes(b"half")
    (tmp_path / ".partial-other.npz-dead").mkdir()
    with drafted(out) as one, drafted(out) as other:
        assert one != other
        assert one.parent.exists()
        assert not (tmp_path / ".partial-out.npz-dead").exists()
        one.write_bytes(b"one")
        other.write_bytes(b"other")
    assert out.read_bytes() == b"one"
    assert names(tmp_path) == [".partial-other.npz-dead", "out.npz"]


def test_a_log_that_is_refused_and_a_full_disk_leave_what_was_there(tmp_path, monkeypatch):
    log, out, one = tmp_path / "log.npz", tmp_path / "out.csv", np.ones((3, 2))
    out.write_text("older")
    np.savez(log, q=np.nan * one, qd=one, qdd=one)
    with pytest.raises(InputError, match=r"sample 0: column 'q\[0\]' is empty or nan"):
        estimate_to_file(runner(), nd.read_log(log), out)
    np.savez(log, q=one, qd=one, qdd=one)
    full = raising(OSError(28, "No space left on device"))
    for where in ("csv_table.CsvWriter.write", "csv_table.digest_of"):
        with monkeypatch.context() as patched:
            patched.setattr(f"nori_dyn.logs.formats.{where}", full)
            with pytest.raises(FileFormatError, match=r"out\.csv: cannot be written: No space left on device"):
                estimate_to_file(runner(), nd.read_log(log), out)
    for where in ("pathlib.Path.write_bytes", "os.fsync", "os.replace", "tempfile.mkdtemp"):
        with monkeypatch.context() as patched:
            patched.setattr(where, full)
            with pytest.raises(FileFormatError, match=r"No space left on device"):
                estimate_to_file(runner(), nd.read_log(log), out)
    assert names(tmp_path) == ["log.npz", "out.csv"]
    assert out.read_text() == "older"


@pytest.mark.parametrize("smooth", [False, True])
def test_a_smoother_whose_disk_is_full_and_a_folder_that_is_read_only(tmp_path, monkeypatch, smooth):
    log, out = nd.read_log(saved(tmp_path / "log.npz", 50)), tmp_path / "out" / "out.npz"
    tracker = runner(plan=observer(), how="smooth" if smooth else "auto")
    out.parent.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr("tempfile.TemporaryFile", raising(OSError(28, "No space left on device")))
        with pytest.raises(FileFormatError, match=r"out\.npz: cannot be written: No space left"):
            estimate_to_file(tracker, log, out)
    out.parent.chmod(0o500)
    try:
        if not os.access(out.parent, os.W_OK):  # root may write anywhere
            with pytest.raises(FileFormatError, match="is not writable"):
                estimate_to_file(tracker, log, out)
    finally:
        out.parent.chmod(0o700)
    assert names(out.parent) == []


def test_a_pipe_takes_the_estimates(tmp_path):
    log, pipe = nd.read_log(saved(tmp_path / "log.npz", 20)), tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        text = pool.submit(pipe.read_text)
        estimate_to_file(runner(), log, pipe)
        assert text.result().startswith("t,tau:joint1,tau:joint2,fell_back\n0,")
    assert names(tmp_path) == ["log.npz", "pipe.csv"]


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


def test_a_plan_runs_as_what_it_is(tmp_path):
    log = saved(tmp_path / "log.npz", 60)
    found, expected = (
        nd.estimate(log, observer(), backend="numpy"),
        nd.smooth(log, observer(), causal=True, backend="numpy"),
    )
    assert isinstance(found, nd.results.LogHistory)
    np.testing.assert_allclose(found.memory.mean, expected.memory.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.deviations["qdd"], expected.deviations["qdd"], rtol=1e-9)
    monitored = nd.estimate(log, observer(), monitor=True, backend="numpy")  # a filter says how sure it is anyway
    assert [each.name for each in monitored.schema.fields] == [each.name for each in found.schema.fields]
    for causal in (True, False):
        with pytest.raises(PlanError, match=r"nothing persists by sensors .*: a filter needs `memory`"):
            nd.smooth(log, arm_plan(), causal=causal, backend="numpy")
