"""The figures of the README, from a run: `make figures` measures, and writes them between their marks.

nori-dyn bench --suite tick --suite estimation --suite recursions --suite counts --out docs/bench
python -m benchmarks.readme docs/bench/bench.json
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from nori_dyn.bench.records import Record
from nori_dyn.tables import number

README = Path(__file__).parents[1] / "README.md"

Suites = dict[str, list[Record]]

PEERS = {
    "Pinocchio": "Pinocchio",
    "MuJoCo": "MuJoCo",
    "iDynTree": "iDynTree",
    "CasADi, adam": "CasADi C (adam)",
    "Drake": "Drake",
    "KLU": "KLU",
    "UMFPACK": "UMFPACK",
    "SciPy": "SciPy splu",
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
}


def robot(record: Record) -> str:
    """Return what to call a record's robot."""
    name, base = str(record.case["robot"]), record.case["base"]
    return f"{ROBOTS.get(name, name)}, {base}"


def run_of(record: Record, start: str) -> str | None:
    """Return the name of the quickest run that starts so."""
    found = [name for name in record.seconds if name.startswith(start)]
    return min(found, key=lambda name: record.time(name)[1], default=None)


def times(ratio: float) -> str:
    """Return a ratio to two digits."""
    return f"{float(f'{ratio:.2g}'):,g}×"


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


BLOCKS: dict[str, Callable[[Suites], Iterable[Sequence[str]]]] = {
    "speed": speed,
    "recursions": algorithms,
    "estimation": estimation,
    "counts": counts,
}
"""Tables by the name of their marks: <!-- figures: speed --> and <!-- end -->."""


def markdown(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as a table, the first as its head."""
    head, *body = rows
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def written(text: str, suites: Suites) -> str:
    """Return the text of the README with its figures anew."""
    for name, table in BLOCKS.items():
        pattern = re.compile(rf"(<!-- figures: {name} -->\n).*?(<!-- end -->)", flags=re.DOTALL)
        content = markdown(table(suites))
        text, n = pattern.subn(lambda found, content=content: f"{found[1]}{content}\n{found[2]}", text)
        if n != 1:
            raise SystemExit(f"README.md has {n} places marked 'figures: {name}', not one.")
    return text


def main() -> None:
    """Write the figures of a run into the README."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("report", type=Path, help="bench.json of `nori-dyn bench --out FOLDER`")
    data = json.loads(parser.parse_args().report.read_text())
    suites = {name: [Record(**record) for record in records] for name, records in data["suites"].items()}
    README.write_text(written(README.read_text(), suites))


if __name__ == "__main__":
    main()
