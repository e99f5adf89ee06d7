"""Forward dynamics of a robot with closed loops: what these cost, and a tick against constrained dynamics of others."""

from __future__ import annotations

import numpy as np

import nori_dyn as nd
from benchmarks.harness import Result, compare
from benchmarks.mechanisms import biped
from benchmarks.peers.base import runs_of
from benchmarks.peers.registry import PEERS
from benchmarks.robots import Robot, random_states
from benchmarks.suites.base import Options, Suite
from benchmarks.suites.tick import own_runs, planned
from nori_dyn.model.closure import gap_rate
from nori_dyn.model.kinematics import positions
from nori_dyn.model.paths import path
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.rnea import bias_force
from nori_dyn.tables.progress import Progress

PROBLEM = "forward_dynamics"


def factorised_operations(tree: KinematicTree) -> int:
    """The operations of the textbook way: H, C, a sparse factorisation of [[H, J^T], [J, 0]], a solution.

    Joints are eliminated from the leaves to the root, then the rows of the loops, as Pinocchio's `constraintDynamics`
    does. H and C cost what our own compiled recursions do; J and the rows' velocity terms are not counted at all, nor
    are sines and cosines: so it is a lower bound.
    """
    bare = tree.replace(components=())
    total = nd.compile(nd.crba, bare).cost.total + nd.compile(bias_force, bare).cost.total
    J = gap_rate(positions(tree, tree.random_configuration(np.random.default_rng(0)))) != 0
    owner = np.repeat(np.arange(tree.n_links), [joint.nv for joint in tree.joints])
    later = []
    for k in range(tree.nv):
        above = set(path(tree.parents, int(owner[k])))
        later.append({m for m in range(k) if owner[m] in above} | {tree.nv + int(r) for r in np.flatnonzero(J[:, k])})
    later += [set(range(tree.nv + r)) - set(range(tree.nv)) for r in range(len(J))]
    for k in (*range(tree.nv - 1, -1, -1), *range(tree.nv + len(J) - 1, tree.nv - 1, -1)):
        n = len(later[k])
        total += n + n * (n + 1) + 4 * n + 1  # the column over its pivot, what it takes from others, both substitutions
        rows = {m for m in later[k] if m >= tree.nv}
        for m in later[k] if k < tree.nv else ():
            if m < tree.nv:
                later[m] |= rows
    return int(total)


def measure(options: Options, progress: Progress) -> list[Result]:
    whole = biped()
    states = random_states(whole, 1, options.seed)
    results: list[Result] = []
    for task, tree in (("constrained_dynamics", whole), (PROBLEM, whole.replace(components=()))):
        progress(f"loops, {tree.name}, {len(tree.components)} loops", len(results) / 2)
        robot = Robot(tree.name, "floating", tree)
        made = planned(robot, PROBLEM)
        peers, skipped = runs_of(PEERS.values(), task, robot, states)
        case = {**robot.case, "loops": len(tree.components)}
        counts = {"operations": made.cost.total, "factorised": factorised_operations(tree)}
        results.append(compare(case, counts, own_runs(made, PROBLEM, states), peers, skipped, options.budget))
    return results


SUITE = Suite(
    "loops",
    "Closed loops: a biped with four of them, and without",
    measure,
    notes=(
        "'factorised' counts, from below, H, C and a sparse factorisation with the rows of the loops. "
        "Each loop holds two points together: 12 rows, of which none repeats another. Pinocchio's constraintDynamics "
        "takes one step, which is exact then; its LCABA as many as it needs for an accuracy of 1e-10.",
    ),
)
