"""How all grows with the number of links: operations, planning, compiling, memory, and a tick against Pinocchio's.

Run from the repository: `python -m benchmarks.scaling [--quick] [--json FILE] [--plot FILE]`. Chains and binary trees
of Featherstone's autotree, each in a process of its own; nothing comes from a cache. Ticks alternate with Pinocchio's.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import nori_dyn as nd
from benchmarks.common import arguments, keep, pinocchio_of, quartiles, rounds

SIZES = (10, 30, 100, 300, 1000)
SHAPES = {"chain": 1.0, "binary tree": 2.0}
PROBLEMS = {"inverse_dynamics": "tau", "forward_dynamics": "qdd"}
SKEW = 1.5
PEER_LIMIT = 300
"""Largest robot that Pinocchio is asked for: the memory of its Data grows with the cube, to 15 GB at 600 joints."""


def measure(shape: str, n: int, problem: str, n_rounds: int, seconds: float) -> dict[str, Any]:
    """Return the figures of one tree and problem."""
    tree = nd.autotree(n, branching=SHAPES[shape], skew=SKEW)
    system = nd.System(tree, nd.sensors(problem))
    start = time.perf_counter()
    plan = nd.plan(system, outputs=(PROBLEMS[problem],), cache=False)
    planned = time.perf_counter()
    solver = plan.solver("native")
    compiled = time.perf_counter()
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    rng = np.random.default_rng(0)
    q, (v, y) = rng.uniform(-1, 1, n), rng.normal(size=(2, n))
    solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = q, v, y
    functions: dict[str, Callable[[], object]] = {"tick": solver.tick}
    difference = None
    if n <= PEER_LIMIT:
        model = pinocchio_of(tree)
        data = model.createData()
        peer = pin.rnea if problem == "inverse_dynamics" else pin.aba
        functions["pinocchio"] = lambda: peer(model, data, q, v, y)
        expected = peer(model, data, q, v, y)
        solver.tick()
        found = getattr(solver.outputs, PROBLEMS[problem])
        difference = float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))
    times = rounds(functions, n_rounds, seconds)
    ratio = quartiles(times["pinocchio"] / times["tick"]) if "pinocchio" in times else None
    return {
        "shape": shape,
        "n": n,
        "problem": problem,
        "operations": plan.cost.total,
        "operations_a_link": plan.cost.total / n,
        "planning_seconds": planned - start,
        "compiling_seconds": compiled - planned,
        "gigabytes": gigabytes,
        "microseconds": {name: quartiles(1e6 * values) for name, values in times.items()},
        "faster_than_pinocchio": ratio,
        "difference": difference,
    }


def measure_alone(*case: Any) -> dict[str, Any]:
    """Return the figures of a case measured in a fresh process, with a cache of its own."""
    with tempfile.TemporaryDirectory() as cache, multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_with_cache, (cache, *case))


def _with_cache(cache: str, *case: Any) -> dict[str, Any]:
    os.environ["NORI_DYN_CACHE"] = cache
    return measure(*case)


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """Draw operations a link, planning and compiling, and the ratio to Pinocchio."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.6), dpi=150, layout="constrained")
    operations, planning, ratio = figure.subplots(1, 3)
    for shape in SHAPES:
        for problem, style in zip(PROBLEMS, ("--", "-"), strict=True):
            own = [r for r in results if (r["shape"], r["problem"]) == (shape, problem)]
            n = np.array([r["n"] for r in own])
            label = f"{shape}, {problem.replace('_', ' ')}"
            color = f"C{list(SHAPES).index(shape)}"
            operations.plot(n, [r["operations_a_link"] for r in own], style, marker="o", color=color, label=label)
            seconds = [r["planning_seconds"] + r["compiling_seconds"] for r in own]
            planning.plot(n, seconds, style, marker="o", color=color, label=label)
            compared = [r for r in own if r["faster_than_pinocchio"]]
            times = np.array([r["faster_than_pinocchio"] for r in compared])
            error = np.abs(times[:, [0, 2]] - times[:, [1]]).T
            ratio.errorbar(
                [r["n"] for r in compared], times[:, 1], error, linestyle=style, marker="o", color=color, label=label
            )
    n = np.array(sorted({r["n"] for r in results}))
    operations.plot(n, 429 - 507 / n, ":", color="black", label="articulated-body algorithm, as published")
    operations.set(title="operations a link and tick", ylim=(0, None))
    planning.set(title="planning and compiling [s]", yscale="log")
    ratio.set(title="a tick, times faster than Pinocchio from Python", ylim=(0, None))
    ratio.axhline(1, color="black", linewidth=0.8)
    for axes in (operations, planning, ratio):
        axes.set(xlabel="links", xscale="log")
        axes.grid(alpha=0.3)
    figure.legend(*operations.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    figure.savefig(path)


def main() -> None:
    options = arguments(__doc__)
    sizes, n_rounds, seconds = (SIZES[:3], 9, 0.02) if options.quick else (SIZES, 31, 0.1)
    heads = "".join(f"{head:>9}" for head in ("op/link", "plan s", "comp. s", "GB", "tick us", "pin us"))
    print(f"{'shape':<12}{'n':>5}{'':3}{'problem':<3}{heads}  faster")
    results = []
    for shape in SHAPES:
        for n in sizes:
            for problem in PROBLEMS:
                r = measure_alone(shape, n, problem, n_rounds, seconds)
                results.append(r)
                figures = [
                    r[key] for key in ("operations_a_link", "planning_seconds", "compiling_seconds", "gigabytes")
                ]
                figures += [middle for _, middle, _ in r["microseconds"].values()]
                faster = f"  {r['faster_than_pinocchio'][1]:.1f}" if r["faster_than_pinocchio"] else ""
                print(
                    f"{shape:<12}{n:5d}{problem[:2]:>5} " + "".join(f"{x:9.2f}" for x in figures) + faster, flush=True
                )
    keep(results, options, draw)


if __name__ == "__main__":
    main()
