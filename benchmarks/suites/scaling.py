"""How all grows with the number of links: operations, planning, compiling, memory, and a tick beside Pinocchio's.

Each tree is measured in a process of its own, with an empty cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import nori_dyn as nd
from benchmarks.harness import Result, alone, compare, figure_tables, peak_megabytes
from benchmarks.peers.base import runs_of
from benchmarks.peers.registry import PEERS
from benchmarks.robots import Robot, random_states
from benchmarks.suites.base import Options, Suite
from benchmarks.suites.planning import cpu_seconds
from benchmarks.suites.tick import PROBLEMS, own_runs
from nori_dyn.tables import Table
from nori_dyn.tables.progress import Progress

SIZES = (10, 30, 100, 300, 1000)
QUICK = (10, 30)
SHAPES = {"chain": 1.0, "binary tree": 2.0}
SKEW = 1.5
BESIDE = ("Pinocchio", "MuJoCo", "KLU")
"""Peers that are fast enough to be interesting here."""


def measure(options: Options, progress: Progress) -> list[Result]:
    sizes = QUICK if options.quick else SIZES
    cases = [(shape, n, problem) for n in sizes for shape in SHAPES for problem in PROBLEMS]
    results = []
    for k, case in enumerate(cases):
        progress(f"scaling, {', '.join(map(str, case))}", k / len(cases))
        results.append(alone(measured, *case, options))
    return results


def measured(shape: str, n: int, problem: str, options: Options) -> Result:
    """What a tree and problem needs; time and memory are those of this process."""
    tree = nd.autotree(n, SHAPES[shape], SKEW)
    system = nd.System(tree, problem)
    start = cpu_seconds()
    plan = nd.plan(system, outputs=(PROBLEMS[problem],), cache=False)
    planned = cpu_seconds()
    plan.solver()
    figures = {"planning [CPU s]": planned - start, "compiling [CPU s]": cpu_seconds() - planned}
    figures["MB"] = peak_megabytes()
    states = random_states(tree, 1, options.seed)
    runs, skipped = runs_of((PEERS[name] for name in BESIDE), problem, Robot(shape, "fixed", tree), states)
    tick = dict([next(iter(own_runs(plan, problem, states).items()))])
    case, counts = {"shape": shape, "n": n, "problem": problem}, {"operations": plan.cost.total}
    return replace(compare(case, counts, tick, runs, skipped, options.budget), figures=figures)


def tables(title: str, results: Sequence[Result]) -> list[Table]:
    """Make one table, a row a tree and problem."""
    rows = []
    for one in results:
        n, tick = float(one.case["n"]), one.time(one.own)[1]
        figures = {**one.figures, "operations a link": one.counts["operations"] / n, "tick a link [ns]": 1e9 * tick / n}
        figures |= {f"times, {name}": one.ratio(name)[1] for name in one.seconds if name != one.own}
        rows.append(replace(one, seconds={}, figures=figures))
    return figure_tables(title, rows)


SUITE = Suite(
    "scaling",
    "How all grows with the number of links",
    measure,
    tables=tables,
    notes=(
        "Each tree is planned and compiled anew, in a process of its own. 'times': how many of our ticks a peer takes.",
    ),
)
