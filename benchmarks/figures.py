"""The figures of the documents, from runs: `make figures` measures, and writes them between their marks.

python -m benchmarks tick cpp estimation recursions counts --out docs/bench
CC="gcc -mno-avx512f" python -m benchmarks tick cpp --out docs/bench/avx2
python -m benchmarks throughput --out docs/bench/throughput
python -m benchmarks.figures docs/bench/bench.json docs/bench/avx2/bench.json docs/bench/throughput/bench.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.documents import markdown, with_tables
from benchmarks.harness import Result
from nori_dyn.tables import Table, number

DOCS = Path(__file__).parents[1] / "docs"

README = "../README.md"

CPP = "Pinocchio C++"
"""How the runs of the suite `cpp` begin that are Pinocchio's."""

WHEEL = f"{CPP}, library of its wheel"
"""The run of the suite `cpp` of Pinocchio's library as it is shipped."""

Machine = Mapping[str, str | int]


@dataclass(frozen=True)
class Suites:
    """What was measured.

    Attributes:
        records: the records by suite, of the first run that has it.
        machines: where, by suite.
        narrow: the same of a second run, with narrower vectors; None where there is none.
    """

    records: dict[str, list[Result]]
    machines: dict[str, Machine]
    narrow: Suites | None = None

    def __getitem__(self, suite: str) -> list[Result]:
        return self.records.get(suite, [])

    def measured(self, suite: str) -> str:
        """On what a suite was measured, for people; empty where nobody noted it."""
        machine = self.machines.get(suite, {})
        vectors = f"vectors: {machine['vectors']}" if "vectors" in machine else "vectors not noted"
        parts = [machine.get("processor", ""), vectors, f"caches: {machine['caches']}" if "caches" in machine else ""]
        return "; ".join(str(part) for part in parts if part)


PEERS = {
    "Pinocchio": "Pinocchio",
    "MuJoCo": "MuJoCo",
    "iDynTree": "iDynTree",
    "CasADi, adam": "CasADi C (adam)",
    "Drake": "Drake",
    "KLU": "KLU",
    "UMFPACK": "UMFPACK",
}
"""Peers of the table of speed: the start of a run's name, and what to call it."""

SHORT = {"inverse_dynamics": "ID", "forward_dynamics": "FD", "figure 2": "load cells (fig. 2)"}
COUNTED = (
    ("branching 1", 30, "inverse_dynamics"),
    ("branching 1", 30, "forward_dynamics"),
    ("branching 2", 30, "forward_dynamics"),
    ("branching 1", 30, "figure 2"),
)
"""The synthetic trees of the table of counts: shape, links, problem."""

ROBOTS = {
    "ur5": "UR5",
    "panda": "Panda",
    "anymal": "ANYmal",
    "g1": "G1",
    "talos_reduced": "Talos (32 joints)",
    "talos_full": "Talos",
    "iCubGenova04": "iCub",
    "kinova": "Kinova",
    "go2_description": "Go2",
    "solo": "Solo12",
}


def robot(record: Result) -> str:
    """What to call a record's robot."""
    name, base = str(record.case["robot"]), record.case["base"]
    return f"{ROBOTS.get(name, name)}, {base}"


def run_of(record: Result, start: str) -> str | None:
    """The name of the quickest run that starts so."""
    found = [name for name in record.seconds if name.startswith(start)]
    return min(found, key=lambda name: record.time(name)[1], default=None)


def times(ratio: float) -> str:
    """A ratio to two digits."""
    return f"{float(f'{ratio:.2g}'):,g}×"


def overview(suites: Suites) -> Iterable[Sequence[str]]:
    """Yield a row a way to call and a width of vectors: how many times as long Pinocchio takes, from robot to robot."""
    yield "Pinocchio takes, from robot to robot", "inverse dynamics", "forward dynamics"
    for one in (suites, suites.narrow):
        for suite, start, title in (
            ("cpp", CPP, "C++, the quicker of wheel and headers, beside exported C"),
            ("tick", "Pinocchio", "from Python"),
        ):
            if one is not None and one[suite]:
                vectors = one.machines[suite].get("vectors", "vectors not noted")
                yield f"{title}; {vectors}", *(extent(one[suite], problem, start) for problem in list(SHORT)[:2])
    if records := [record for record in suites["throughput"] if record.figures]:
        shares = [[share(record) for record in records if record.case["problem"] == one] for one in ("ID", "FD")]
        yield (
            "our tick reaches, of its [bound](docs/performance.md)",
            *(f"{min(x)} to {max(x)} %" for x in shares),
        )


def share(record: Result) -> int:
    """How much of a tick its bound is, in per cent."""
    return round(100 * record.figures["bound"] / record.figures["cycles"])


def extent(records: Sequence[Result], problem: str, start: str) -> str:
    """The least and the largest ratio, of all robots, to the quickest run that starts so."""
    ratios = [
        record.ratio(name)[1]
        for record in records
        if record.own and record.case["problem"] == problem and (name := run_of(record, start)) is not None
    ]
    return f"{times(min(ratios))} to {times(max(ratios))}" if ratios else "–"


def cpp(suites: Suites) -> Iterable[Sequence[str]]:
    """Yield a row a robot and problem: exported C, Pinocchio's C++, and how many times as long the quicker of it takes.

    Medians; then with narrower vectors, and of its wheel and exported C for any processor.
    """
    narrower = {str(record.case): record for record in (suites.narrow or Suites({}, {}))["cpp"]}
    yield (
        "robot, base",
        "",
        "exported C [µs]",
        f"{CPP} [µs]",
        "times",
        "in AVX2",
        "for any processor, wheel",
    )
    for record in suites["cpp"]:
        if record.own:
            names = record.own, run_of(record, CPP) or ""
            shown = [number(1e6 * record.time(name)[1]) if name in record.seconds else "–" for name in names]
            narrow = narrower.get(str(record.case), record)
            ratios = (
                median(record, run_of(record, CPP), record.own),
                median(narrow, run_of(narrow, CPP) if narrow is not record else None, narrow.own),
                median(record, WHEEL, f"{record.own} for any processor"),
            )
            yield robot(record), SHORT[str(record.case["problem"])], *shown, *ratios


def throughput(suites: Suites) -> Iterable[Sequence[str]]:
    """Yield a row a robot: millions of states a second, and how many times as long others take, of ID and of FD."""
    records = [record for record in suites["throughput"] if record.own]
    problems = list(dict.fromkeys(str(record.case["problem"]) for record in records))
    others = {"Pinocchio C++": CPP, "CppADCodeGen": "CppADCodeGen", "our tick": "nori_dyn tick"}
    yield "robot, base", *problems, *(f"{title}: ID, FD" for title in others), "tick of its bound: ID, FD"
    for which in dict.fromkeys(map(robot, records)):
        own = {str(record.case["problem"]): record for record in records if robot(record) == which}
        speeds = [number(1e-6 / record.time(record.own)[1]) for record in own.values()]
        ratios = [
            ", ".join(median(own[problem], run_of(own[problem], start), own[problem].own) for problem in problems[:2])
            for start in others.values()
        ]
        bounds = ", ".join(f"{share(own[problem])} %" for problem in problems[:2])
        yield which, *speeds, *ratios, bounds


def median(record: Result, name: str | None, own: str) -> str:
    """Say how many times as long as one of ours a run takes; a dash where one was not timed."""
    if name is None or name not in record.seconds or own not in record.seconds:
        return "–"
    return times(record.ratio(name, own)[1])


def speed(suites: Suites) -> Iterable[Sequence[str]]:
    """Yield a row a robot and problem: our times, and how many times as long as our tick each peer takes."""
    records = [record for record in suites["tick"] if record.own]
    names = {start: title for start, title in PEERS.items() if any(run_of(record, start) for record in records)}
    yield "robot, base", "", "our tick [µs]", "our solve [µs]", *names.values()
    for record in records:
        ratios = []
        for start in names:
            name = run_of(record, start)
            ratios.append("–" if name is None else times(record.ratio(name)[1]))
        own = [number(1e6 * record.time(name)[1]) for name in (record.own, "nori_dyn solve")]
        yield robot(record), SHORT[str(record.case["problem"])], *own, *ratios


def algorithms(suites: Suites) -> Iterable[Sequence[str]]:
    """Yield a row an algorithm: how many times as long Pinocchio takes, by robot."""
    records = [record for record in suites["recursions"] if record.own]
    robots = list(dict.fromkeys(map(robot, records)))
    yield "compiled, against Pinocchio", *robots
    for task in dict.fromkeys(str(record.case["algorithm"]) for record in records):
        row = []
        for which in robots:
            own = next(r for r in records if (robot(r), r.case["algorithm"]) == (which, task))
            name = run_of(own, "Pinocchio")
            row.append("–" if name is None else times(own.ratio(name)[1]))
        yield task, *row


def estimation(suites: Suites) -> Iterable[Sequence[str]]:
    """Yield a row a way to estimate: the time of a state, and how many times faster than BERDY."""
    record = next(record for record in suites["estimation"] if record.own)
    yield "iCub, 39 links, all its sensors", "a state [µs]", "BERDY takes"
    for name in record.seconds:
        if name.startswith("nori_dyn") or name == "BERDY":
            low, middle, high = record.ratio("BERDY", name)
            ratio = "" if name == "BERDY" else f"{middle:.3g}× ({low:.3g} to {high:.3g})"
            yield name, number(1e6 * record.time(name)[1]), ratio


def counts(suites: Suites) -> Iterable[Sequence[str]]:
    """Yield a row a tree or robot: operations of a tick by each way."""
    yield "operations", "LU of D, correctly counted", "classical formula", "RNEA, ABA, compiled", "planned program"
    by_case = {(r.case.get("shape"), r.case.get("n"), r.case["problem"]): r for r in suites["counts"]}
    rows = [(f"{problem_of(key[2])}, {tree_of(*key[:2])}", by_case[key]) for key in COUNTED if key in by_case]
    rows += [
        (f"{problem_of(str(record.case['problem']))}, {robot(record)}", record)
        for record in suites["counts"]
        if record.case.get("robot") in ("talos_reduced", "iCubGenova04")
    ]
    for label, record in rows:
        kinds = ("LU (correct)",), ("RNEA formula", "ABA formula"), ("RNEA", "ABA"), ("program",)
        values = {**record.counts, **record.figures}
        cells = [next((f"{values[key]:,.0f}" for key in keys if key in values), "–") for keys in kinds]
        yield label, *cells


def problem_of(name: str) -> str:
    return SHORT.get(name, name)


def tree_of(shape: str, n: int) -> str:
    return f"chain of {n}" if shape == "branching 1" else f"binary tree of {n}"


@dataclass(frozen=True)
class MarkedTable:
    """A table of a document: its rows, and the suite whose machine is told below it; none where rows are counts."""

    rows: Callable[[Suites], Iterable[Sequence[str]]]
    suite: str = ""


TABLES: dict[str, dict[str, MarkedTable]] = {
    "performance.md": {
        "speed": MarkedTable(speed, "tick"),
        "cpp": MarkedTable(cpp, "cpp"),
        "estimation": MarkedTable(estimation, "estimation"),
        "counts": MarkedTable(counts),
    },
    "algorithms.md": {"recursions": MarkedTable(algorithms, "recursions")},
    README: {"overview": MarkedTable(overview)},
    "../benchmarks/results.md": {"throughput": MarkedTable(throughput, "throughput")},
}
"""Tables by document and the name of their marks: <!-- figures: speed --> and <!-- end -->."""

DRAWN = ("Pinocchio", "MuJoCo", "iDynTree", "Drake", "CasADi, adam")
"""Peers of the README's picture: those that a person would otherwise call."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999", "#882255", "#44aa99")
MARKERS = "osD^vP*Xph"


def draw_speed(suites: Suites, path: Path) -> None:
    """Draw the time of a call as bars, for four robots, and write the picture."""
    records = [r for r in suites["tick"] if r.own and r.case["robot"] in ("panda", "anymal", "g1", "iCubGenova04")]
    figure = Figure(figsize=(9.6, 3.9), dpi=150, layout="constrained")
    panels = zip(figure.subplots(1, 2), ("inverse_dynamics", "forward_dynamics"), strict=True)
    for axes, problem in panels:
        own = [r for r in records if r.case["problem"] == problem]
        for k, peer in enumerate(("nori_dyn", *DRAWN)):
            names = [r.own if k == 0 else run_of(r, peer) for r in own]
            bars = [(i, 1e6 * r.time(name)[1]) for i, (r, name) in enumerate(zip(own, names, strict=True)) if name]
            if not bars:
                continue
            places, heights = np.transpose(bars)
            label = PEERS.get(peer, peer)
            drawn = axes.bar(places + 0.15 * (k - 2.5), heights, width=0.14, color=COLOURS[k], label=label)
            axes.bar_label(drawn, fmt="%.2g", fontsize=6, padding=2)
        axes.set_xticks(range(len(own)), [robot(r).split(",")[0] for r in own])
        axes.set(title=problem.replace("_", " "), ylabel="microseconds a call, from Python")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
        axes.set_axisbelow(True)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path)


def draw_ratios(suites: Suites, path: Path) -> None:
    """Draw how many times as long as our tick each peer takes, with quartiles, and write the picture."""
    records = [record for record in suites["tick"] if record.own]
    names = dict.fromkeys(name for record in records for name in record.seconds if name != record.own)
    figure = Figure(figsize=(10.4, 6.4), dpi=130, layout="constrained")
    for axes, problem in zip(figure.subplots(1, 2, sharex=True), list(SHORT)[:2], strict=True):
        own = [record for record in records if record.case["problem"] == problem]
        for name, colour, marker in zip(names, cycle(COLOURS), cycle(MARKERS), strict=False):
            places = [i for i, record in enumerate(own) if name in record.seconds]
            if places:
                low, middle, high = np.transpose([own[i].ratio(name) for i in places])
                style = {"color": colour, "marker": marker, "linestyle": "none", "markersize": 5}
                axes.errorbar(middle, places, xerr=(middle - low, high - middle), label=name, **style)
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set(title=problem.replace("_", " "), xlabel=f"times the time of {records[0].own}", xscale="log")
        axes.set_yticks(range(len(own)), map(robot, own), fontsize=8)
        axes.invert_yaxis()
        axes.grid(axis="x", alpha=0.3)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    figure.savefig(path)


def tables_of(document: str, suites: Suites) -> dict[str, str]:
    """The tables of a document by name, with the machine below; without those of suites that were not measured."""
    found = {}
    for name, table in TABLES[document].items():
        if table.suite and not suites[table.suite]:
            continue
        head, *body = table.rows(suites)
        found[name] = markdown(Table("", tuple(head), tuple(map(tuple, body))))
        if table.suite:
            found[name] += f"\n\n{suites.measured(table.suite)}.\n"
    return found


def read(reports: Sequence[Path]) -> Suites:
    """What reports hold: of a suite that two have, the second is that of narrower vectors."""
    found, second = Suites({}, {}), Suites({}, {})
    for path in reports:
        data = json.loads(path.read_text())
        for name, records in data["suites"].items():
            one = second if name in found.records else found
            one.records[name] = [Result(**record) for record in records]
            one.machines[name] = data["machine"]
    return Suites(found.records, found.machines, second if second.records else None)


def main() -> None:
    """Write the figures of runs into the documents."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("reports", type=Path, nargs="+", help="bench.json of `python -m benchmarks --out`")
    suites = read(parser.parse_args().reports)
    for document in TABLES:
        path = DOCS / document
        path.write_text(with_tables(path.read_text(), "figures", tables_of(document, suites)))
    draw_speed(suites, DOCS / "bench" / "speed.png")
    draw_ratios(suites, DOCS / "bench" / "tick.png")


if __name__ == "__main__":
    main()
