"""Put faults into the code, one at a time, and write who finds them: `make mutants`.

Each is looked for by the tests of `make test` that reach its lines, those of its room and then the quickest modules
first, until one fails, for some minutes at most. What they let pass is looked for by the tests of `pytest --all` of its
room, without the timed attack. What only these find is a gap of the short tests.
"""

import argparse
import importlib
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from bisect import bisect
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import accumulate
from pathlib import Path

from tests.mutants.drawn import Mutant, drawn
from tests.mutants.reach import Reach, measured

REPORT = Path("tests/mutants/README.md")
MARKS = "<!-- mutants: from here on made by `make mutants` -->", "<!-- mutants: up to here -->"
WHO = SHORT, LONG, NOBODY = "make test", "make test-all alone", "nobody"
MOST = 120.0
"""Time [s] that the short tests which look for a fault take without it, at most; those that come after are left out."""

LONGEST = 600.0
"""Time [s] that all tests of a room take at most."""

PATIENCE = 3
"""Times the processor time that tests take without a fault, plus a minute: then it is a loop without an end."""

BROKEN = 70
"""What a process returns in which pytest itself did not run."""

NO_TESTS = 5
"""What pytest returns where none is selected."""

IMPORTED = ("pydantic", "pytest", "rich.console", "scipy.linalg", "scipy.sparse.linalg", "typer")
"""What takes long to import, and no fault changes."""

OUTSIDE = {
    "measurements": ["tests/contracts/test_measurements.py", "tests/contracts/test_equations.py"],
    "components": ["tests/contracts/test_components.py", "tests/contracts/test_equations.py"],
    "cli": ["tests/cli"],
    "tables": ["tests/unit/test_tables.py"],
    "logs": ["tests/contracts/test_log_formats.py"],
    "live": ["tests/contracts/test_transports.py", "tests/cli/test_serve.py"],
    "C": ["tests/unit/program", "tests/unit/filtering", "tests/contracts/test_export"],
    "(root)": ["tests/unit/test_imports.py", "tests/cli"],
}
"""Where the tests of a room are that has none in `unit`, or has others too."""


def main() -> None:
    """Draw, try, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=160, help="how many faults")
    parser.add_argument("--seed", type=int, default=0, help="from which they are drawn")
    parser.add_argument("--folder", type=Path, default=Path(".mutants"), help="what is measured and found, kept")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at a time")
    options = parser.parse_args()
    reach = measured(options.folder)
    found = options.folder / f"found-{options.seed}.json"
    known = json.loads(found.read_text()) if found.exists() else {}
    mutants = {str(mutant): mutant for mutant in drawn(options.n, options.seed)}
    left = [(name, mutant) for name, mutant in mutants.items() if name not in known]
    random.Random(options.seed).shuffle(left)  # a run that is ended has tried some of each room
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(options.jobs, context, copied_tree) as pool:
        for done in as_completed([pool.submit(tried, name, mutant, ordered(mutant, reach)) for name, mutant in left]):
            name, who = done.result()
            known[name] = who
            found.write_text(json.dumps(known, indent=1))
            print(f"{len(known)}/{len(mutants)} {who[0]}: {name} {who[1]}", flush=True)
    write_table({name: (mutant.room, known[name][0]) for name, mutant in mutants.items()}, options.seed)


def copied_tree() -> None:
    """Give a process a copy of the repository of its own, and import what no fault changes."""
    folder = Path(tempfile.mkdtemp(prefix="mutants-")) / "tree"
    shutil.copytree(".", folder, ignore=shutil.ignore_patterns(".git", ".venv", ".mutants", "__pycache__", "site"))
    if (data := Path("../shared").resolve()).is_dir():
        (folder.parent / "shared").symlink_to(data)
    sys.path[:] = [str(folder), *(path for path in sys.path if path not in ("", os.getcwd()))]
    os.chdir(folder)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]  # those of the copy are to be found
    os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(
        [sys.executable, "-m", "pytest", "--all", "--collect-only", "-q"], stdout=subprocess.DEVNULL, check=True
    )
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    for module in IMPORTED:
        importlib.import_module(module)


def ordered(mutant: Mutant, reach: Reach) -> dict[str, float]:
    """The short tests that look for a fault, in order, with the time that each takes without it [s]."""
    room = tuple(tests_of(mutant.room))
    tests = reach.of_lines(mutant.path, range(mutant.site.line, mutant.site.last + 1)) or reach.of_module(mutant.path)
    tests = tests or [test for test in reach.seconds if test.startswith(room)]
    tests = by_cost(tests, reach, room)
    until = list(accumulate(reach.seconds[test] for test in tests))
    return {test: reach.seconds[test] for test in tests[: bisect(until, MOST)]}


def tried(name: str, mutant: Mutant, tests: dict[str, float]) -> tuple[str, tuple[str, str]]:
    """Who finds a fault, and by which test."""
    source = mutant.path.read_text()
    mutant.path.write_text(mutant.site.applied(source))
    try:
        if failed := first_failure(list(tests), sum(tests.values())):
            return name, (SHORT, failed)
        if failed := first_failure(modules_of(*tests_of(mutant.room)), LONGEST, "--all"):
            return name, (LONG, failed)
        return name, (NOBODY, f"after {len(tests)} tests that reach it" if tests else "no test reaches it")
    finally:
        mutant.path.write_text(source)


def tests_of(room: str) -> list[str]:
    """How the paths of the tests of a room begin."""
    return [f"tests/unit/{room}/", *OUTSIDE.get(room, ())]


def modules_of(*beginnings: str) -> list[str]:
    """The modules of tests whose paths begin so."""
    return [str(path) for path in Path("tests").rglob("test_*.py") if str(path).startswith(beginnings)]


def by_cost(tests: list[str], reach: Reach, of_room: tuple[str, ...]) -> list[str]:
    """Tests, those of a room first, and of the module with the quickest of them."""
    modules = defaultdict(list)
    for test in tests:
        modules[test.partition("::")[0]].append(test)
    ordered = sorted(
        modules.values(),
        key=lambda own: (not own[0].startswith(of_room), min(reach.seconds[test] for test in own), own),
    )
    return [test for own in ordered for test in sorted(own, key=lambda test: reach.seconds[test])]


def first_failure(tests: list[str], seconds: float, *options: str) -> str:
    """The first of some tests that fails, in a process of its own; "" where none does.

    Args:
        tests: the tests, or with options their modules.
        seconds: how long they take without a fault [s].
        options: of pytest.
    """
    if not tests:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        failed = Path(folder) / "failed"
        child = os.fork()
        if not child:
            limit, code = int(PATIENCE * seconds) + 60, BROKEN
            try:
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
                signal.alarm(3 * limit)  # of one that waits without an end
                for stream in (1, 2):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
                code = _run(tests, options, failed)
            except BaseException:
                failed.write_text(traceback.format_exc())
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == BROKEN:
            raise RuntimeError(failed.read_text())
        if failed.exists():
            return failed.read_text()
        return "" if code in (0, NO_TESTS) else f"the tests end with {code}"


def _run(tests: list[str], options: tuple[str, ...], failed: Path) -> int:
    import pytest

    class Chosen:
        @staticmethod
        def pytest_collection_modifyitems(items):
            if not options:
                place = {test: at for at, test in enumerate(tests)}
                items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])

        @staticmethod
        def pytest_runtest_logreport(report):
            if report.failed:
                failed.write_text(report.nodeid)

        @staticmethod
        def pytest_collectreport(report):
            if report.failed:
                failed.write_text(f"collecting {report.nodeid}")

    modules = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    return int(
        pytest.main(["-x", "-q", f"--basetemp={failed.parent}/it", "--rootdir=.", *options, *modules], [Chosen()])
    )


def write_table(found: dict[str, tuple[str, str]], seed: int) -> None:
    """Write into the documents who finds the faults of each room."""
    counts = defaultdict(Counter)
    for room, who in found.values():
        counts[room][who] += 1
        counts["all"][who] += 1
    rows = [f"| room | faults (seed {seed}) | found by {' | '.join(WHO)} |", "|---|---:|---:|---:|---:|"]
    for room, count in sorted(counts.items(), key=lambda entry: (entry[0] == "all", entry[0])):
        rows += [f"| {room} | {count.total()} | {' | '.join(str(count[who]) for who in WHO)} |"]
    before, _, rest = REPORT.read_text().partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    REPORT.write_text("\n".join([before + MARKS[0], "", *rows, "", MARKS[1] + after]))


if __name__ == "__main__":
    main()
