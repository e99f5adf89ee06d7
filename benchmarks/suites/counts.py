"""Counted operations: the paper's figures 1 and 2 and inverse dynamics, beside ours and the classical formulas.

The paper's rule counts UMFPACK's LU of D by its published scripts, which leave out most of the additions; the same LU
counted correctly is beside it. The program is all that a tick of ours computes, from q, qd and y to tau, qdd, or
(fig. 2) all variables; sines and cosines are not counted anywhere. RNEA and ABA are ours, compiled in the same way, and
the formulas of the books.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import nori_dyn as nd
from benchmarks.harness import Case, Result, figure_tables
from benchmarks.robots import Robots
from benchmarks.suites.base import Options, Suite
from nori_dyn.algebra.counting import Cost
from nori_dyn.errors import FileFormatError
from nori_dyn.io.files import read_text
from nori_dyn.planning.cost import RULES
from nori_dyn.planning.elimination import FIELD, Elimination
from nori_dyn.planning.orderings.problem import ordering_problem
from nori_dyn.planning.orderings.registry import ORDERINGS
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.system.trace import trace
from nori_dyn.tables import Table
from nori_dyn.tables.progress import Progress

SIZES = (2, 5, 10, 20, 30, 50, 70, 100)
QUICK = (2, 5, 10)
REAL: Robots = (
    ("ur5", "fixed"),
    ("panda", "fixed"),
    ("anymal", "floating"),
    ("g1", "floating"),
    ("talos_reduced", "fixed"),
    ("iCubGenova04", "floating"),
)
QUICK_REAL: Robots = (("panda", "fixed"), ("talos_reduced", "fixed"))

LONGEST = 30
"""Links of the longest chain of the paper's figures: it is always counted."""

DRAWS = 5
"""Number of states whose values UMFPACK is given: its order, and so the count, depends on them; the median is kept."""

LU_LIMIT, QUICK_LIMIT = 50, 10
"""Largest number of links, and when it is to be quick, of which the paper's own is shown: it takes long."""

SKEW = 1.5
GRAVITY = (0.0, -9.81, 0.0)


def formula_aba(n: int) -> int:
    """The operations of the articulated-body algorithm on n revolute joints: Brandl et al., in the paper."""
    return 429 * n - 507


def formula_rnea(n: int) -> int:
    """Those of the recursive Newton-Euler algorithm, 93 n - 69 and 81 n - 66: Balafoutis and Patel."""
    return 174 * n - 135


def figure_2(tree: nd.KinematicTree) -> nd.SensorSet:
    """The exact sensors of fig. 2 of the paper: a chain on load cells at its first link and its last."""
    n, five = tree.n_links, ["mx", "my", "fx", "fy", "fz"]
    joints, last = tree.joint_names, tree.names[-1]
    known = list(joints[2 : n - 2])
    entries: list[dict[str, Any]] = [
        {"type": "force_torque", "joints": joints[0], "components": five},
        {"type": "external_wrench", "links": last, "components": five},
        {"type": "external_wrench", "links": {"except": last}},
    ]
    if known:
        entries.insert(0, {"type": "joint_acceleration", "joints": known})
    return nd.SensorSet.from_dict({"name": "figure 2", "measurements": entries})


@dataclass(frozen=True, slots=True)
class CountedProblem:
    """What is counted.

    Attributes:
        sensors: the sensors of a robot.
        paper: those that the paper has, which knows external wrenches as readings.
        outputs: what is asked for; None for all.
        rule: the rule of the published scripts.
        csv: name of the file of the counts made with the paper's scripts.
        recursion: the classical algorithm, and the formula of its operations.
    """

    sensors: Callable[[nd.KinematicTree], nd.SensorSet]
    paper: Callable[[nd.KinematicTree], nd.SensorSet]
    outputs: tuple[str, ...] | None
    rule: str
    csv: str
    recursion: tuple[str, Callable[..., Any], Callable[[int], int]] | None = None


def _measured(kind: str) -> Callable[[nd.KinematicTree], nd.SensorSet]:
    entries: list[dict[str, Any]] = [{"type": kind, "joints": "all"}, {"type": "external_wrench", "links": "all"}]
    return lambda tree: nd.SensorSet.from_dict({"name": kind, "measurements": entries})


PROBLEMS: dict[str, CountedProblem] = {
    "inverse_dynamics": CountedProblem(
        lambda tree: nd.sensors("inverse_dynamics"),
        _measured("joint_acceleration"),
        ("tau",),
        "published_fig2",
        "id",
        ("RNEA", nd.rnea, formula_rnea),
    ),
    "forward_dynamics": CountedProblem(
        lambda tree: nd.sensors("forward_dynamics"),
        _measured("joint_torque"),
        ("qdd",),
        "published_fig1",
        "fig1_fd",
        ("ABA", nd.aba, formula_aba),
    ),
    "figure 2": CountedProblem(figure_2, figure_2, None, "published_fig2", "fig2_loadcell"),
}

CORRECT = "textbook_without_units"
PUBLISHED = {
    "paper (its rule)": "paper20_permLU_shipped_port",
    "paper (correct)": "paper20_permLU_correct_free1",
}
"""Methods of the counts made with the paper's scripts, and what to call them."""


def measure(options: Options, progress: Progress) -> list[Result]:
    trees: list[tuple[Case, nd.KinematicTree]] = []
    sizes = QUICK if options.quick else SIZES
    for branching in (1.0, 1.5, 2.0):
        for n in sizes if not options.robots else ():
            tree = nd.autotree(n, branching, SKEW, 0.9)
            trees.append(({"shape": f"branching {branching:g}", "n": n}, tree))
    if not options.robots:
        trees.append(({"shape": "branching 1", "n": LONGEST}, nd.autotree(LONGEST, 1.0, SKEW, 0.9)))
    robots, results = options.load(QUICK_REAL, REAL)
    trees += [(robot.case, robot.tree) for robot in robots]
    done, limit = set(), QUICK_LIMIT if options.quick else LU_LIMIT
    for k, (case, tree) in enumerate(trees):
        for name, problem in PROBLEMS.items():
            if name == "figure 2" and not (case.get("shape") == "branching 1" and 5 <= tree.n_links <= limit):
                continue
            key = (*case.values(), name)
            if key not in done:
                done.add(key)
                progress(f"counts, {', '.join(map(str, key))}", k / len(trees))
                results.append(_counted(case, tree, name, problem, options))
    return results


def _counted(case: Case, tree: nd.KinematicTree, name: str, problem: CountedProblem, options: Options) -> Result:
    system = nd.System(_as_drawn(tree, name), problem.sensors(tree))
    made = nd.plan(system, outputs=problem.outputs, seed=options.seed, cache=False)  # a cached one may be of other code
    counts = {"program": made.cost.total}
    if problem.recursion is not None:
        title, algorithm, formula = problem.recursion
        counts[title] = nd.compile(algorithm, tree, backend="numpy").cost.total
        counts[f"{title} formula"] = formula(tree.nv)
    figures: dict[str, float] = {}
    skipped = {}
    if tree.n_links <= (QUICK_LIMIT if options.quick else LU_LIMIT) and "shape" in case:
        if has_umfpack():
            figures = _lu(nd.System(_as_drawn(tree, name), problem.paper(tree)), problem, options.seed)
        else:
            skipped["UMFPACK's LU"] = "scikit-umfpack is not installed"
    if case.get("shape") == "branching 1" and options.paper_counts is not None:
        figures |= _published(options.paper_counts / f"{problem.csv}.csv", int(case["n"]))
    return Result({**case, "problem": name}, counts, figures=figures, skipped=skipped)


def _as_drawn(tree: nd.KinematicTree, name: str) -> nd.KinematicTree:
    """The chain of fig. 2 as the paper has it, whose links are of one size; others as they are."""
    if name == "figure 2":
        return nd.autotree(tree.n_links, 1.0, SKEW, 1.0).replace(gravity=GRAVITY)
    return tree


def _lu(system: nd.System, problem: CountedProblem, seed: int) -> dict[str, float]:
    """The median over draws of what UMFPACK's LU of D costs, by the published rule and counted correctly."""
    symbolic = trace(system)
    drawn = ordering_problem(system, symbolic, seed=seed, n_samples=DRAWS)
    costs: dict[str, list[Cost]] = {problem.rule: [], CORRECT: []}
    for k in range(DRAWS):
        order = ORDERINGS["umfpack"](replace(drawn, samples=drawn.samples[[k]]))
        done = Elimination(symbolic, FIELD).run(order.rows, order.columns)
        for rule in costs:
            costs[rule].append(RULES[rule](done))
    names = {problem.rule: "LU (paper's rule)", CORRECT: "LU (correct)"}
    return {names[rule]: float(np.median([cost.total for cost in found])) for rule, found in costs.items()}


def _published(path: Path, n: int) -> dict[str, float]:
    """The counts made with the paper's scripts for a chain of n links, where there are any.

    Raises:
        FileFormatError: there is no such file, or it has other columns.
    """
    rows = list(csv.DictReader(io.StringIO(read_text(path))))
    found = {}
    for name, method in PUBLISHED.items():
        for row in rows:
            try:
                if (int(row["nb"]), row["method"]) == (n, method):
                    found[name] = float(int(row["additions"]) + int(row["multiplications"]))
            except (KeyError, TypeError, ValueError):
                raise FileFormatError(
                    f"{path}: is not a table of counts: its columns are to be nb, method, additions, multiplications."
                ) from None
    return found


def tables(title: str, results: Sequence[Result]) -> list[Table]:
    """Make a table a problem: what our program costs, and what each other way does."""
    found = []
    for problem in PROBLEMS:
        own = [
            Result({key: x for key, x in one.case.items() if key != "problem"}, {**one.counts, **_whole(one.figures)})
            for one in results
            if one.case.get("problem") == problem
        ]
        found += figure_tables(f"{title}: {problem.replace('_', ' ')}", own)
    return found


def _whole(figures: Mapping[str, float]) -> dict[str, int]:
    return {name: round(x) for name, x in figures.items()}


SUITE = Suite(
    "counts",
    "Counted operations of a tick",
    measure,
    tables=tables,
    notes=(
        "program: all that a tick computes, from q, qd and y on; sines and cosines are counted nowhere. RNEA and ABA: "
        "ours, compiled in the same way. LU: UMFPACK's order of D, its entries given, median of some draws.",
    ),
)
