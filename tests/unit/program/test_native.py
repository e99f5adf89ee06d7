"""Native code: its sine and cosine, its cache, its compiler, and what cannot get into its source."""

import hashlib
import json
import multiprocessing
import os
import stat
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.expressions import Graph
from nori_dyn.errors import CompilerError
from nori_dyn.program import compiler as compiler_module
from nori_dyn.program import emit as emit_module
from nori_dyn.program.compiler import cache_root, find_compiler, library_key, load_library
from nori_dyn.program.emit import Target, emit
from nori_dyn.program.kernel import native as native_module
from nori_dyn.program.kernel.base import Outcome
from nori_dyn.program.kernel.native import interface
from nori_dyn.program.kernel.registry import identity, native_kernel
from nori_dyn.program.program import Program
from nori_dyn.program.residual import residual_source
from tests.compilers import WIDTHS, compile_for, needs_compiler

pytestmark = needs_compiler


@pytest.fixture
def plan():
    return nd.plan(nd.System(nd.autotree(5, skew=1.0), nd.sensors("forward_dynamics")))


@pytest.fixture
def small(own_cache):
    """A plan that is soon compiled, and nothing of it is in the cache."""
    return nd.plan(nd.System(nd.autotree(2, skew=1.0), nd.sensors("forward_dynamics")))


def tick(solver, seed=0):
    rng, tree = np.random.default_rng(seed), solver.system.tree
    qdd, q = solver.outputs.qdd, solver.inputs.q
    solver.inputs.q[:] = tree.random_configuration(rng)
    solver.inputs.qd[:] = rng.normal(size=tree.nv)
    solver.inputs.y[:] = rng.normal(size=solver.system.ny)
    assert solver.tick().ok
    assert solver.outputs.qdd is qdd  # it writes nothing but its arrays
    assert solver.inputs.q is q
    return qdd.copy()


def compiled(program):
    """The library of a program for one state, and a function that returns C's struct of values and outputs."""
    unit, ffi = emit(program, Target.ONE_STATE, compiler_module.find_compiler().lanes), interface()
    library = load_library(ffi, unit.text, compiler_module.find_compiler())

    def at(values):
        arrays = [np.array(values, dtype=float), *map(np.zeros, (unit.n_work + 8, len(program.outputs), 1))]
        pointers = [ffi.cast("double *", array.ctypes.data) for array in arrays]
        struct = ffi.new("state *", (*pointers, np.nan))
        held[struct] = arrays
        return struct, arrays[2]

    held = WeakKeyDictionary()
    return library, at


def sines(angles):
    """Sines and cosines of angles by the emitted code."""
    graph = Graph()
    inputs = [graph.input(f"x{k}") for k in range(len(angles))]
    outputs = [f(x) for x in inputs for f in (np.sin, np.cos)]
    library, at = compiled(Program({"x": tuple(inputs)}, tuple(outputs)))
    struct, found = at(angles)
    assert library.run(struct) == 0
    return found[0::2], found[1::2]


def test_sines_and_cosines_are_right_to_the_last_bits(lanes):
    """Of angles beyond the reduction, too, which the library reduces, with those beside them in a vector."""
    rng = np.random.default_rng(0)
    near, far = [*rng.uniform(-7, 7, 301), *np.arange(-20, 20) * np.pi / 4, *rng.uniform(-1e5, 1e5, 60)], [1e7, 1e300]
    angles = np.array([*near, -3e15, 0.5, *far])
    sine, cosine = sines(angles)
    assert np.abs(sine - np.sin(angles)).max() <= 2.3e-16  # 2 units in the last place of 1
    assert np.abs(cosine - np.cos(angles)).max() <= 2.3e-16
    away = angles != 0
    assert np.abs(sine[away] / np.sin(angles[away]) - 1).max() < 5e-16


def test_the_residual_is_that_of_the_worst_equation(monkeypatch):
    """An equation of large numbers does not hide the error of one of small numbers."""
    monkeypatch.setattr(emit_module, "RESIDUAL_LIMIT", 1.0)
    graph = Graph()
    x, y, b = graph.input("x"), graph.input("y"), graph.input("b")
    large = ((graph.expr(-3e6), ((graph.one, 0),)),)  # x - 3e6 = 0
    small = ((b, ((graph.expr(-2.0), 1),)), (graph.zero, ()))  # b - 2 y = 0, and a row that is zero
    program = Program({"x": (x, y, b)}, (x, y), equations=(large, small))
    library, at = compiled(program)
    for one, other in ((3e6, 1.5e-6), (3e6, 1e-6), (0.0, 0.0)):
        struct, _ = at([one, other, 2e-6])
        assert not library.solve(struct)
        expected = max(abs(one - 3e6) / (abs(one) + 3e6), abs(2e-6 - 2 * other) / (2e-6 + 2 * abs(other)))
        assert struct.residual == pytest.approx(expected, abs=1e-15)
        monkeypatch.setattr(emit_module, "RESIDUAL_LIMIT", expected / 2)
        stricter, other_at = compiled(program)
        outcome = Outcome.LARGE_RESIDUAL if expected > 0 else Outcome.OK
        assert stricter.solve(other_at([one, other, 2e-6])[0]) == outcome
    assert library.solve(at([np.nan, 1.0, 2e-6])[0]) == Outcome.INPUT_NOT_FINITE


def test_places_that_are_large_have_larger_numbers():
    graph = Graph()
    for place, kind in ((1 << 16, "int"), (1, "unsigned short")):
        row = (graph.zero, ((graph.one, place),))
        source = residual_source(((row,),), lambda node: ("w", node.index))
        assert f"typedef {kind} place;" in source


def test_batches_of_any_size_are_what_single_states_are(plan, lanes):
    """Whole groups of vectors and parts of one, by threads, with an angle beyond the reduction among the others."""
    native, peer = plan.solver("native"), plan.solver("numpy")
    for N in (1, 3, 7, 8, 17, 31, 33, 100):
        Q, Qd, Y = state = states(native, N)
        Q[N // 2, 3] = 4e7
        expected = peer.solve_batch(*state).qdd
        singles = [native.solve(*one).qdd for one in zip(*state, strict=True)]
        np.testing.assert_allclose(singles, expected, rtol=1e-9, atol=1e-9)
        strided = np.asfortranarray(Q), np.repeat(Qd, 2, axis=1)[:, ::2], np.repeat(Y, 2, axis=0)[::2]
        for threads in (1, 3):
            found = native.solve_batch(*state, threads=threads)
            np.testing.assert_allclose(found.qdd, singles, rtol=1e-10, atol=1e-10)
            assert (found.residual < 1e-11).all()
            np.testing.assert_array_equal(native.solve_batch(*strided, threads=threads).qdd, found.qdd)


def test_each_width_is_compiled_by_itself(plan):
    """No cache may hand one width the code of another: that would test nothing."""
    kept = set()
    for width in WIDTHS:
        with pytest.MonkeyPatch.context() as patch:
            compile_for(width, patch)
            kernel = native_kernel(plan, True)
            single, batch = (kernel.unit(target).text for target in (Target.ONE_STATE, Target.BATCH))
            compiler = kernel._compiler
        assert f"#define LANES {width}\n" in single
        assert f"#define LANES {width}\n" in batch
        assert width == 8 or "__AVX512F__" not in compiler.identity
        kept |= {identity(plan, compiler, True), library_key(single, compiler)}
    assert len(kept) == 2 * len(WIDTHS)


def test_a_second_solver_compiles_nothing_and_the_cache_is_private(small, monkeypatch):
    first = tick(small.solver("native"))
    monkeypatch.setattr(compiler_module, "_compile", lambda *a: pytest.fail("compiled again"))
    np.testing.assert_array_equal(tick(small.solver("native")), first)
    assert stat.S_IMODE((cache_root() / "native").stat().st_mode) == 0o700


def test_a_plan_compiled_before_is_loaded_without_tracing_its_equations(own_cache, monkeypatch):
    def planned():
        return nd.plan(nd.System(nd.autotree(2, skew=0.7), nd.sensors("forward_dynamics")))

    first = planned().solver("native")
    expected, batch = tick(first), first.solve_batch(*states(first, 5)).qdd
    monkeypatch.setattr("nori_dyn.planning.planner.refine", lambda *a: pytest.fail("traced again"))
    again = planned().solver("native")
    np.testing.assert_array_equal(tick(again), expected)
    np.testing.assert_array_equal(again.solve_batch(*states(again, 5)).qdd, batch)


def test_a_function_compiled_before_is_loaded_without_writing_its_c(own_cache, monkeypatch):
    tree = nd.autotree(4, skew=0.7)
    q, qd, qdd = np.random.default_rng(3).normal(size=(3, tree.nv))
    expected, written_anew = nd.compile(nd.rnea, tree)(q, qd, qdd), []

    def counted(*given, **options):
        written_anew.append(given)
        return emit(*given, **options)

    monkeypatch.setattr(native_module, "emit", counted)
    again = nd.compile(nd.rnea, tree)
    np.testing.assert_array_equal(again(q, qd, qdd), expected)
    assert again.cost.total > 0
    assert not written_anew
    heavier = tree.replace(I=2 * tree.I)
    np.testing.assert_allclose(nd.compile(nd.rnea, heavier)(q, qd, qdd), 2 * expected, rtol=1e-12)
    assert len(written_anew) == 1


@pytest.mark.parametrize("problem", ["inverse_dynamics", "forward_dynamics"])
def test_a_plan_just_made_is_not_traced_again_and_leads_to_the_c_of_one_from_a_file(problem, monkeypatch):
    made = nd.plan(nd.System(nd.autotree(4, skew=0.7), nd.sensors(problem)), cache=False)
    again = written(replace(made, traced=None))
    monkeypatch.setattr("nori_dyn.planning.planner.refine", lambda *a: pytest.fail("traced again"))
    monkeypatch.setattr(native_module, "recall", lambda *a: None)
    assert written(made) == again


def written(plan):
    kernel = native_kernel(plan, True)
    return [kernel.unit(target).text for target in (Target.ONE_STATE, Target.BATCH)]


def states(solver, n):
    rng = np.random.default_rng(n)
    tree = solver.system.tree
    return rng.uniform(-2, 2, (n, tree.nq)), rng.normal(size=(n, tree.nv)), rng.normal(size=(n, solver.system.ny))


A_FOLDER = object()


def damage(path, content):
    """Put something else in the place of a file; a library that is mapped stays as it was."""
    path.unlink()
    if content is A_FOLDER:
        path.mkdir()
        (path / "file").write_text("")
    elif content is not None:
        path.write_bytes(content)


def test_damaged_entries_are_made_anew(small):
    first = tick(small.solver("native"))
    (record,) = (cache_root() / "native").glob("*.json")
    text = record.read_bytes()
    library = record.with_name(json.loads(text.partition(b"\n")[2])["single"]["address"] + ".so")
    content, seal = library.read_bytes(), library.with_suffix(".sha256")
    other, no_text = f"{hashlib.sha256(b'[]').hexdigest()}\n[]".encode(), b"\xff\xfe\n\xff"
    records = text[:100], b"", text.replace(b'"n_work":', b'"n_work":1'), other, no_text, A_FOLDER
    libraries = content[:2000], b"", content[:-1] + b"?", A_FOLDER
    for path, damages in ((record, records), (library, libraries), (seal, (no_text, None, A_FOLDER))):
        for damaged in damages:
            damage(path, damaged)
            np.testing.assert_array_equal(tick(small.solver("native")), first)
            assert record.read_bytes() == text
            assert seal.read_text().split()[0] == hashlib.sha256(library.read_bytes()).hexdigest()


def test_the_residual_is_optional(small, monkeypatch):
    monkeypatch.setattr(emit_module, "RESIDUAL_LIMIT", 0.0)  # nothing passes
    checked, unchecked = small.solver("native"), small.solver("native", check_residual=False)
    q, qd, y = (X[0] for X in states(checked, 1))
    assert checked.solve(q, qd, y).fell_back
    estimate = unchecked.solve(q, qd, y)
    assert not estimate.fell_back
    assert np.isnan(estimate.residual)
    batch = unchecked.solve_batch(*states(unchecked, 9))
    assert not batch.fell_back.any()
    assert np.isnan(batch.residual).all()
    np.testing.assert_allclose(estimate.qdd, checked.solve(q, qd, y).qdd, rtol=1e-10)


def test_a_cache_that_others_may_write_is_not_used(small):
    folder = cache_root() / "native"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.warns(nd.errors.NoriWarning, match="others may write"):
        solver = small.solver("native")
    assert np.isfinite(tick(solver)).all()
    assert not list(folder.iterdir())


def test_a_cache_that_cannot_be_written_is_replaced_by_a_temporary_one(small, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NORI_DYN_CACHE", str(tmp_path / "file"))
    with pytest.warns(nd.errors.NoriWarning, match="not cached"):
        solver = small.solver("native")
    assert np.isfinite(tick(solver)).all()


def _compile_in_a_process(cache):
    os.environ["NORI_DYN_CACHE"] = cache
    plan = nd.plan(nd.System(nd.autotree(2, skew=1.0), nd.sensors("forward_dynamics")))
    return tick(plan.solver("native"))


def test_two_processes_may_compile_the_same_plan_at_once(tmp_path):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        one, other = pool.map(_compile_in_a_process, [str(tmp_path)] * 2)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("flags", ["-ffast-math", "-funsafe-math-optimizations"])
def test_what_cc_brings_leaves_sines_right(small, monkeypatch, flags):
    Q, given = np.linspace(-3, 3, 40).reshape(20, 2), np.ones((20, 2))
    expected = small.solver("numpy").solve_batch(Q, given, given).qdd
    monkeypatch.setenv("CC", f"{' '.join(find_compiler().command)} {flags}")
    find_compiler.cache_clear()
    try:
        solver = small.solver("native")
        np.testing.assert_allclose(solver.solve_batch(Q, given, given).qdd, expected, rtol=1e-12)
        np.testing.assert_allclose(solver.solve(Q[0], given[0], given[0]).qdd, expected[0], rtol=1e-12)
        np.testing.assert_allclose(sines(Q[0])[0], np.sin(Q[0]), rtol=1e-15)
    finally:
        monkeypatch.undo()
        find_compiler.cache_clear()


def test_a_compiler_that_fails_gives_its_message(small, monkeypatch, tmp_path):
    broken = tmp_path / "cc"
    broken.write_text(
        "#!/bin/sh\ncase \"$*\" in *-dM*|*--version*) echo x;; *) echo 'out of paper' >&2; exit 1;; esac\n"
    )
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    find_compiler.cache_clear()
    try:
        with pytest.raises(CompilerError, match="out of paper"):
            small.solver("native")
        with pytest.warns(nd.errors.NoriWarning, match=r"(?s)out of paper.*NumPy"):
            assert small.solver("auto").backend == "numpy"
    finally:
        monkeypatch.undo()
        find_compiler.cache_clear()


def test_without_a_compiler_auto_is_numpy_with_one_warning(plan, monkeypatch):
    monkeypatch.setattr("nori_dyn.program.compiler.find_compiler", lambda: None)
    with pytest.warns(nd.errors.NoriWarning, match="C compiler") as caught:
        assert plan.solver("auto").backend == "numpy"
    assert len(caught) == 1
    with pytest.raises(CompilerError, match="pip install"):
        plan.solver("native")


HOSTILE = ('"', "*/ int x; /*", "\n#include <stdlib.h>\n", "double", "\\", "été", "'; import os #", "%s{}")


def test_names_do_not_get_into_the_source():
    tree = nd.autotree(len(HOSTILE))
    tree = tree.replace(names=HOSTILE, joint_names=tuple(f"{name}j" for name in HOSTILE))
    plan = nd.plan(nd.System(tree, nd.sensors("inverse_dynamics")))
    plain = nd.plan(nd.System(nd.autotree(len(HOSTILE)), nd.sensors("inverse_dynamics")))
    assert written(plan) == written(plain)
    assert np.isfinite(plan.solver("native").solve(np.ones(8), np.ones(8), np.ones(8)).tau).all()
