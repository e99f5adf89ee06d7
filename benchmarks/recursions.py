"""Time the classical algorithms, compiled, against Pinocchio's from Python, alternating in one process.

Run from the repository: `python -m benchmarks.recursions [--quick] [--json FILE] [--plot FILE]`. `tick` is the program
in place, `call` the program with its checks, `batch` a sample of a batch of 1,024. Each figure is the median over
rounds, with the quartiles.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import nori_dyn as nd
from benchmarks.common import arguments, keep, quartiles, rounds
from tests.robots import ROBOTS, load, pinocchio_model, to_pinocchio

PINNED = ("ur5", "panda", "anymal", "g1", "talos_reduced")
N_BATCH = 1024


def programs(tree: nd.KinematicTree) -> dict[str, nd.CompiledFunction]:
    """Return the compiled algorithms by name."""
    inverse, forward = nd.compile(nd.rnea, tree), nd.compile(nd.aba, tree)
    return {
        "rnea": inverse,
        "aba": forward,
        "crba": nd.compile(nd.crba, tree),
        "minverse": nd.compile(nd.minverse, tree),
        "coriolis": nd.compile(nd.coriolis, tree, outputs=("C",)),
        "rnea derivatives": inverse.derivative("q", "qd", "qdd"),
        "aba derivatives": forward.derivative("q", "qd", "tau"),
    }


def peers(model: pin.Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Return Pinocchio's algorithms at a state, by our names."""
    data = model.createData()
    return {
        "rnea": lambda: pin.rnea(model, data, q, v, a),
        "aba": lambda: pin.aba(model, data, q, v, a),
        "crba": lambda: pin.crba(model, data, q),
        "minverse": lambda: pin.computeMinverse(model, data, q),
        "coriolis": lambda: pin.computeCoriolisMatrix(model, data, q, v),
        "rnea derivatives": lambda: pin.computeRNEADerivatives(model, data, q, v, a),
        "aba derivatives": lambda: pin.computeABADerivatives(model, data, q, v, a),
    }


def measure(robot: str, base: str, n_rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Return the figures of one robot."""
    tree, rng = load(robot, base), np.random.default_rng(0)
    model = pinocchio_model(ROBOTS[robot], base)
    Q = np.array([tree.random_configuration(rng) for _ in range(N_BATCH)])
    V = rng.normal(size=(2, N_BATCH, tree.nv))
    q, v = to_pinocchio(tree, model, Q[0], V[0, 0])
    found, references = [], peers(model, q, v, rng.normal(size=model.nv))
    for name, program in programs(tree).items():
        inputs = [Q, *V][: len(vars(program.inputs))]
        state = [values[0].copy() for values in inputs]
        for array, values in zip(vars(program.inputs).values(), state, strict=True):
            array[:] = values
        functions = {
            "tick": program.tick,
            "call": lambda program=program, state=state: program(*state),
            "pinocchio": references[name],
            "batch": lambda program=program, inputs=inputs: program.batch(*inputs),
        }
        times = rounds(functions, n_rounds, seconds)
        times["batch"] /= N_BATCH
        found.append(
            {
                "robot": robot,
                "base": base,
                "nv": tree.nv,
                "algorithm": name,
                "operations": program.cost.total,
                "microseconds": {key: quartiles(1e6 * value) for key, value in times.items()},
                "faster_than_pinocchio": {
                    key: quartiles(times["pinocchio"] / times[key]) for key in ("tick", "call", "batch")
                },
            }
        )
    return found


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """Draw the ratios of ticks to Pinocchio, an algorithm a panel."""
    from matplotlib.figure import Figure

    algorithms = list(dict.fromkeys(r["algorithm"] for r in results))
    figure = Figure(figsize=(2.2 * len(algorithms), 4.2), dpi=130, layout="constrained")
    for axes, algorithm in zip(figure.subplots(1, len(algorithms), sharex=True, sharey=True), algorithms, strict=True):
        own = [r for r in results if r["algorithm"] == algorithm]
        ratios = np.array([r["faster_than_pinocchio"]["tick"] for r in own])
        error = np.abs(ratios[:, [0, 2]] - ratios[:, [1]]).T
        axes.barh(range(len(own)), ratios[:, 1], xerr=error, color="tab:blue")
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set(title=algorithm, yticks=range(len(own)))
        axes.set_yticklabels([f"{r['robot']}, {r['base']}" for r in own], fontsize=8)
        axes.invert_yaxis()
    figure.supxlabel("times faster than Pinocchio from Python, a tick")
    figure.savefig(path)


def main() -> None:
    options = arguments(__doc__)
    n_rounds, seconds = (9, 0.02) if options.quick else (31, 0.1)
    heads = "".join(f"{head:>8}" for head in ("tick", "call", "batch", "pin"))
    print(f"{'robot':<15}{'base':<10}{'algorithm':<18}{'ops':>8}{heads}   [us]; Pinocchio over tick, call, batch")
    results = []
    for robot in PINNED:
        for base in ("fixed", "floating"):
            for r in measure(robot, base, n_rounds, seconds):
                results.append(r)
                us = "".join(f"{r['microseconds'][key][1]:8.2f}" for key in ("tick", "call", "batch", "pinocchio"))
                ratios = " ".join(f"{r['faster_than_pinocchio'][key][1]:.1f}" for key in ("tick", "call", "batch"))
                line = f"{robot:<15}{base:<10}{r['algorithm']:<18}{r['operations']:>8}{us}   {ratios}"
                print(line, flush=True)
    keep(results, options, draw)


if __name__ == "__main__":
    main()
