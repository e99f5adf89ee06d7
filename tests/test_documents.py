"""What the documents name exists: files, sections, targets of make, commands and their options, public names."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

import nori_dyn as nd
from nori_dyn.cli import app

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks").rglob("*.md")),
    ROOT / "notebooks" / "README.md",
    *sorted((ROOT / "tests").rglob("README.md")),
]
DESIGN = ROOT / "docs" / "design.md"
SOURCES = sorted(p for folder in ("nori_dyn", "tests", "benchmarks") for p in (ROOT / folder).rglob("*.py"))
SUFFIXES = (".py", ".pyi", ".md", ".toml", ".ipynb", ".csv", ".csv.gz")

FENCED = re.compile(r"^```\w*\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n)+")


def fences(text: str) -> list[str]:
    """The blocks of code, fenced and indented."""
    return FENCED.findall(text) + INDENTED.findall(text)


def spans(text: str) -> list[str]:
    """The pieces of code within sentences, each on one line."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", FENCED.sub("", text))]


def code(text: str) -> list[str]:
    """All lines of code, without what comments say."""
    lines = [re.split(r"\s#", line)[0] for block in fences(text) for line in block.splitlines()]
    return lines + spans(text)


def anchors(path: Path) -> set[str]:
    """The anchors of the headings of a document, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", path.read_text()), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# ------------------------------------------------------------------------------- laws of each document


def broken_links(path: Path) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if re.match(r"https?:", target):
            continue
        file, _, anchor = target.partition("#")
        there = path.parent / file if file else path
        if not there.exists() or (anchor and anchor not in anchors(there)):
            yield target


def absent_files(path: Path) -> Iterator[str]:
    made = {line.strip("/") for line in (ROOT / ".gitignore").read_text().split()}
    top = {entry.name for entry in ROOT.iterdir() if entry.is_dir()} - made
    homes = (ROOT, path.parent, ROOT / "nori_dyn", ROOT / "tests")
    text = path.read_text()
    for span in spans(text):
        is_folder = re.fullmatch(r"[\w./-]+/", span) is not None
        is_file = re.fullmatch(r"[\w./-]+", span) is not None and span.endswith(SUFFIXES)
        is_there = any((home / span).exists() for home in homes) or is_in_a_named_folder(path, span)
        if (is_folder or is_file) and span.strip("/") not in made and not is_there:
            yield span
    for line in code(text):
        for word in re.findall(r"[\w./-]+", line):
            if "/" in word and word.split("/")[0] in top and not (ROOT / word.rstrip(".,")).exists():
                yield word


def is_in_a_named_folder(path: Path, span: str) -> bool:
    return any((path.parent / folder / span).exists() for folder in spans(path.read_text()) if folder.endswith("/"))


def unknown_targets_of_make(path: Path) -> Iterator[str]:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for line in code(path.read_text()):
        if match := re.match(r"\s*make\s+(.*)", line):
            words = {word for word in match[1].partition("#")[0].split() if "=" not in word}
            if not words or not words <= targets:
                yield line


def unknown_commands_and_options(path: Path) -> Iterator[str]:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for line in code(path.read_text()):
        for name, rest in re.findall(r"nori-dyn ([a-z]+)([^|&]*)", line):
            parameters = commands[name].params if name in commands else ()
            options = {option for parameter in parameters for option in parameter.opts} | {"--help"}
            if name not in commands or not set(re.findall(r"(?<!\S)--[a-z][a-z-]*", rest)) <= options:
                yield line


def named(path: Path, pattern: str) -> list[Any]:
    """What a pattern finds in the code of a document."""
    return re.findall(pattern, "\n".join(code(path.read_text())), flags=re.MULTILINE)


def modules_that_cannot_be_run(path: Path) -> Iterator[str]:
    yield from (name for name in named(path, r"python -m ([\w.]+)") if importlib.util.find_spec(name) is None)


def unknown_names(path: Path) -> Iterator[str]:
    """Public ones, and those in the package."""
    public = [f"nori_dyn:{name}" for name in named(path, r"\bnd\.([A-Za-z_][\w.]*\w)")]
    for name in (*public, *named(path, r"^nori_dyn(?:\.\w+)+$")):
        try:
            pkgutil.resolve_name(name)  # an old name warns, and a warning is an error
        except (ImportError, AttributeError, Warning) as error:
            yield f"{name}: {error}"


def unknown_attributes_of_public_classes(path: Path) -> Iterator[str]:
    for owner, name in named(path, r"\b([A-Z]\w+)\.([a-z]\w*)\b"):
        home = next((module for module in (nd, nd.results, nd.tools) if owner in module.__all__), None)
        there = getattr(home, owner, None)
        if isinstance(there, type):
            fields = {field for base in there.__mro__ for field in getattr(base, "__annotations__", {})}
            if not hasattr(there, name) and name not in fields:
                yield f"{owner}.{name}"


@pytest.mark.parametrize(
    "failures",
    [
        broken_links,
        absent_files,
        unknown_targets_of_make,
        unknown_commands_and_options,
        modules_that_cannot_be_run,
        unknown_names,
        unknown_attributes_of_public_classes,
    ],
)
def test_documents_have_no(failures):
    assert not [f"{path.relative_to(ROOT)}: {what}" for path in DOCUMENTS for what in failures(path)]


# --------------------------------------------------------------------- laws of the code and the design


def test_tests_that_the_code_cites_exist():
    cited = {found for path in SOURCES for found in re.findall(r"\btests/[\w/]+\.py\b", path.read_text())}
    assert len(cited) > 20
    assert not [found for found in sorted(cited) if not (ROOT / found).exists()]


def test_the_table_of_rooms_is_the_tree():
    rows = re.findall(r"^\| `([\w/.]+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.MULTILINE)
    package = ROOT / "nori_dyn"
    rooms = {f"{p.name}/" for p in package.iterdir() if (p / "__init__.py").exists()}
    rooms |= {p.name for p in package.glob("*.py") if p.name != "__init__.py"}
    assert rooms <= set(rows)


@cache
def sections() -> frozenset[str]:
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
