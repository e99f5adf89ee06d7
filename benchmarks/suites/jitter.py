"""How even ticks are in a loop of 1 kHz, from Python and in exported C; and what either allocates after the first."""

from __future__ import annotations

import subprocess
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.drawing import COLOURS
from benchmarks.records import Record
from benchmarks.robots import Robot, random_states
from benchmarks.suites.base import Cases, Options, Suite
from benchmarks.suites.tick import planned
from benchmarks.tables import figure_tables
from nori_dyn.errors import CompilerError
from nori_dyn.estimation.plan import Plan
from nori_dyn.program.compiler import find_compiler
from nori_dyn.program.export.files import c_export
from nori_dyn.program.export.folder import write_folder
from nori_dyn.solve.solver import Solver
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

REAL: Cases = (("panda", "fixed"), ("talos_reduced", "floating"))
QUICK: Cases = (("panda", "fixed"),)

PERIOD = 1_000_000
"""Time from tick to tick [ns]."""

SECONDS, QUICK_SECONDS = 60, 3
"""For how long [s]."""

SLACK = 200_000
"""Time before a tick is due in which Python waits without sleeping [ns]."""

COUNTED = 2000
"""Ticks over which allocations are counted."""

PERCENTILES = {"median": 50.0, "p99": 99.0, "p99.9": 99.9, "p99.99": 99.99, "largest": 100.0}

MAIN = r"""
#include "{name}.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long allocations;
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
void *malloc(size_t n) {{ ++allocations; return __libc_malloc(n); }}
void *calloc(size_t n, size_t m) {{ ++allocations; return __libc_calloc(n, m); }}
void *realloc(void *p, size_t n) {{ ++allocations; return __libc_realloc(p, n); }}

static {name}_inputs in;
static {name}_outputs out;
static {name}_workspace work;

static long long now(void) {{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1000000000LL * t.tv_sec + t.tv_nsec;
}}

/* jitter INPUTS DURATIONS TICKS PERIOD: prints how often memory was asked for after the first tick. */
int main(int argc, char **argv) {{
    if (argc != 5) return 2;
    FILE *file = fopen(argv[1], "rb");
    if (!file || fread(&in, sizeof in, 1, file) != 1) return 2;
    fclose(file);
    const long n = atol(argv[3]), period = atol(argv[4]);
    long long *took = calloc((size_t)n, sizeof *took);
    if (!took || {name}_solve(&in, &work, &out)) return 3;
    const long before = allocations;
    const long long start = now();
    for (long k = 0; k < n; ++k) {{
        const long long due = start + (k + 1) * period;
        const struct timespec at = {{due / 1000000000LL, due % 1000000000LL}};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        const long long begin = now();
        (void){name}_solve(&in, &work, &out);
        took[k] = now() - begin;
    }}
    printf("%ld\n", allocations - before);
    file = fopen(argv[2], "wb");
    return !file || fwrite(took, sizeof *took, (size_t)n, file) != (size_t)n || fclose(file);
}}
"""


def measure(options: Options, progress: Progress) -> list[Record]:
    """Return a record a robot and way to call: the time of each tick, and what is allocated."""
    robots, records = options.load(options.cases(QUICK, REAL))
    n = 1000 * (QUICK_SECONDS if options.quick else SECONDS)
    for k, robot in enumerate(robots):
        made = planned(robot, "inverse_dynamics")
        states = random_states(robot.tree, 1, options.seed)
        state = np.concatenate([states.q[0], states.qd[0], states.y[0]])
        for way, run in {"Python": _from_python, "C": _from_c}.items():
            progress(f"jitter, {robot.name}, {way}", k / len(robots))
            records.append(_record(robot, way, made, state, n, run))
    return records


def _record(robot: Robot, way: str, made: Plan, state: Floats, n: int, run: Callable[..., Any]) -> Record:
    case = {**robot.case, "from": way}
    try:
        took, allocated = run(made, state, n)
    except (CompilerError, OSError) as error:
        return Record(case, skipped={f"jitter from {way}": str(error)})
    found = {f"{name} [us]": float(x) / 1e3 for name, x in zip(PERCENTILES, _percentiles(took), strict=True)}
    return Record(case, {"allocated after the first": allocated}, figures=found, seconds={way: (took / 1e9).tolist()})


def _percentiles(took: NDArray[np.int64]) -> Floats:
    return np.asarray(np.percentile(took, [*PERCENTILES.values()]))


def _from_python(made: Plan, state: Floats, n: int) -> tuple[NDArray[np.int64], int]:
    """Return the time of each tick [ns], and the bytes by which the memory in use grows over some more ticks."""
    solver = Solver(made)
    values = np.empty(sum(np.size(x) for x in vars(solver.outputs).values()))
    tick, clock, took = solver.ticker(state, values), time.perf_counter_ns, np.empty(n, dtype=np.int64)
    tick()
    start = clock()
    for k in range(n):
        due = start + (k + 1) * PERIOD
        left = due - SLACK - clock()
        if left > 0:
            time.sleep(left / 1e9)
        while clock() < due:
            pass
        begin = clock()
        tick()
        took[k] = clock() - begin
    tracemalloc.start()
    tick()
    before = tracemalloc.get_traced_memory()[0]
    for _ in repeat(None, COUNTED):  # a counter would be memory of its own
        tick()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return took, int(grown)


def _from_c(made: Plan, state: Floats, n: int) -> tuple[NDArray[np.int64], int]:
    """Return the same of the exported C, whose calls of malloc and its kin are counted."""
    compiler = find_compiler()
    if compiler is None:
        raise CompilerError("there is no C compiler")
    code = c_export(made.plans, "jitter")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_folder(folder, {**code.files, "main.c": MAIN.format(name="jitter")})
        (folder / "inputs").write_bytes(state.tobytes())
        program = folder / "program"
        sources = [str(folder / "main.c"), str(folder / "jitter.c")]
        flags = ["-std=gnu11", "-O2", "-march=native", "-fno-builtin-malloc", "-w"]
        made_it = subprocess.run([*compiler.command, *flags, "-o", str(program), *sources, "-lm"], capture_output=True)
        if made_it.returncode:
            raise CompilerError(made_it.stderr.decode(errors="replace")[:300])
        arguments = [program, folder / "inputs", folder / "took", n, PERIOD]
        done = subprocess.run([*map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            raise CompilerError(f"the exported program ends with status {done.returncode}")
        return np.fromfile(folder / "took", dtype=np.int64), int(done.stdout)


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Draw the share of ticks that take longer than a time."""
    timed = [record for record in records if record.seconds]
    figure.set_size_inches(8, 4.5)
    axes = figure.subplots()
    for k, record in enumerate(timed):
        (samples,) = record.seconds.values()
        took = np.sort(1e6 * np.array(samples))
        style = {"color": COLOURS[k % len(COLOURS)], "label": record.label}
        axes.plot(took, 1 - np.arange(len(took)) / len(took), drawstyle="steps-post", **style)
    axes.set(xscale="log", yscale="log", xlabel="time of a tick [us]", ylabel="share of ticks that take longer")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)


def tables(title: str, records: Sequence[Record]) -> list[Any]:
    """Return a table of percentiles."""
    return figure_tables(title, [Record(r.case, r.counts, figures=r.figures) for r in records if r.figures])


SUITE = Suite(
    "jitter",
    "Ticks of inverse dynamics in a loop of 1 kHz",
    measure,
    tables=tables,
    draw=draw,
    notes=(
        "Allocated: bytes by which Python's memory grew over 2,000 ticks; calls of malloc and its kin in C. The "
        "largest times are those of the machine's scheduler, unless it is a real-time one.",
    ),
)
