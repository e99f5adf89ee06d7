"""How exact reused pivots are, and how often the guard acts: the load-cell robot of Nori's fig. 2 at random states.

Run from the repository: `python -m benchmarks.stability [--quick] [--json FILE]`. The error of a state is that of all
its unknowns, relative to the largest, against a freshly pivoted solution refined with residuals in extended precision.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import nori_dyn as nd
from nori_dyn.planning.outputs import output_columns
from tests.oracles import refined_solution
from tests.systems import Figure2

SIZES = (8, 12, 20)


def measure(n: int, n_states: int) -> dict[str, Any]:
    """Return the figures of the robot of n links."""
    tree = nd.autotree(n, skew=1.5).replace(gravity=(0.0, -9.81, 0.0))
    system = nd.System(tree, Figure2())
    plan = nd.plan(system, cache=False)
    columns = output_columns(system, plan.outputs)
    rng = np.random.default_rng(0)
    Q = np.array([tree.random_configuration(rng) for _ in range(n_states)])
    Qd, Y = rng.normal(size=(n_states, tree.nv)), rng.normal(size=(n_states, system.ny))
    estimate = plan.solver("native").solve_batch(Q, Qd, Y)
    found = np.concatenate([estimate[output.name].reshape(n_states, -1) for output in plan.outputs], axis=1)
    errors = np.empty(n_states)
    for k in range(n_states):
        expected = refined_solution(system, Q[k], Qd[k], Y[k])[columns]
        errors[k] = np.max(np.abs(found[k] - expected)) / np.max(np.abs(expected))
    return {
        "n": n,
        "states": n_states,
        "operations": plan.cost.total,
        "median_error": float(np.median(errors)),
        "worst_error": float(errors.max()),
        "fell_back": int(np.sum(estimate.fell_back)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few states, for a first look")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    print(f"{'links':>5}{'states':>8}{'operations':>12}{'median error':>14}{'worst error':>13}{'guard acted':>13}")
    results = []
    for n in SIZES:
        r = measure(n, 500 if options.quick else 10_000)
        results.append(r)
        print(
            f"{n:5d}{r['states']:8,d}{r['operations']:12,d}{r['median_error']:14.1e}{r['worst_error']:13.1e}"
            f"{r['fell_back']:13d}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
