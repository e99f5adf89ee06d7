"""Sweeps: the same results in this process, in others and by another executor, also when workers die."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import SweepError, SystemShapeError, WorkerDiedError
from nori_dyn.observe import sweep as module
from nori_dyn.observe.sweep import CHUNK, MOST_CHUNKS, chunks, sweep
from tests.systems import ACCELERATIONS, TORQUES, sensor_set
from tests.tasks import Dies, Lacking, Threads, refuses, squares

Q = np.random.default_rng(0).normal(size=(50, 3))
Q[:CHUNK] = 0.0

LONG = 600.0
"""Seconds after which what has not happened, on however busy a machine, never will."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Start processes for however little work, after the first chunk."""
    monkeypatch.setattr(module, "PATIENCE", 0.0)


def values(found):
    return np.concatenate([square for square, *_ in found])


def processes(found):
    return {process for _, process, *_ in found}


def test_chunks_depend_on_the_number_of_configurations_alone():
    for n in (1, CHUNK, CHUNK + 1, 200, 10**5):
        parts = chunks(np.arange(n)[:, None])
        assert np.array_equal(np.concatenate(parts)[:, 0], np.arange(n))
        assert len(parts) == min(-(-n // CHUNK), MOST_CHUNKS)
        assert len({len(part) for part in parts[:-1]}) <= 1


def test_the_same_in_this_process_and_in_others_of_one_thread_of_linear_algebra(monkeypatch):
    told = []
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    here = sweep(squares, Q, workers=1)
    there = sweep(Threads(), Q, workers=2, progress=lambda stage, done=None: told.append((stage, done)))
    assert processes(here) == {os.getpid()}
    assert len(processes(there)) > 1
    assert np.array_equal(values(here), (Q**2).sum(axis=1))
    assert np.array_equal(values(here), values(there))
    for _, _, threads in there:
        assert len(threads) >= 2  # NumPy's and SciPy's
        assert set(threads) == {1}
    shares = [done for _, done in told]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1], {stage for stage, _ in told}) == (0.0, 1.0, {"configurations"})


def test_little_work_starts_no_processes(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 60.0)
    assert processes(sweep(squares, Q, workers=8)) == {os.getpid()}


def test_what_a_worker_that_dies_was_at_is_done_again(tmp_path):
    found = sweep(Dies(tmp_path, 1, os.getpid()), Q, workers=2)
    assert [*tmp_path.iterdir()]
    assert np.array_equal(values(found), (Q**2).sum(axis=1))


def test_processes_that_die_again_and_again_are_given_up(monkeypatch):
    started = []

    @contextmanager
    def dying(n, task):
        started.append(n)
        raise BrokenExecutor
        yield

    monkeypatch.setattr(module, "_processes", dying)
    with pytest.raises(WorkerDiedError, match="died 3 times"):
        sweep(squares, Q, workers=2)
    assert started == [2, 2, 2]


@pytest.mark.long
def test_workers_that_die_again_and_again_are_given_up(tmp_path):
    with pytest.raises(WorkerDiedError, match="died 3 times"):
        sweep(Dies(tmp_path, 10**6, os.getpid()), Q, workers=2)


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_of_a_task_come_back(workers):
    with pytest.raises(SystemShapeError, match="too many rows") as raised:
        sweep(refuses, Q, workers=workers)
    assert (raised.value.n_rows, raised.value.n_variables) == (3, 2)


SCRIPT = """
import os, signal, sys, time
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # which is ignored in what a shell runs in the background
from nori_dyn.observe import sweep as module
module.PATIENCE = 0.0
print("once", flush=True)
{body}
"""


def script(body: str, folder: Path) -> subprocess.Popen[str]:
    """Start a script without `if __name__ == "__main__"`."""
    path = folder / "script.py"
    path.write_text(SCRIPT.format(body=body))
    return subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_scripts_need_no_guard_and_what_only_they_define_is_told_clearly(tmp_path):
    body = (
        "print(sum(map(len, module.sweep(np.sin, np.zeros((50, 3)), workers=2))))\n"
        "def task(Q): return Q\n"
        "try: module.sweep(task, np.zeros((50, 3)), workers=2)\nexcept Exception as e: print(e)"
    )
    running = script(body, tmp_path)
    output, errors = running.communicate(timeout=LONG)
    once, n, told = output.splitlines()
    assert (once, n, errors, running.returncode) == ("once", "50", "", 0)
    assert "Sensors of your own must be in a module" in told


def test_ctrl_c_ends_everything(tmp_path):
    body = "module.chunks = lambda Q: [*np.array([0, 1e4, 1e4, 1e4])]\nmodule.sweep(time.sleep, np.zeros(4), workers=2)"
    running = script(body, tmp_path)
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    deadline = time.monotonic() + LONG
    started: list[str] = []
    while len(started) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
        started = [p for thread in children.parents[1].iterdir() for p in (thread / "children").read_text().split()]
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=LONG)
    assert len(started) >= 2  # the workers, and what looks after them
    left = started
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = [process for process in left if Path(f"/proc/{process}").exists()]
    assert not left


def test_the_same_by_an_executor_of_others_and_errors_come_back():
    with ThreadPoolExecutor(2) as executor:
        found = sweep(squares, Q, executor)
        assert np.array_equal(values(found), values(sweep(squares, Q, workers=1)))
        with pytest.raises(SystemShapeError, match="too many rows"):
            sweep(refuses, Q, executor)
        with pytest.raises(SweepError, match=r"No module named 'only_here'.*in a module that all workers can import"):
            sweep(Lacking(), Q, executor)


def test_conditioning_is_the_same_to_the_last_bit():
    tree = nd.autotree(6, skew=0.7)
    sensors = sensor_set(
        ACCELERATIONS | {"sigma": 0.1},
        {"type": "external_wrench", "links": {"except": "link6"}, "value": 0},
        TORQUES | {"sigma": 0.2},
    )
    here, there = (nd.conditioning(nd.System(tree, sensors), n=20, workers=workers) for workers in (1, 2))
    for name in ("configurations", "ranks", "smallest", "worst", "sigma"):
        assert np.array_equal(getattr(here, name), getattr(there, name)), name
