"""The C that does not depend on the robot: without a warning, clean under sanitizers, and known to the cache."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.export.interface import FILTER_STATUSES
from nori_dyn.planning.outputs import output_columns
from nori_dyn.program import compiler as compiler_module
from nori_dyn.program.compiler import C_FOLDER, c_file, find_compiler, library_key
from nori_dyn.program.emit import Target, emit
from nori_dyn.program.kernel.base import Outcome
from nori_dyn.program.kernel.registry import identity
from nori_dyn.program.lowering import solution_program
from nori_dyn.program.monitoring import MonitoredReadings
from nori_dyn.program.track_source import TrackShape, track_source
from tests.compilers import needs_compiler
from tests.exported import compile_with
from tests.robots import load
from tests.systems import UNLOADED, sensor_set
from tests.unit.filtering.test_base import EXPORTED

pytestmark = needs_compiler

STRICT = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-psabi", f"-I{C_FOLDER}")
SHAPE = TrackShape(2, 1, 2, 3, ((0, 0), (1, 2), (2, 4)), ((0, 0),), 2, 1, (0,), (0, 1, 2), (0.1,) * 3, (0.5,) * 3)
CASES = replace(SHAPE, of_case=(False, True, False), heavy=(False, True, False))


def program(sensors, outputs=None, tree=None, checked=False):
    plan = nd.plan(nd.System(tree or nd.autotree(4, skew=0.4), sensors), outputs=outputs)
    return solution_program(plan, output_columns(plan.system, plan.outputs).tolist(), checked).program


def weighed():
    rows = ({"type": kind, "joints": "all", "sigma": 1} for kind in ("joint_acceleration", "joint_torque"))
    return sensor_set(*rows, UNLOADED)


UNITS = {
    "one state, with the residual": lambda: emit(program("inverse_dynamics", checked=True), Target.ONE_STATE, 4).text,
    "one state, refined": lambda: emit(program(weighed(), ["tau"], nd.autotree(2)), Target.ONE_STATE, 4).text,
    "one state, quaternions and limbs": lambda: (
        emit(program("inverse_dynamics", ["tau"], load("solo12", "floating")), Target.ONE_STATE, 4).text
    ),
    "one state, rows": lambda: (
        emit(nd.compile(nd.minverse, load("g1", "floating"), backend="numpy")._program, Target.ONE_STATE, 4).text
    ),
    "a batch": lambda: emit(program("forward_dynamics", checked=True), Target.BATCH, 4).text,
    "a batch of floats": lambda: emit(program("forward_dynamics", checked=True), Target.BATCH, 4, is_single=True).text,
    "a batch, refined": lambda: emit(program(weighed(), ["tau"], nd.autotree(2)), Target.BATCH, 2).text,
    "judgement of a batch": lambda: (
        MonitoredReadings.of(nd.plan(nd.System(nd.autotree(2), weighed()), outputs=["tau", "qdd"])).judging
    ),
    "threads": lambda: c_file("threads.c"),
    "calls from Python": lambda: c_file("python_call.c"),
    "ticks that step back": lambda: track_source(SHAPE, 4, smooths=True),
    "contact states": lambda: track_source(CASES, 4),
    "contact states of a base": lambda: track_source(
        replace(CASES, n_v=9, n_f=0, walk=(0.1,) * 9, inverse_time=(0.5,) * 9, base=0), 4
    ),
}


@pytest.mark.parametrize("unit", UNITS)
def test_it_is_compiled_without_a_warning(unit, tmp_path):
    (tmp_path / "it.c").write_text(UNITS[unit]())
    compile_with(*STRICT, "-c", "-o", tmp_path / "it.o", tmp_path / "it.c")


MAIN = """
#include <stdlib.h>
int main(void) {
    static const int sizes[] = {SIZES};
    static double limits[N_LIMITS + 1];
    for (ptrdiff_t N = 1; N < 20; ++N)
        for (int by_state = 0; by_state < 2; ++by_state) {
            void *arrays[N_ARRAYS + 1];
            double *const work = aligned_alloc(64, (n_batch * sizeof(double) + 63) / 64 * 64);
            int *const statuses = malloc(N * sizeof(int));
            block blocks[N_ARRAYS + 1];
            for (int a = 0; a <= N_ARRAYS; ++a) {
                const block own = {sizes[a], by_state ? sizes[a] : 1, by_state ? 1 : N};
                blocks[a] = own;
                number *const its = arrays[a] = malloc(N * sizes[a] * sizeof(number));
                for (ptrdiff_t k = 0; k < N * sizes[a]; ++k) its[k] = 0.1 * (k % 7);
            }
            const batch at = {N, 1, arrays, blocks, limits, 0, statuses};
            const ptrdiff_t wrong = run_batch(&at, 0, N, work);
            for (ptrdiff_t k = 0; k < N; ++k) if (statuses[k] != OK || wrong) return 1;
            for (int a = 0; a <= N_ARRAYS; ++a) free(arrays[a]);
            free(work);
            free(statuses);
        }
    return 0;
}
"""


@pytest.mark.parametrize(("lanes", "is_single"), [(2, False), (4, True), (8, False), (8, True)])
def test_batches_stay_within_their_arrays(lanes, is_single, tmp_path):
    """Of any number of states, state by state and number by number, each array as long as it has to be."""
    made = program("forward_dynamics", ["qdd"], nd.autotree(2, skew=0.4))
    sizes = [*(len(scalars) for scalars in made.inputs.values()), len(made.outputs)]
    main = MAIN.replace("SIZES", ", ".join(map(str, sizes))).replace("N_LIMITS", "N_PIVOTS")
    (tmp_path / "it.c").write_text(emit(made, Target.BATCH, lanes, is_single=is_single).text + main)
    run_sanitized(tmp_path)


def run_sanitized(folder) -> str:
    """What a program of all C in a folder prints; it is compiled with sanitizers, and ends well."""
    sanitized = "-fsanitize=address,undefined", "-fno-sanitize-recover=all"
    try:
        compile_with(
            "-O1", "-g", "-w", f"-I{C_FOLDER}", *sanitized, "-o", folder / "it", *sorted(folder.glob("*.c")), "-lm"
        )
    except AssertionError as error:
        if "san" in str(error):
            pytest.skip("no sanitizers here")
        raise
    done = subprocess.run([folder / "it"], capture_output=True, text=True, env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert done.returncode == 0, done.stderr[:2000]
    return done.stdout


EXPORTS = {
    "a monitor": lambda: nd.plan(nd.System(nd.autotree(1), weighed()), outputs=["tau"]).export("it", monitor=True),
    "a filter": lambda: nd.Tracker(
        nd.plan(nd.System(nd.autotree(2), "momentum_observer")), 0.01, backend="numpy"
    ).export("it"),
    **{f"a base, {how}": lambda how=how: EXPORTED[how]().export("it") for how in ("recognised", "late")},
}


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=[pytest.mark.long] * what.startswith("a base")) for what in EXPORTS]
)
def test_what_is_exported_stays_within_its_arrays(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    EXPORTS[what]()
    if "base" in what:  # which is tilted, on bent legs
        given = "for (int k = 7; k < 13; ++k) in.q[k] = 0.04 * k; in.y[1] = 4.0; in.y[2] = 8.9;"
        main = tmp_path / "it" / "main.c"
        main.write_text(main.read_text().replace("    const clock_t start", f"{given} const clock_t start"))
    assert "chi-square" in run_sanitized(tmp_path / "it")


def test_a_header_that_changes_has_all_code_compiled_anew(tmp_path, monkeypatch):
    shutil.copytree(C_FOLDER, tmp_path / "c")
    monkeypatch.setattr(compiler_module, "C_FOLDER", tmp_path / "c")
    monkeypatch.setenv("NORI_DYN_CACHE", str(tmp_path / "cache"))
    tree, q = nd.autotree(2), np.array([0.3, -0.2])
    plan, compiler = nd.plan(nd.System(tree, "inverse_dynamics")), find_compiler()
    before = library_key("", compiler), identity(plan, compiler, True)
    assert np.isclose(nd.compile(lambda tree, q: np.sin(q), tree)(q), np.sin(q)).all()
    header = tmp_path / "c" / "sines.h"
    header.write_text(header.read_text().replace("*s = NUMBER(", "*s = 2.0 * NUMBER("))
    assert np.isclose(nd.compile(lambda tree, q: np.sin(q), tree)(q), 2 * np.sin(q)).all()
    assert all(
        old != new for old, new in zip(before, (library_key("", compiler), identity(plan, compiler, True)), strict=True)
    )


def test_outcomes_have_the_same_numbers_here_in_c_and_in_exports():
    body = re.sub(r"/\*.*?\*/", "", c_file("statuses.h"), flags=re.DOTALL)
    names = re.findall(r"[A-Z_]+", body[body.index("{") :])
    assert names == [outcome.name for outcome in Outcome]
    assert [outcome.value for outcome in Outcome] == list(range(len(names)))
    assert list(FILTER_STATUSES) == names[: len(FILTER_STATUSES)]


@pytest.mark.parametrize("header", ["program.h", "program_calls.h", "filter.h", "filter_calls.h"])
def test_what_python_reads_needs_no_preprocessor(header):
    assert "#" not in c_file(header)
