"""How the Coriolis matrix and the Christoffel symbols grow with a robot: the figures of Echeandia and Wensing, redone.

Run from the repository: `python -m benchmarks.coriolis [--quick] [--json FILE] [--plot FILE]`. Serial chains, binary
trees, and bipeds and quadrupeds on six joints of one freedom, each of revolute joints a skewed angle apart; native
programs in place, alternating with Pinocchio's computeCoriolisMatrix from Python. A program larger than NATIVE_LIMIT is
counted and not timed, and one larger than COUNTED_LIMIT not made: straight-line code is for what fits a cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import nori_dyn as nd
from benchmarks.common import arguments, keep, pinocchio_of, quartiles, rounds
from nori_dyn.model.joints import Joint, Prismatic, Revolute

SKEW = 1.5
SIZES = (2, 5, 10, 20, 30, 50, 70, 100)
NATIVE_LIMIT = 150_000
COUNTED_LIMIT = 1_000_000
AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def legged(n_legs: int, n: int) -> nd.KinematicTree:
    """Return a body on six joints of one freedom, with legs of n revolute joints in all."""
    leg = nd.autotree(max(math.ceil(n / n_legs), 2), skew=SKEW)
    body = nd.autotree(1)
    joints: list[Joint] = [*(Prismatic(axis) for axis in AXES), *(Revolute(axis) for axis in AXES)]
    parents, X, I = list(range(-1, 5)), [body.X_tree[0]] * 6, [np.zeros((6, 6))] * 5 + [body.I[0]]
    for k in range(n):
        number, place = k % n_legs, k // n_legs
        parents.append(5 if place == 0 else 6 + k - n_legs)
        joints.append(Revolute())
        hip = nd.autotree(2, skew=SKEW + 0.1 * number).X_tree[1]
        X.append(hip if place == 0 else leg.X_tree[1])
        I.append(leg.I[place])
    names = tuple(f"link{k}" for k in range(n + 6))
    return nd.KinematicTree(f"{n_legs} legs, {n}", names, names, tuple(parents), tuple(joints), tuple(X), np.array(I))


SHAPES: dict[str, Callable[[int], nd.KinematicTree]] = {
    "serial chain": lambda n: nd.autotree(n, skew=SKEW),
    "binary tree": lambda n: nd.autotree(n, branching=2.0, skew=SKEW),
    "biped": lambda n: legged(2, n),
    "quadruped": lambda n: legged(4, n),
}


def estimate(tree: nd.KinematicTree, power: int) -> float:
    """Return about how many operations a program has that visits the paths of all joints to some power."""
    depths = [depth + 1 for depth in tree.depths()]
    return sum(40 * d if power == 1 else 11 * d * (d + 1) for d in depths)


def measure(shape: str, n: int, n_rounds: int, seconds: float) -> dict[str, Any]:
    """Return the figures of one robot."""
    tree, rng = SHAPES[shape](n), np.random.default_rng(0)
    q, v = rng.uniform(-1, 1, tree.nv), rng.normal(size=tree.nv)
    model = pinocchio_of(tree)
    data = model.createData()
    functions: dict[str, Callable[[], Any]] = {"pinocchio": lambda: pin.computeCoriolisMatrix(model, data, q, v)}
    found: dict[str, Any] = {"shape": shape, "n": n, "nv": tree.nv, "operations": {}}
    wanted = {
        "C": (1, lambda backend: nd.compile(nd.coriolis, tree, outputs=("C",), backend=backend)),
        "Gamma": (2, lambda backend: nd.compile(nd.christoffel, tree, backend=backend)),
    }
    programs = {}
    for name, (power, make) in wanted.items():
        size = estimate(tree, power)
        if size > COUNTED_LIMIT:
            continue
        program = make("native" if size <= NATIVE_LIMIT else "numpy")
        found["operations"][name] = program.cost.total
        if program.backend == "native":
            programs[name] = program
            for array, values in zip(vars(program.inputs).values(), (q, v), strict=False):
                array[:] = values
            functions[name] = program.tick
    times = rounds(functions, n_rounds, seconds)
    if "C" in programs:
        C = functions["pinocchio"]()
        found["difference"] = float(np.abs(programs["C"].outputs - C).max() / np.abs(C).max())
        found["faster_than_pinocchio"] = quartiles(times["pinocchio"] / times["C"])
    if len(programs) == 2:
        product = np.asarray(programs["Gamma"].outputs) @ v
        found["C_of_Gamma"] = float(np.abs(product - programs["C"].outputs).max() / np.abs(product).max())
    found["microseconds"] = {name: quartiles(1e6 * values) for name, values in times.items()}
    return found


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """Draw times and operations against the number of joints, as the paper's figs. 2 to 4."""
    from matplotlib.figure import Figure

    panels = (("serial chain",), ("binary tree",), ("biped", "quadruped"))
    figure = Figure(figsize=(12, 7), dpi=130, layout="constrained")
    grid = figure.subplots(2, 3, sharex=True, sharey="row")
    styles = {"C": "o-", "Gamma": "s-", "pinocchio": "x:"}
    names = {"C": "C", "Gamma": "Christoffel symbols", "pinocchio": "C, Pinocchio from Python"}
    for column, shapes in enumerate(panels):
        for shape, colours in zip(
            shapes, (("tab:blue", "tab:orange", "gray"), ("navy", "tab:red", "black")), strict=False
        ):
            own = [r for r in results if r["shape"] == shape]
            for (key, style), colour in zip(styles.items(), colours, strict=True):
                label = names[key] if len(shapes) == 1 else f"{names[key]}, {shape}"
                timed = [r for r in own if key in r["microseconds"]]
                middle = [r["microseconds"][key][1] for r in timed]
                grid[0, column].plot([r["n"] for r in timed], middle, style, color=colour, label=label, markersize=4)
                if key != "pinocchio":
                    counted = [r for r in own if key in r["operations"]]
                    operations = [r["operations"][key] for r in counted]
                    grid[1, column].plot([r["n"] for r in counted], operations, style, color=colour, markersize=4)
        grid[1, column].set_xticks(SIZES, labels=map(str, SIZES), minor=False)
        grid[1, column].minorticks_off()
        grid[0, column].set(title=" and ".join(f"{shape}s" for shape in shapes), xscale="log", yscale="log")
        grid[1, column].set(xlabel="actuated joints", yscale="log")
        grid[0, column].legend(fontsize=7)
    grid[0, 0].set_ylabel("time of a tick [us]")
    grid[1, 0].set_ylabel("counted operations")
    figure.savefig(path)


def main() -> None:
    options = arguments(__doc__)
    n_rounds, seconds = (9, 0.02) if options.quick else (31, 0.1)
    sizes = (2, 5, 10, 20) if options.quick else SIZES
    print("shape           joints   C [us]  Gamma [us]  Pinocchio's C [us]  ratio   operations of C, Gamma")
    results = []
    for shape in SHAPES:
        for n in sizes:
            r = measure(shape, n, n_rounds, seconds)
            results.append(r)
            us = {key: value[1] for key, value in r["microseconds"].items()}
            shown = [f"{us[key]:.2f}" if key in us else "-" for key in ("C", "Gamma", "pinocchio")]
            ratio = f"{r['faster_than_pinocchio'][1]:.1f}" if "faster_than_pinocchio" in r else "-"
            counts = ", ".join(f"{count:,}" for count in r["operations"].values())
            line = f"{shape:<15}{n:>7}{shown[0]:>9}{shown[1]:>12}{shown[2]:>20}{ratio:>7}   {counts}"
            print(line, flush=True)
    keep(results, options, draw)


if __name__ == "__main__":
    main()
