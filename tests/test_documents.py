"""What the documents name exists: files, sections, targets of make, commands and their options, public names."""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest
import typer.main

import nori_dyn as nd
from nori_dyn.cli import app

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / folder / "README.md" for folder in ("benchmarks", "notebooks")),
    *sorted((ROOT / "tests").rglob("README.md")),
]
DESIGN = ROOT / "docs" / "design.md"
SOURCES = sorted(p for folder in ("nori_dyn", "tests", "benchmarks") for p in (ROOT / folder).rglob("*.py"))
SUFFIXES = (".py", ".pyi", ".md", ".toml", ".ipynb", ".csv", ".csv.gz")

every_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))

FENCED = re.compile(r"^```\w*\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n)+")


def fences(text: str) -> list[str]:
    """Return the blocks of code, fenced and indented."""
    return FENCED.findall(text) + INDENTED.findall(text)


def spans(text: str) -> list[str]:
    """Return the pieces of code within sentences, each on one line."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", FENCED.sub("", text))]


def code(text: str) -> list[str]:
    """Return all lines of code, without what comments say."""
    lines = [re.split(r"\s#", line)[0] for block in fences(text) for line in block.splitlines()]
    return lines + spans(text)


def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings of a document, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", path.read_text()), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# ------------------------------------------------------------------------------------------ files


@every_document
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if re.match(r"https?:", target):
            continue
        file, _, anchor = target.partition("#")
        there = path.parent / file if file else path
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


@every_document
def test_files_exist(path):
    made = {line.strip("/") for line in (ROOT / ".gitignore").read_text().split()}
    top = {entry.name for entry in ROOT.iterdir() if entry.is_dir()} - made
    homes = (ROOT, path.parent, ROOT / "nori_dyn", ROOT / "tests")
    text = path.read_text()
    for span in spans(text):
        is_folder = re.fullmatch(r"[\w./-]+/", span) is not None
        is_file = re.fullmatch(r"[\w./-]+", span) is not None and span.endswith(SUFFIXES)
        if (is_folder or is_file) and span.strip("/") not in made:
            assert any((home / span).exists() for home in homes) or is_in_a_named_folder(path, span), span
    for line in code(text):
        for word in re.findall(r"[\w./-]+", line):
            if "/" in word and word.split("/")[0] in top:
                assert (ROOT / word.rstrip(".,")).exists(), word


def is_in_a_named_folder(path: Path, span: str) -> bool:
    """Return whether a file is in a folder that the document names."""
    return any((path.parent / folder / span).exists() for folder in spans(path.read_text()) if folder.endswith("/"))


def test_tests_that_the_code_cites_exist():
    cited = {found for path in SOURCES for found in re.findall(r"\btests/[\w/]+\.py\b", path.read_text())}
    assert len(cited) > 20
    for found in sorted(cited):
        assert (ROOT / found).exists(), found


def test_the_table_of_rooms_is_the_tree():
    rows = re.findall(r"^\| `([\w/.]+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.MULTILINE)
    package = ROOT / "nori_dyn"
    rooms = {f"{p.name}/" for p in package.iterdir() if (p / "__init__.py").exists()}
    rooms |= {p.name for p in package.glob("*.py") if p.name != "__init__.py"}
    assert rooms <= set(rows)


# --------------------------------------------------------------------------------------- sections


@cache
def sections() -> frozenset[str]:
    """Return the numbers of the sections of the design."""
    return frozenset(re.findall(r"^#+ (\d+(?:\.\d+)?) ", DESIGN.read_text(), flags=re.MULTILINE))


CITATION = re.compile(r"docs/design\.md, ((?:\d+(?:\.\d+)?)(?:(?:, | and )\d+(?:\.\d+)?)*)")


def test_cited_sections_exist():
    found = 0
    for path in (*SOURCES, *DOCUMENTS):
        if path == Path(__file__):
            continue
        text = path.read_text()
        for cited in CITATION.findall(text):
            numbers = re.findall(r"\d+(?:\.\d+)?", cited)
            assert set(numbers) <= sections(), f"{path}: {cited}"
            found += len(numbers)
    assert found > 10


def test_citations_have_one_form():
    for path in SOURCES:
        if path != Path(__file__):
            text = path.read_text()
            assert not re.search(r"\bDESIGN \d", text), path
            assert text.count("design.md") == len(CITATION.findall(text)), path


def test_sections_that_the_design_refers_to_exist():
    prose = re.sub(r"^(?: {4}|\||#).*$", "", DESIGN.read_text(), flags=re.MULTILINE)
    for number in re.findall(r"(?<![\w.-])\d\.\d(?![\w.])", prose):
        assert number in sections(), number


def test_limits_of_the_design_are_those_of_the_code():
    rows = re.findall(r"^\| `(\w+)` \| ([\de.+-]+) \| `(.+?)\.py` \|", DESIGN.read_text(), flags=re.MULTILINE)
    assert len(rows) > 5
    for name, value, module in rows:
        assert getattr(importlib.import_module(module.replace("/", ".")), name) == float(value), name


# --------------------------------------------------------------------------------------- commands


@every_document
def test_targets_of_make_exist(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for line in code(path.read_text()):
        if match := re.match(r"\s*make\s+(.*)", line):
            words = [word for word in match[1].partition("#")[0].split() if "=" not in word]
            assert words
            assert set(words) <= targets, line


@every_document
def test_commands_and_their_options_exist(path):
    if path.name == "mistakes.md":
        pytest.skip("its commands are mistakes")
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for line in code(path.read_text()):
        for name, rest in re.findall(r"nori-dyn ([a-z]+)([^|&]*)", line):
            assert name in commands, line
            options = {option for parameter in commands[name].params for option in parameter.opts} | {"--help"}
            assert set(re.findall(r"(?<!\S)--[a-z][a-z-]*", rest)) <= options, line


@every_document
def test_modules_that_are_run_exist(path):
    for line in code(path.read_text()):
        for name in re.findall(r"python -m ([\w.]+)", line):
            assert importlib.util.find_spec(name) is not None, line


# ------------------------------------------------------------------------------------------ names


@every_document
def test_public_names_exist(path):
    for line in code(path.read_text()):
        for name in re.findall(r"\bnd\.([A-Za-z_][\w.]*\w)", line):
            part = nd
            for word in name.split("."):  # an old name warns, and a warning is an error
                part = getattr(part, word)


@every_document
def test_names_in_the_package_exist(path):
    for line in spans(path.read_text()):
        if re.fullmatch(r"nori_dyn(\.\w+)+", line):
            pkgutil.resolve_name(line)


@every_document
def test_attributes_of_public_classes_exist(path):
    for line in code(path.read_text()):
        for owner, name in re.findall(r"\b([A-Z]\w+)\.([a-z]\w*)\b", line):
            there = getattr(nd, owner, None) if owner in nd.__all__ else None
            if isinstance(there, type):
                fields = {field for base in there.__mro__ for field in getattr(base, "__annotations__", {})}
                assert hasattr(there, name) or name in fields, line
