"""The examples in docstrings run as they stand, and every public name has one."""

import doctest
import importlib
import warnings
from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.program.compiler import find_compiler

PACKAGE = Path(nd.__file__).parent
PROMPT = ">>> "

FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if PROMPT in path.read_text(encoding="utf-8")]
"""Those that have examples."""


def examples(path: Path) -> list[doctest.DocTest]:
    """The examples of a file, one a docstring; they know `nd` and `np`, and nothing else of their module."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    return [found for found in doctest.DocTestFinder().find(module, globs={"nd": nd, "np": np}) if found.examples]


class Runner(doctest.DocTestRunner):
    """Lets through what skips a test: an extra that is not installed."""

    def report_unexpected_exception(self, out, test, example, exc_info):
        if isinstance(exc_info[1], pytest.skip.Exception):
            raise exc_info[1]
        super().report_unexpected_exception(out, test, example, exc_info)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_all_of_a_file_run(path, tmp_path, monkeypatch):
    """Each in an empty folder; where an extra lacks, all others run before the test is skipped."""
    found = examples(path)
    assert sum(len(one.examples) for one in found) == path.read_text(encoding="utf-8").count(PROMPT), "overlooked"
    if find_compiler() is None:
        warnings.simplefilter("ignore", nd.errors.NoriWarning)
    report: list[str] = []
    skipped: list[str] = []
    for k, example in enumerate(found):
        (tmp_path / str(k)).mkdir()
        monkeypatch.chdir(tmp_path / str(k))
        try:
            Runner().run(example, out=report.append)
        except pytest.skip.Exception as why:
            skipped.append(f"{example.name}: {why}")
    if report:
        pytest.fail("".join(report), pytrace=False)
    if skipped:
        pytest.skip("; ".join(skipped))


def test_every_public_name_has_one():
    named = [(module, name) for module in (nd, nd.results, nd.tools) for name in module.__all__]
    assert not [f"{module.__name__}.{name}" for module, name in named if PROMPT not in getattr(module, name).__doc__]
