"""Native code: its sine and cosine, its cache, its compiler, and what cannot get into its source."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import stat
import threading
from dataclasses import replace

import cffi
import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.expressions import Graph
from nori_dyn.errors import CompilerError
from nori_dyn.program import compiler as compiler_module
from nori_dyn.program.backends import native as native_module
from nori_dyn.program.backends import registry
from nori_dyn.program.backends.native import NativeBackend
from nori_dyn.program.c_source import c_source
from nori_dyn.program.compiler import cache_root, find_compiler, load_library
from nori_dyn.program.job import Job
from nori_dyn.program.kernel.native import SINGLE
from tests.compilers import needs_compiler

pytestmark = [
    needs_compiler,
    pytest.mark.usefixtures("own_cache"),
]


@pytest.fixture
def plan():
    return nd.plan(nd.System(nd.autotree(5, skew=1.0), nd.sensors("forward_dynamics")), cache=False)


def tick(solver, seed=0):
    rng = np.random.default_rng(seed)
    tree = solver.system.tree
    solver.inputs.q[:] = tree.random_configuration(rng)
    solver.inputs.qd[:] = rng.normal(size=tree.nv)
    solver.inputs.y[:] = rng.normal(size=solver.system.ny)
    assert solver.tick().ok
    return solver.outputs.qdd.copy()


def sines(angles):
    """Return sines and cosines of angles by the emitted code."""
    graph = Graph()
    inputs = [graph.input(f"x{k}") for k in range(len(angles))]
    outputs = [f(x) for x in inputs for f in (np.sin, np.cos)]
    source = c_source(Job(graph, tuple(inputs), tuple(outputs), (), ()), find_compiler().lanes)
    ffi = cffi.FFI()
    ffi.cdef(SINGLE)
    library = load_library(ffi, source.single, find_compiler())
    arrays = np.array(angles, dtype=float), np.zeros(source.n_work + 8), np.zeros(len(outputs)), np.zeros(1)
    assert library.run(at(ffi, arrays)) == 0
    return arrays[2][0::2], arrays[2][1::2]


def at(ffi, arrays, residual_limit=1.0):
    """Return the C struct of inputs, workspace, outputs and limits."""
    pointers = [ffi.cast("double *", array.ctypes.data) for array in arrays]
    return ffi.new("state *", (*pointers, residual_limit, np.nan))


def test_sines_and_cosines_are_right_to_the_last_bits():
    rng = np.random.default_rng(0)
    angles = np.concatenate([rng.uniform(-7, 7, 900), rng.uniform(-1e5, 1e5, 100), np.arange(-20, 20) * np.pi / 4])
    sine, cosine = sines(angles)
    assert np.abs(sine - np.sin(angles)).max() <= 2.3e-16  # 2 units in the last place of 1
    assert np.abs(cosine - np.cos(angles)).max() <= 2.3e-16
    away = angles != 0
    assert np.abs(sine[away] / np.sin(angles[away]) - 1).max() < 5e-16


@pytest.mark.parametrize("angle", [1e7, -3e15, 1e300])
def test_huge_angles_are_reduced_by_the_library(angle):
    sine, cosine = sines([0.5, angle])
    np.testing.assert_allclose(sine, np.sin([0.5, angle]), rtol=1e-15)
    np.testing.assert_allclose(cosine, np.cos([0.5, angle]), rtol=1e-15)


@pytest.mark.parametrize("unknowns", [(3e6, 1.5e-6), (3e6, 1e-6), (0.0, 0.0), (np.nan, 1.0)])
def test_the_residual_is_that_of_the_worst_equation(unknowns):
    """An equation of large numbers does not hide the error of one of small numbers."""
    graph = Graph()
    x, y, b = graph.input("x"), graph.input("y"), graph.input("b")
    large = ((graph.expr(-3e6), ((graph.one, 0),)),)  # x - 3e6 = 0
    small = ((b, ((graph.expr(-2.0), 1),)), (graph.zero, ()))  # b - 2 y = 0, and a row that is zero
    source = c_source(Job(graph, (x, y, b), (x, y), (), (large, small)), find_compiler().lanes)
    ffi = cffi.FFI()
    ffi.cdef(SINGLE)
    library = load_library(ffi, source.single, find_compiler())
    arrays = np.array([*unknowns, 2e-6]), np.zeros(source.n_work + 8), np.zeros(2), np.zeros(1)
    struct = at(ffi, arrays)
    suspicious = library.solve(struct)
    if np.isnan(unknowns[0]):
        assert suspicious
        return
    assert not suspicious
    expected = max(
        abs(unknowns[0] - 3e6) / (abs(unknowns[0]) + 3e6), abs(2e-6 - 2 * unknowns[1]) / (2e-6 + 2 * abs(unknowns[1]))
    )
    assert struct.residual == pytest.approx(expected, abs=1e-15)
    assert library.solve(at(ffi, arrays, residual_limit=expected / 2)) == (expected > 0)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("N", [1, 3, 8, 17, 100])
def test_batches_of_any_size_and_threads(plan, N, threads):
    rng = np.random.default_rng(N)
    tree = plan.system.tree
    Q, Qd, Y = rng.uniform(-2, 2, (N, tree.nq)), rng.normal(size=(N, tree.nv)), rng.normal(size=(N, plan.system.ny))
    native = plan.solver("native").solve_batch(Q, Qd, Y, threads=threads)
    peer = plan.solver("numpy").solve_batch(Q, Qd, Y)
    np.testing.assert_allclose(native.qdd, peer.qdd, rtol=1e-9, atol=1e-9)
    assert (native.residual < 1e-11).all()


def test_a_batch_of_strided_arrays(plan):
    rng = np.random.default_rng(0)
    tree = plan.system.tree
    Q = np.asfortranarray(rng.uniform(-2, 2, (9, tree.nq)))
    Qd, Y = rng.normal(size=(9, 2 * tree.nv))[:, ::2], rng.normal(size=(18, plan.system.ny))[::2]
    solver = plan.solver("native")
    one = solver.solve_batch(Q, Qd, Y).qdd
    np.testing.assert_array_equal(one, solver.solve_batch(Q.copy(), Qd.copy(), Y.copy()).qdd)


def test_threads_with_a_solver_each_do_not_disturb_each_other(plan):
    expected = [tick(plan.solver("native"), seed) for seed in range(4)]
    wrong = []

    def work(seed):
        solver = plan.solver("native")
        wrong.extend(1 for _ in range(200) if not np.array_equal(tick(solver, seed), expected[seed]))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_second_solver_compiles_nothing(plan, monkeypatch):
    first = tick(plan.solver("native"))
    monkeypatch.setattr(compiler_module, "_compile", lambda *a: pytest.fail("compiled again"))
    np.testing.assert_array_equal(tick(plan.solver("native")), first)


def test_a_plan_compiled_before_is_loaded_without_tracing_its_equations(monkeypatch):
    def planned():
        return nd.plan(nd.System(nd.autotree(4, skew=0.7), nd.sensors("forward_dynamics")))

    first = planned().solver("native")
    expected, batch = tick(first), first.solve_batch(*states(first, 5)).qdd
    monkeypatch.setattr("nori_dyn.planning.planner.refine", lambda *a: pytest.fail("traced again"))
    again = planned().solver("native")
    np.testing.assert_array_equal(tick(again), expected)
    np.testing.assert_array_equal(again.solve_batch(*states(again, 5)).qdd, batch)


@pytest.mark.parametrize("problem", ["inverse_dynamics", "forward_dynamics"])
def test_a_plan_just_made_is_not_traced_again_and_leads_to_the_c_of_one_from_a_file(problem, monkeypatch):
    made = nd.plan(nd.System(nd.autotree(4, skew=0.7), nd.sensors(problem)), cache=False)
    again = NativeBackend(replace(made, traced=None))._source
    monkeypatch.setattr("nori_dyn.planning.planner.refine", lambda *a: pytest.fail("traced again"))
    monkeypatch.setattr(native_module, "recall", lambda key: None)
    source = NativeBackend(made)._source
    assert (source.single, source.batch) == (again.single, again.batch)


def states(solver, n):
    rng = np.random.default_rng(n)
    tree = solver.system.tree
    return rng.uniform(-2, 2, (n, tree.nq)), rng.normal(size=(n, tree.nv)), rng.normal(size=(n, solver.system.ny))


@pytest.mark.parametrize("damage", ["cut", "emptied", "changed", "of another kind"])
def test_a_damaged_record_of_a_compiled_plan_is_made_anew(plan, damage):
    first = tick(plan.solver("native"))
    (record,) = (cache_root() / "native").glob("*.json")
    content = record.read_text()
    damaged = {
        "cut": content[:100],
        "emptied": "",
        "changed": content.replace('"n_work":', '"n_work":1'),
        "of another kind": f"{hashlib.sha256(b'[]').hexdigest()}\n[]",
    }
    record.write_text(damaged[damage])
    np.testing.assert_array_equal(tick(plan.solver("native")), first)
    assert record.read_text() == content


def test_the_residual_is_optional(plan, monkeypatch):
    monkeypatch.setattr(native_module, "RESIDUAL_LIMIT", 0.0)  # nothing passes
    checked, unchecked = plan.solver("native"), plan.solver("native", check_residual=False)
    q, qd, y = (X[0] for X in states(checked, 1))
    assert checked.solve(q, qd, y).fell_back
    estimate = unchecked.solve(q, qd, y)
    assert not estimate.fell_back
    assert np.isnan(estimate.residual)
    batch = unchecked.solve_batch(*states(unchecked, 9))
    assert not batch.fell_back.any()
    assert np.isnan(batch.residual).all()
    np.testing.assert_allclose(estimate.qdd, checked.solve(q, qd, y).qdd, rtol=1e-10)


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_batch_with_what_is_not_finite_is_refused_by_name(which, value):
    plan = nd.plan(nd.System(nd.autotree(3), nd.sensors("forward_dynamics")), outputs=("qdd:joint1",), cache=False)
    solver = plan.solver("native")
    batch = states(solver, 11)
    batch[which][7, 2] = value
    with pytest.raises(nd.InputError, match=rf"{('Q', 'Qd', 'Y')[which]}\[7, 2\].*finite"):
        solver.solve_batch(*batch)


@pytest.mark.parametrize("damage", ["cut", "emptied", "changed", "no seal"])
def test_a_damaged_cache_entry_is_made_anew(plan, damage):
    first = tick(plan.solver("native"))
    (library,) = (cache_root() / "native").glob("*.so")
    content = library.read_bytes()
    library.unlink()  # the old one stays mapped
    if damage == "no seal":
        library.with_suffix(".sha256").unlink()
    else:
        library.write_bytes({"cut": content[:2000], "emptied": b"", "changed": content[:-1] + b"?"}[damage])
    np.testing.assert_array_equal(tick(plan.solver("native")), first)


def test_the_cache_is_private(plan):
    plan.solver("native")
    assert stat.S_IMODE((cache_root() / "native").stat().st_mode) == 0o700


def test_a_cache_that_others_may_write_is_not_used(plan):
    folder = cache_root() / "native"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.warns(nd.NoriWarning, match="others may write"):
        solver = plan.solver("native")
    assert np.isfinite(tick(solver)).all()
    assert not list(folder.iterdir())


def test_a_cache_that_cannot_be_written_is_replaced_by_a_temporary_one(plan, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NORI_DYN_CACHE", str(tmp_path / "file"))
    with pytest.warns(nd.NoriWarning, match="not cached"):
        solver = plan.solver("native")
    assert np.isfinite(tick(solver)).all()


def _compile_in_a_process(cache):
    os.environ["NORI_DYN_CACHE"] = cache
    plan = nd.plan(nd.System(nd.autotree(5, skew=1.0), nd.sensors("forward_dynamics")), cache=False)
    return tick(plan.solver("native"))


def test_two_processes_may_compile_the_same_plan_at_once(tmp_path):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        one, other = pool.map(_compile_in_a_process, [str(tmp_path)] * 2)
    np.testing.assert_array_equal(one, other)


def test_a_compiler_that_fails_gives_its_message(plan, monkeypatch, tmp_path):
    broken = tmp_path / "cc"
    broken.write_text(
        "#!/bin/sh\ncase \"$*\" in *-dM*|*--version*) echo x;; *) echo 'out of paper' >&2; exit 1;; esac\n"
    )
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    find_compiler.cache_clear()
    try:
        with pytest.raises(CompilerError, match="out of paper"):
            plan.solver("native")
        with pytest.warns(nd.NoriWarning, match=r"(?s)out of paper.*NumPy"):
            assert plan.solver("auto").backend == "numpy"
    finally:
        monkeypatch.undo()
        find_compiler.cache_clear()


def test_without_a_compiler_auto_is_numpy_with_one_warning(plan, monkeypatch):
    monkeypatch.setattr("nori_dyn.program.compiler.find_compiler", lambda: None)
    with pytest.warns(nd.NoriWarning, match="C compiler") as caught:
        assert plan.solver("auto").backend == "numpy"
    assert len(caught) == 1
    with pytest.raises(CompilerError, match="pip install"):
        plan.solver("native")


def test_auto_is_native_where_there_is_a_compiler(plan):
    assert registry.make_backend("auto", plan).name == "native"


HOSTILE = ('"', "*/ int x; /*", "\n#include <stdlib.h>\n", "double", "\\", "été", "'; import os #", "%s{}")


def test_names_do_not_get_into_the_source():
    tree = nd.autotree(len(HOSTILE))
    tree = tree.replace(names=HOSTILE, joint_names=tuple(f"{name}j" for name in HOSTILE))
    plan = nd.plan(nd.System(tree, nd.sensors("inverse_dynamics")), cache=False)
    source = NativeBackend(plan)._source
    plain = NativeBackend(
        nd.plan(nd.System(nd.autotree(len(HOSTILE)), nd.sensors("inverse_dynamics")), cache=False)
    )._source
    assert source.single == plain.single
    assert source.batch == plain.batch
    assert np.isfinite(plan.solver("native").solve(np.ones(8), np.ones(8), np.ones(8)).tau).all()


def test_a_tick_writes_nothing_but_its_arrays(plan):
    solver = plan.solver("native")
    tau, q = solver.outputs.tau, solver.inputs.q
    tick(solver)
    assert solver.outputs.tau is tau
    assert solver.inputs.q is q
