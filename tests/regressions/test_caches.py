"""Plan files, caches and compilers that once ended in a traceback, and plans that a busy machine changed."""

import errno
import itertools
import os
import time
from pathlib import Path

import pytest

import nori_dyn as nd
from nori_dyn.errors import CompilerError
from nori_dyn.io import cache_files
from nori_dyn.io.cache_files import ABANDONED, cache_root
from nori_dyn.planning.orders import cache_folder
from nori_dyn.program.compiler import find_compiler
from tests.trees import on_a_free_base

pytestmark = pytest.mark.usefixtures("own_cache")


# --------------------------------------------------------------------------------------------------------------
# Plan files and cached plans that once ended in a traceback.


def planned() -> nd.Plan:
    return nd.plan(nd.System(nd.autotree(2), nd.sensors("inverse_dynamics")))


def test_a_folder_at_the_name_of_a_cache_entry_is_replaced(recwarn):
    planned()
    (entry,) = cache_folder().iterdir()
    whole = entry.read_bytes()
    entry.unlink()
    entry.mkdir()
    (entry / "file").write_text("")
    planned()
    assert entry.read_bytes() == whole
    assert not recwarn.list


def test_seeds_below_zero_and_efforts_that_are_no_whole_numbers_are_refused():
    system = nd.System(nd.autotree(2), nd.sensors("inverse_dynamics"))
    for seed in (-1, -(10**30)):
        with pytest.raises(nd.errors.PlanError, match=f"the seed is {seed}"):
            nd.plan(system, seed=seed)
    for effort in (0.5, 60.0, -1, float("inf"), "60"):
        with pytest.raises(nd.errors.PlanError, match=f"the effort is {effort!r}.*whole number"):
            nd.plan(system, effort=effort)


# --------------------------------------------------------------------------------------------------------------
# Plans came out otherwise on busy machines, as time ran out before all orderings were tried.


def test_a_slow_clock_changes_no_plan(monkeypatch):
    system = nd.System(on_a_free_base(nd.autotree(3, branching=2, skew=0.3)), nd.sensors("forward_dynamics"))
    quick = [nd.plan(system, outputs=["qdd"], effort=effort, cache=False) for effort in (0, 3_000)]
    ticks = itertools.count(step=1e4)
    for clock in ("monotonic", "perf_counter", "process_time", "time"):
        monkeypatch.setattr(time, clock, lambda: next(ticks))
    slow = [nd.plan(system, outputs=["qdd"], effort=effort, cache=False) for effort in (0, 3_000)]
    assert [one.content() for one in slow] == [one.content() for one in quick]
    assert len(quick[0].tried) >= 3


def test_of_equal_programs_the_order_that_is_cheapest_on_D_is_taken():
    plan = nd.plan(nd.System(nd.autotree(6, skew=0.3), nd.sensors("inverse_dynamics")), cache=False)
    equal = [candidate for candidate in plan.tried if candidate.burden == plan.tried[0].burden]
    assert plan.tried[0].cost.total == min(candidate.cost.total for candidate in equal)


# --------------------------------------------------------------------------------------------------------------
# Compilers and caches of compiled programs that once ended in a traceback.


@pytest.fixture
def plan():
    if find_compiler() is None:
        pytest.skip("there is no C compiler here")
    return nd.plan(nd.System(nd.autotree(2, skew=1.0), nd.sensors("forward_dynamics")), cache=False)


@pytest.fixture
def forgotten():
    """Let a compiler be looked for anew in this test, and after it."""
    find_compiler.cache_clear()
    yield
    find_compiler.cache_clear()


@pytest.fixture
def full(monkeypatch):
    """Let there be no room for files of a certain ending, as on a disk that is full."""
    wrote = {name: getattr(Path, name) for name in ("write_bytes", "write_text")}

    def refusing(write, ending):
        def refuse(path, content, *rest):
            if path.name.endswith(ending):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            return write(path, content, *rest)

        return refuse

    def fill(ending):
        for name, write in wrote.items():
            monkeypatch.setattr(Path, name, refusing(write, ending))

    return fill


def test_on_a_full_disk_auto_goes_on_with_numpy(plan, full):
    for ending in (".c", "seal"):
        full(ending)
        with pytest.warns(nd.errors.NoriWarning, match=r"No space left on device.*NumPy instead"):
            solver = plan.solver()
        assert solver.backend == "numpy", ending
        with pytest.raises(CompilerError, match=r"cannot be written: .*No space left"):
            plan.solver("native")
        assert not list((cache_root() / "native").iterdir()), ending


def test_a_record_without_room_costs_a_warning(plan, full):
    full(".json")
    with pytest.warns(nd.errors.NoriWarning, match=r"not cached: .*No space left"):
        assert plan.solver("native").backend == "native"


def test_without_room_for_temporary_files_auto_goes_on_with_numpy(plan, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NORI_DYN_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(cache_files.tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.warns(nd.errors.NoriWarning) as caught:
        assert plan.solver().backend == "numpy"
    assert "NumPy instead" in str(caught[-1].message)


def test_a_compiler_that_is_no_command_is_left_out(plan, monkeypatch, forgotten):
    for command in ('gcc "', "gcc '-O2", "\\"):
        find_compiler.cache_clear()
        monkeypatch.setenv("CC", command)
        with pytest.warns(nd.errors.NoriWarning, match=r"^CC=.* is no command \(No .*\): another compiler is used"):
            assert plan.solver("native").backend == "native", command


def test_a_compiler_may_say_what_is_no_text(plan, monkeypatch, forgotten, tmp_path):
    noisy = tmp_path / "cc"
    noisy.write_text("#!/bin/sh\nprintf '\\377\\376 no'\nprintf '\\377 no' >&2\ncase \"$*\" in *-o*) exit 1;; esac\n")
    noisy.chmod(0o755)
    monkeypatch.setenv("CC", str(noisy))
    with pytest.raises(CompilerError, match=r"fails: .* no"):
        plan.solver("native")


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
