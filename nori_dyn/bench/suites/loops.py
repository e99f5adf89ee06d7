"""Forward dynamics of a robot with closed loops: what these cost, and a tick against constrained dynamics of others."""

from __future__ import annotations

import nori_dyn.bench.peers.registry as registry
from nori_dyn.bench.mechanisms import biped
from nori_dyn.bench.peers.base import runs_of
from nori_dyn.bench.records import Record, compare
from nori_dyn.bench.robots import Robot, random_states
from nori_dyn.bench.suites.base import Options, Suite
from nori_dyn.bench.suites.tick import own_runs, planned
from nori_dyn.tables.progress import Progress

PROBLEM = "forward_dynamics"


def measure(options: Options, progress: Progress) -> list[Record]:
    """Return a record of a biped with four loops, and one of the same without them."""
    whole = biped()
    states = random_states(whole, 1, options.seed)
    records: list[Record] = []
    for task, tree in (("constrained_dynamics", whole), (PROBLEM, whole.replace(components=()))):
        progress(f"loops, {tree.name}, {len(tree.components)} loops", len(records) / 2)
        robot = Robot(tree.name, "floating", tree)
        made = planned(robot, PROBLEM)
        peers, skipped = runs_of(registry.PEERS.values(), task, robot, states)
        case = {**robot.case, "loops": len(tree.components)}
        counts = {"operations": made.cost.total}
        records.append(compare(case, counts, own_runs(made, PROBLEM, states), peers, skipped, options.budget))
    return records


SUITE = Suite(
    "loops",
    "Closed loops: a biped with four of them, and without",
    measure,
    notes=(
        "Each loop holds two points together: 12 rows, of which none repeats another. Pinocchio's constraintDynamics "
        "takes one step, which is exact then; its LCABA as many as it needs for an accuracy of 1e-10.",
    ),
)
