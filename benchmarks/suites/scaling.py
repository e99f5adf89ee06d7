"""How all grows with the number of links: operations, planning, compiling, memory, and a tick beside Pinocchio's.

Each tree is measured in a process of its own, with an empty cache.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import benchmarks.peers.registry as registry
from benchmarks.drawing import draw_against, plain_ticks
from benchmarks.fresh import alone
from benchmarks.measure import Run
from benchmarks.peers.base import runs_of
from benchmarks.records import Record, compare, own_name
from benchmarks.robots import Robot, random_states
from benchmarks.stages import cpu_seconds
from benchmarks.suites.base import Options, Suite
from benchmarks.suites.counts import formula_aba, formula_rnea
from benchmarks.suites.tick import PROBLEMS
from nori_dyn.descriptions.sensor_configs import sensors
from nori_dyn.estimation.plan import plan
from nori_dyn.estimation.system import System
from nori_dyn.model.synthetic import autotree
from nori_dyn.tables import Table, number
from nori_dyn.tables.progress import Progress

SIZES = (10, 30, 100, 300, 1000)
QUICK = (10, 30)
SHAPES = {"chain": 1.0, "binary tree": 2.0}
SKEW = 1.5
PEERS = ("Pinocchio", "MuJoCo", "KLU")
"""Peers by name: those that are fast enough to be interesting here."""
FORMULAS = {"inverse_dynamics": ("RNEA", formula_rnea), "forward_dynamics": ("ABA", formula_aba)}


def measure(options: Options, progress: Progress) -> list[Record]:
    """Return a record a tree and problem."""
    sizes = QUICK if options.quick else SIZES
    cases = [(shape, n, problem) for n in sizes for shape in SHAPES for problem in PROBLEMS]
    records = []
    for k, case in enumerate(cases):
        progress(f"scaling, {', '.join(map(str, case))}", k / len(cases))
        records.append(alone(measured, *case, replace(options, paper_counts=None)))
    return records


def measured(shape: str, n: int, problem: str, options: Options) -> Record:
    """Return the record of a tree and problem; what it needs of time and memory is that of this process."""
    tree = autotree(n, SHAPES[shape], SKEW)
    system, output = System(tree, sensors(problem)), PROBLEMS[problem]
    start = cpu_seconds()
    made = plan(system, outputs=(output,), cache=False)
    planned = cpu_seconds()
    solver = made.solver()
    compiled = cpu_seconds()
    figures = {"planning": planned - start, "compiling": compiled - planned} | peak_memory()
    states = random_states(tree, 1, options.seed)
    solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = states.q[0], states.qd[0], states.y[0]

    def after_tick() -> Any:
        solver.tick()
        return getattr(solver.outputs, output).copy()

    peers = (registry.PEERS[name] for name in PEERS if name in registry.PEERS)
    runs, skipped = runs_of(peers, problem, Robot(shape, "fixed", tree), states)
    own = {own_name("tick", solver.backend): Run(solver.tick, after_tick)}
    case: dict[str, str | int | float] = {"shape": shape, "n": n, "problem": problem}
    record = compare(case, {"operations": made.cost.total}, own, runs, skipped, options.budget)
    return replace(record, figures=figures)


def peak_memory() -> dict[str, float]:
    """Return the most memory that this process has used [MB], where the system tells."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return {}
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return {"megabytes": int(found[1]) / 1e3} if found else {}


def tables(title: str, records: Sequence[Record]) -> list[Table]:
    """Return one table, a row a tree and problem."""
    names = list(dict.fromkeys(name for r in records for name in r.seconds if name != r.own))
    rows = []
    for record in records:
        n, figures = float(record.case["n"]), record.figures
        row = [record.label, f"{record.counts['operations'] / n:.0f}"]
        row += [number(figures[key]) if key in figures else "" for key in ("planning", "compiling", "megabytes")]
        tick = record.time(record.own)[1]
        row += [number(1e6 * tick), number(1e9 * tick / n)]
        row += [number(record.ratio(name)[1]) if name in record.seconds else "" for name in names]
        rows.append(tuple(row))
    columns = (
        "tree",
        "ops a link",
        "plan [CPU s]",
        "compile [CPU s]",
        "MB",
        "tick [us]",
        "a link [ns]",
        *(f"times, {name}" for name in names),
    )
    return [Table(title, columns, tuple(rows))] if rows else []


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Draw operations a link, planning, compiling and ticks against the number of links."""
    figure.set_size_inches(14, 8)
    grid = figure.subplots(2, 3, sharex=True)
    for row, problem in zip(grid, PROBLEMS, strict=True):
        operations, once, ratio = row
        for k, shape in enumerate(SHAPES):
            own = [r for r in records if (r.case["shape"], r.case["problem"]) == (shape, problem)]
            draw_against(operations, own, lambda r: r.counts["operations"] / float(r.case["n"]), shape, k)
            for name, style in (("planning", "-"), ("compiling", "--")):
                draw_against(once, own, lambda r, name=name: r.figures[name], f"{name}, {shape}", k, linestyle=style)  # type: ignore[misc]
            for peer, style in zip(PEERS, ("-", "--", ":"), strict=True):
                draw_against(
                    ratio,
                    own,
                    lambda r, peer=peer: r.ratio(peer)[1] if peer in r.seconds else None,  # type: ignore[misc]
                    f"{peer}, {shape}",
                    k,
                    linestyle=style,
                )
        name, formula = FORMULAS[problem]
        sizes = sorted({int(record.case["n"]) for record in records})
        operations.plot(sizes, [formula(n) / n for n in sizes], ":", color="black", label=f"{name}, as published")
        title = problem.replace("_", " ")
        operations.set(title=f"{title}: operations a link", ylim=(0, None))
        once.set(title=f"{title}: once [CPU s]", yscale="log")
        ratio.set(title=f"{title}: times the time of our tick", yscale="log")
        ratio.axhline(1, color="black", linewidth=0.8)
        for axes in row:
            axes.set(xscale="log", xlabel="links")
            plain_ticks(axes.xaxis)
            axes.grid(alpha=0.3)
            axes.legend(fontsize=7)


SUITE = Suite(
    "scaling",
    "How all grows with the number of links",
    measure,
    tables=tables,
    draw=draw,
    notes=(
        "Each tree is planned and compiled anew, in a process of its own. 'times': how many of our ticks a peer takes.",
    ),
)
