"""How the Coriolis matrix and the Christoffel symbols grow with a robot.

Source: Echeandia and Wensing, figs. 2-4, redone: serial chains, binary trees, and bipeds and quadrupeds on six joints
of one freedom, each of revolute joints a skewed angle apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import nori_dyn as nd
from benchmarks.harness import Result, Run, compare
from benchmarks.peers.base import runs_of
from benchmarks.peers.registry import PEERS
from benchmarks.robots import Robot, random_states
from benchmarks.suites.base import Options, Suite
from nori_dyn.model.joints import Joint, Prismatic, Revolute
from nori_dyn.model.synthetic import autotree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.tables.progress import Progress

SKEW = 1.5
SIZES = (2, 5, 10, 20, 30, 50, 70, 100)
QUICK = (2, 5, 10)
NATIVE_LIMIT = 400_000
"""Operations up to which a program is compiled and timed; a larger one is counted."""
COUNTED_LIMIT = 1_000_000
"""Operations up to which a program is made: straight-line code is for what fits a cache."""

AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def legged(n_legs: int, n: int) -> KinematicTree:
    """A body on six joints of one freedom, with legs of n revolute joints in all."""
    leg, body = autotree(max(math.ceil(n / n_legs), 2), skew=SKEW), autotree(1)
    joints: list[Joint] = [*(Prismatic(axis) for axis in AXES), *(Revolute(axis) for axis in AXES)]
    parents, X, I = list(range(-1, 5)), [body.X_tree[0]] * 6, [np.zeros((6, 6))] * 5 + [body.I[0]]
    for k in range(n):
        number, place = k % n_legs, k // n_legs
        parents.append(5 if place == 0 else 6 + k - n_legs)
        joints.append(Revolute())
        hip = autotree(2, skew=SKEW + 0.1 * number).X_tree[1]
        X.append(hip if place == 0 else leg.X_tree[1])
        I.append(leg.I[place])
    names = tuple(f"link{k}" for k in range(n + 6))
    return KinematicTree(f"{n_legs} legs, {n}", names, names, tuple(parents), tuple(joints), tuple(X), np.array(I))


SHAPES: dict[str, Callable[[int], KinematicTree]] = {
    "serial chain": lambda n: autotree(n, skew=SKEW),
    "binary tree": lambda n: autotree(n, branching=2.0, skew=SKEW),
    "biped": lambda n: legged(2, n),
    "quadruped": lambda n: legged(4, n),
}


def estimate(tree: KinematicTree, power: int) -> float:
    """About how many operations a program has that visits the paths of all joints to some power."""
    depths = [depth + 1 for depth in tree.depths()]
    return sum(40 * d if power == 1 else 11 * d * (d + 1) for d in depths)


def measure(options: Options, progress: Progress) -> list[Result]:
    sizes = QUICK if options.quick else SIZES
    results = []
    for k, shape in enumerate(SHAPES):
        for n in sizes:
            progress(f"coriolis, {shape}, {n}", k / len(SHAPES))
            results.append(_measured(shape, n, options))
    return results


def _measured(shape: str, n: int, options: Options) -> Result:
    tree = SHAPES[shape](n)
    states = random_states(tree, 1, options.seed)
    q, qd = states.q[0], states.qd[0]
    wanted: dict[str, tuple[int, Callable[[str], Any], Callable[[Any], Any]]] = {
        "C": (1, lambda backend: nd.compile(nd.coriolis, tree, outputs=("C",), backend=backend), lambda C: C @ qd),
        "Christoffel symbols": (
            2,
            lambda backend: nd.compile(nd.christoffel, tree, backend=backend),
            lambda Gamma: (Gamma @ qd) @ qd,
        ),
    }
    counts, own = {}, {}
    for name, (power, make, product) in wanted.items():
        size = estimate(tree, power)
        if size > COUNTED_LIMIT:
            continue
        program = make("auto" if size <= NATIVE_LIMIT else "numpy")
        counts[f"operations of {name}"] = program.cost.total
        if size <= NATIVE_LIMIT:
            own[f"nori_dyn {name}"] = Run(program.tick, _answer(program, product, (q, qd)))
    peers, skipped = runs_of(PEERS.values(), "coriolis", Robot(shape, "fixed", tree), states)
    return compare({"shape": shape, "n": n}, counts, own, peers, skipped, options.budget)


def _answer(program: Any, product: Callable[[Any], Any], state: tuple[Any, ...]) -> Callable[[], Any]:
    """What computes C qd, by which any C can be compared."""
    for array, values in zip(vars(program.inputs).values(), state, strict=False):
        array[:] = values

    def answer() -> Any:
        program.tick()
        return product(np.array(program.outputs))

    return answer


SUITE = Suite(
    "coriolis",
    "The Coriolis matrix and the Christoffel symbols",
    measure,
    notes=("Differences are those of C qd: C itself is not unique.",),
)
