"""Figures as JSON: of robots, plans and reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from nori_dyn.algebra.counting import Cost
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.observe.learned import Learned
from nori_dyn.observe.null_space import Unseen
from nori_dyn.observe.redundancy import Redundancy
from nori_dyn.observe.report import ObservabilityReport
from nori_dyn.placement.design import Design
from nori_dyn.placement.selection import Placement
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.report.failures import failures
from nori_dyn.report.findings import findings
from nori_dyn.report.learned import OverTime
from nori_dyn.report.workspace import NEARLY_SINGULAR, describe_worst
from nori_dyn.tables import spaced


def cost_json(cost: Cost) -> dict[str, int]:
    """Return a cost as JSON."""
    return {
        "additions": cost.additions,
        "multiplications": cost.multiplications,
        "divisions": cost.divisions,
        "total": cost.total,
    }


def plan_json(plan: EliminationPlan) -> dict[str, Any]:
    """Return the sizes of a plan, its orderings and their costs as JSON, the chosen one first."""
    system = plan.system
    return {
        **tree_json(system.tree),
        "sensors": system.sensors.name,
        "rows": system.shape[0],
        "variables": system.shape[1],
        "nonzeros": int(plan.pattern.nnz),
        "outputs": [output.name for output in plan.outputs],
        "over_time": plan.is_over_time,
        "ordering": plan.ordering,
        "cost": cost_json(plan.cost),
        "stability": asdict(plan.stability),
        "orderings": [
            {
                "ordering": c.ordering,
                "fill_in": c.fill_in,
                "nonzeros": c.nonzeros,
                "lu": cost_json(c.cost),
                "program": cost_json(c.program),
                "program_ordering": c.program_ordering or c.ordering,
                "stability": asdict(c.stability),
                "published_rule": cost_json(c.published),
            }
            for c in plan.tried
        ],
    }


def tree_json(tree: KinematicTree) -> dict[str, Any]:
    """Return the sizes of a robot, and its components, as JSON."""
    components = [component.to_dict() for component in tree.components]
    return {"robot": tree.name, "n_links": tree.n_links, "nq": tree.nq, "nv": tree.nv, "components": components}


def report_json(
    report: ObservabilityReport, at_given: Conditioning | None, found: Conditioning | None = None
) -> dict[str, Any]:
    """Return a report, with its verdict in words, and what was found at given poses and over the workspace."""
    said = findings(report, found)
    return {
        "verdict": asdict(said.verdict),
        "additions": [
            {
                "words": line.words,
                "at_poses": addition.at_poses,
                "is_smallest": addition.is_smallest,
                "sensors": [dict(sensor.entry) for sensor in addition.sensors],
                "others": [dict(sensor.entry) for sensor in addition.others],
            }
            for line, addition in zip(said.advice, report.additions, strict=False)
        ],
        "reason": said.reason,
        "sensors": report.sensors,
        "rows": report.n_rows,
        "variables": report.n_variables,
        "is_observable": report.is_observable,
        "generic_rank": report.generic_rank,
        "structural_rank": report.structural_rank,
        "numerical_rank": report.numerical_rank,
        "deficiency": report.deficiency,
        "error": report.error,
        "gap": report.gap if np.isfinite(report.gap) else None,
        "unobservable": list(report.unobservable),
        "unseen": _unseen(report.unseen),
        "conditions": [
            {
                "condition": c.condition,
                "frames": list(c.frames),
                "ranks": c.ranks.tolist(),
                "margins": c.smallest.tolist(),
                "lost": c.lost,
                "outcome": line.outcome,
                "unseen": _unseen(c.unseen),
                "configurations": c.configurations.tolist(),
            }
            for c, line in zip(report.conditions, said.poses, strict=True)
        ],
        "over_time": None if report.over_time is None else _over_time(report.over_time, said.over_time),
        "repeated": list(report.repeated),
        "skipped": list(report.skipped),
        "rank_at": [] if at_given is None else at_given.ranks.tolist(),
        "margin_at": [] if at_given is None else at_given.smallest.tolist(),
    }


def _over_time(found: Learned, said: OverTime | None) -> dict[str, Any]:
    """Return what is learned over time; factors of a sum that depend on the poses are null."""
    return {
        "words": "" if said is None else said.words,
        "lines": [] if said is None else [spaced(line.words) for line in said.lines],
        "ranks": list(found.ranks),
        "states": found.states,
        "seen_after": dict(zip(found.names, (after or None for after in found.seen_after), strict=True)),
        "sums": [{name: factor or None for name, factor in each.terms.items()} for each in found.sums],
        "untold": list(found.untold),
        "needs": asdict(found.needs),
        "undetermined": list(found.undetermined),
        "undetermined_at_first": list(found.undetermined_at_first),
        "error": found.error,
        "gap": found.gap if np.isfinite(found.gap) else None,
    }


def _unseen(parts: Sequence[Unseen]) -> list[dict[str, Any]]:
    return [
        {
            "words": part.words,
            "dimension": part.dimension,
            "links": list(part.links),
            "joints": list(part.joints),
            "added": list(part.added),
            "vectors": [dict(vector.coefficients) for vector in part.vectors],
        }
        for part in parts
    ]


def workspace_json(found: Conditioning) -> dict[str, Any]:
    """Return what was found over the workspace; null is a deviation that is not finite."""
    medians, worsts = found.median_sigma, found.worst_sigma
    deviations = None
    if found.sigma is not None and medians is not None and worsts is not None:
        worst_poses = found.sigma.argmax(axis=0).tolist()
        columns = zip(found.outputs, found.units, _finite(medians), _finite(worsts), worst_poses, strict=True)
        names = ("output", "unit", "median", "worst", "worst_pose")
        deviations = [dict(zip(names, row, strict=True)) for row in columns]
    return {
        "poses": len(found.ranks),
        "lacking_rank": len(found.lacking),
        "nearly_singular": int(np.sum(found.smallest < NEARLY_SINGULAR)) - len(found.lacking),
        "median_margin": float(np.median(found.smallest)),
        "worst_margin": float(found.smallest.min()),
        "worst": found.worst.tolist(),
        "known_least": spaced(describe_worst(found)),
        "deviations": deviations,
        "ranks": found.ranks.tolist(),
        "margins": found.smallest.tolist(),
        "sigma": None if found.sigma is None else [_finite(row) for row in found.sigma],
        "configurations": found.configurations.tolist(),
    }


def _finite(values: Iterable[float]) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]


def placement_json(found: Placement | Design) -> dict[str, Any]:
    """Return what sensors were chosen, what they cost, and how exact the outputs are with them."""
    common = {
        "chosen": list(found.chosen),
        "costs": dict(found.costs),
        "cost": found.cost,
        "outputs": list(found.outputs),
        "method": found.method,
        "bound": found.bound,
        "candidates": dict(found.bought.offered),
        "expected": workspace_json(found.bought.expected),
        "sensors": found.sensors.to_dict(),
    }
    if isinstance(found, Placement):
        others = {name: list(others) for name, others in found.exchanges.items()}
        return {**common, "is_optimal": found.is_optimal, "exchanges": others}
    sigma = dict(zip(found.outputs, found.sigma.tolist(), strict=True))
    return {**common, "criterion": found.criterion, "value": found.value, "gap": found.gap, "sigma": sigma}


def redundancy_json(found: Redundancy, wanted: Sequence[str] | None = None) -> dict[str, Any]:
    """Return what sensors may fail, of outputs as they were asked for."""
    return {
        "words": spaced(failures(found, wanted).words),
        "outputs": list(found.outputs),
        "sensors": list(found.sensors),
        "critical": {name: list(found.lost[name]) for name in found.critical},
        "failing_sets": [list(failing) for failing in found.failing_sets],
        "size": found.size,
    }
