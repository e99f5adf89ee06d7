"""Time a tick of inverse and forward dynamics: ours and Pinocchio from Python, alternating in one process.

Run from the repository: `python -m benchmarks.tick [--quick] [--json FILE] [--plot FILE]`. Each figure is the median
over rounds, with the quartiles; the ratio is taken round by round, so that what disturbs the machine disturbs both.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin

import nori_dyn as nd
from benchmarks.common import arguments, keep, quartiles, rounds
from tests.robots import ROBOTS, load, pinocchio_model, to_pinocchio

PINNED = ("panda", "ur5", "anymal", "g1", "talos_reduced", "talos_full", "iCubGenova04")
PROBLEMS = {"inverse_dynamics": "tau", "forward_dynamics": "qdd"}


def measure(name: str, base: str, problem: str, n_rounds: int, seconds: float, n_batch: int) -> dict:
    """Return the figures of one robot and problem."""
    output = PROBLEMS[problem]
    tree = load(name, base)
    system = nd.System(tree, nd.sensors(problem))
    plan = nd.plan(system, outputs=(output,))
    solver = plan.solver("native")
    rng = np.random.default_rng(0)
    Q = np.array([tree.random_configuration(rng) for _ in range(n_batch)])
    Qd, Y = rng.normal(size=(n_batch, tree.nv)), rng.normal(size=(n_batch, system.ny))
    q, qd, y = Q[0], Qd[0], Y[0]
    solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = q, qd, y

    model = pinocchio_model(ROBOTS[name], base)
    data = model.createData()
    q_pin, v = to_pinocchio(tree, model, q, qd)
    a = rng.normal(size=model.nv)
    peer = pin.rnea if problem == "inverse_dynamics" else pin.aba
    times = rounds(
        {
            "tick": solver.tick,
            "solve": lambda: solver.solve(q, qd, y),
            "pinocchio": lambda: peer(model, data, q_pin, v, a),
            "batch": lambda: solver.solve_batch(Q, Qd, Y),
        },
        n_rounds,
        seconds,
    )
    times["batch"] /= n_batch
    batch = solver.solve_batch(Q, Qd, Y)
    return {
        "robot": name,
        "base": base,
        "problem": problem,
        "nv": tree.nv,
        "operations": solver.plan.cost.total,
        "microseconds": {key: quartiles(1e6 * value) for key, value in times.items()},
        "faster_than_pinocchio": {
            key: quartiles(times["pinocchio"] / times[key]) for key in ("tick", "solve", "batch")
        },
        "fell_back": float(batch.fell_back.mean()),
    }


def draw(results: list[dict], path: Path) -> None:
    """Draw the ratios to Pinocchio as bars."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), dpi=150, layout="constrained")
    for axes, (problem, title) in zip(
        figure.subplots(1, 2, sharey=True),
        {
            "inverse_dynamics": "inverse dynamics, against rnea",
            "forward_dynamics": "forward dynamics, against aba",
        }.items(),
        strict=True,
    ):
        own = [r for r in results if r["problem"] == problem]
        labels = [f"{r['robot']}\n{r['base']}, nv {r['nv']}" for r in own]
        for shift, key in ((-0.2, "tick"), (0.2, "batch")):
            middle = np.array([r["faster_than_pinocchio"][key] for r in own])
            error = np.abs(middle[:, [0, 2]] - middle[:, [1]]).T
            axes.barh(np.arange(len(own)) + shift, middle[:, 1], 0.4, xerr=error, label=key)
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set(title=title, xlabel="times faster than Pinocchio from Python", xscale="log", yticks=range(len(own)))
        axes.set_yticklabels(labels, fontsize=8)
        axes.legend()
    figure.savefig(path)


def main() -> None:
    options = arguments(__doc__)
    n_rounds, seconds = (9, 0.02) if options.quick else (31, 0.1)
    results = []
    heads = "".join(f"{head:>8}" for head in ("tick", "solve", "batch", "pin"))
    print(f"{'robot':<15}{'base':<10}{'problem':<18}{heads}   [us]; Pinocchio over tick, solve, batch")
    for name in PINNED:
        for base in ("fixed", "floating"):
            for problem in PROBLEMS:
                found = measure(name, base, problem, n_rounds, seconds, 4096)
                results.append(found)
                us = [found["microseconds"][key][1] for key in ("tick", "solve", "batch", "pinocchio")]
                ratio = " ".join(f"{found['faster_than_pinocchio'][key][1]:.1f}" for key in ("tick", "solve", "batch"))
                print(
                    f"{name:<15}{base:<10}{problem:<18}" + "".join(f"{x:8.2f}" for x in us) + f"   {ratio}", flush=True
                )
    keep(results, options, draw)


if __name__ == "__main__":
    main()
