"""Compilers and caches of compiled programs that once ended in a traceback."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import CompilerError
from nori_dyn.program import cache_files
from nori_dyn.program.cache_files import ABANDONED, cache_root
from nori_dyn.program.compiler import find_compiler
from tests.agreement.test_uncertainty import small
from tests.compilers import needs_compiler

pytestmark = [
    needs_compiler,
    pytest.mark.usefixtures("own_cache"),
]


@pytest.fixture
def plan():
    return nd.plan(nd.System(nd.autotree(2, skew=1.0), nd.sensors("forward_dynamics")), cache=False)


@pytest.fixture
def forgotten():
    """Let a compiler be looked for anew in this test, and after it."""
    find_compiler.cache_clear()
    yield
    find_compiler.cache_clear()


def solved(solver):
    return solver.solve(np.ones(2), np.ones(2), np.ones(2)).qdd


@pytest.fixture
def full(monkeypatch):
    """Let there be no room for files of a certain ending, as on a disk that is full."""

    def fill(ending):
        monkeypatch.setattr(Path, "write_bytes", without_room(Path.write_bytes, ending))
        monkeypatch.setattr(Path, "write_text", without_room(Path.write_text, ending))

    return fill


def without_room(write, ending):
    def refuse(path, content, *rest):
        if path.name.endswith(ending):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return write(path, content, *rest)

    return refuse


@pytest.mark.parametrize("ending", [".c", "seal"])
def test_on_a_full_disk_auto_goes_on_with_numpy(plan, full, ending):
    full(ending)
    with pytest.warns(nd.NoriWarning, match=r"No space left on device.*NumPy instead"):
        solver = plan.solver()
    assert solver.backend == "numpy"
    with pytest.raises(CompilerError, match=r"cannot be written: .*No space left"):
        plan.solver("native")
    assert not list((cache_root() / "native").iterdir())


def test_a_record_without_room_costs_a_warning(plan, full):
    full(".json")
    with pytest.warns(nd.NoriWarning, match=r"not cached: .*No space left"):
        assert plan.solver("native").backend == "native"


def test_without_room_for_temporary_files_auto_goes_on_with_numpy(plan, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NORI_DYN_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(cache_files.tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.warns(nd.NoriWarning) as caught:
        assert plan.solver().backend == "numpy"
    assert "NumPy instead" in str(caught[-1].message)


@pytest.mark.parametrize("command", ['gcc "', "gcc '-O2", "\\"])
def test_a_compiler_that_is_no_command_is_left_out(plan, monkeypatch, forgotten, command):
    monkeypatch.setenv("CC", command)
    with pytest.warns(nd.NoriWarning, match=r"^CC=.* is no command \(No .*\): another compiler is used"):
        assert plan.solver("native").backend == "native"


def test_a_compiler_may_say_what_is_no_text(plan, monkeypatch, forgotten, tmp_path):
    noisy = tmp_path / "cc"
    noisy.write_text("#!/bin/sh\nprintf '\\377\\376 no'\nprintf '\\377 no' >&2\ncase \"$*\" in *-o*) exit 1;; esac\n")
    noisy.chmod(0o755)
    monkeypatch.setenv("CC", str(noisy))
    with pytest.raises(CompilerError, match=r"fails: .* no"):
        plan.solver("native")


@pytest.mark.parametrize("ending", ["so", "sha256", "json"])
def test_a_folder_at_the_name_of_an_entry_is_replaced(plan, ending):
    expected = solved(plan.solver("native"))
    (entry,) = (cache_root() / "native").glob(f"*.{ending}")
    entry.unlink()
    entry.mkdir()
    (entry / "file").write_text("")
    np.testing.assert_array_equal(solved(plan.solver("native")), expected)
    assert entry.is_file()


@pytest.mark.parametrize("ending", ["sha256", "json"])
def test_an_entry_that_is_no_text_is_made_anew(plan, ending):
    expected = solved(plan.solver("native"))
    (entry,) = (cache_root() / "native").glob(f"*.{ending}")
    whole = entry.read_bytes()
    entry.write_bytes(b"\xff\xfe\n\xff")
    np.testing.assert_array_equal(solved(plan.solver("native")), expected)
    assert entry.read_bytes() == whole


def test_what_a_killed_process_left_is_removed_in_time(plan):
    plan.solver("native")
    folder = cache_root() / "native"
    for name, age in ((".partial-old", 2 * ABANDONED), (".partial-new", 0.0)):
        (folder / name).mkdir()
        (folder / name / "program.c").write_text("")
        then = (folder / name).stat().st_mtime - age
        os.utime(folder / name, (then, then))
    (next(folder.glob("*.json"))).unlink()
    plan.solver("native")
    assert [path.name for path in folder.glob(".*")] == [".partial-new"]


def test_a_batch_that_is_compiled_after_a_monitor_is_that_of_the_cached_program():
    """The monitor's expressions changed the order of the program's: the batch wrote beyond its workspace."""
    solver = small().solver("native")
    again = nd.plan(small().system, outputs=[output.name for output in small().outputs])  # as another process has it
    monitor = again.monitor("native")
    rng = np.random.default_rng(0)
    q, qd, y = (rng.normal(size=(5, n)) for n in (4, 4, solver.system.ny))
    np.testing.assert_array_equal(monitor.check_batch(q, qd, y).estimate.tau, solver.solve_batch(q, qd, y).tau)
