"""Which tests reach a line: coverage with a context a test, measured once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import coverage

DURATIONS = "NORI_DYN_DURATIONS"


def measured(folder: Path) -> Reach:
    """Which tests of the short suite reach what, and how long each takes; kept in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    data, durations = folder / "coverage", folder / "durations.jsonl"
    if not data.exists():
        durations.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal", "-q"]
        command += ["-p", "tests.mutants.reach", "--cov=nori_dyn", "--cov-context=test", "--cov-report="]
        named = {"COVERAGE_FILE": str(folder / "unfinished"), DURATIONS: str(durations)}
        ended = subprocess.run(command, check=False, env=os.environ | named)
        if ended.returncode not in (
            0,
            1,
        ):  # some count what is allocated, or how long it takes: not while this is measured
            raise SystemExit(ended.returncode)
        (folder / "unfinished").rename(data)
    return Reach(data, durations)


def pytest_runtest_logreport(report):
    """Note how long a part of a test took: this module is a plug-in of pytest while it is measured."""
    if "PYTEST_XDIST_WORKER" not in os.environ and DURATIONS in os.environ:
        with Path(os.environ[DURATIONS]).open("a") as file:
            file.write(json.dumps([report.nodeid, report.duration]) + "\n")


class Reach:
    """What was measured.

    Attributes:
        seconds: how long each test takes.
    """

    def __init__(self, data: Path, durations: Path) -> None:
        self._data = coverage.CoverageData(str(data))
        self._data.read()
        self._files = {"nori_dyn" + file.rpartition("/nori_dyn")[2]: file for file in self._data.measured_files()}
        self.seconds: dict[str, float] = defaultdict(float)
        for line in durations.read_text().splitlines():
            test, seconds = json.loads(line)
            self.seconds[test] += seconds

    def of_lines(self, path: Path, lines: Iterable[int]) -> list[str]:
        """The tests of modules of which one runs one of some lines: what one makes the others may look at."""
        if str(path) not in self._files:
            return []
        contexts = self._data.contexts_by_lineno(self._files[str(path)])
        return self._tests(context for line in lines for context in contexts.get(line, ()))

    def of_module(self, path: Path) -> list[str]:
        """The tests of modules of which one runs anything of a module."""
        if str(path) not in self._files:
            return []
        contexts = self._data.contexts_by_lineno(self._files[str(path)])
        return self._tests(context for found in contexts.values() for context in found)

    def _tests(self, contexts: Iterable[str]) -> list[str]:
        modules = {context.partition("::")[0] for context in contexts}
        return sorted(test for test in self.seconds if test.partition("::")[0] in modules)
