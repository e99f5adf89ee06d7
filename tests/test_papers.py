"""The table of the papers' equations has all that the code cites; what it and the errata name exists."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TABLE, ERRATA = ROOT / "docs" / "papers.csv", ROOT / "docs" / "errata.md"
PAPERS = {"Nori": "Nori", "RBDA": "Featherstone", "Wensing": "Echeandia and Wensing"}
"""How the code cites a paper, and its heading in the table."""

NUMBER = r"\((?:\d+\.)?\d{1,2}[a-z]*\)"
BETWEEN = r"[\s,;-]|\band\b|\b(?:tables?|ch\.|section|remarks?|algorithm|property) [\dIVX][\w.-]*"
CITATION = re.compile(rf"\b({'|'.join(PAPERS)})((?:{BETWEEN}|{NUMBER})*{NUMBER})")


class Row(NamedTuple):
    """A row of the table."""

    paper: str
    equation: str
    files: list[str]
    tests: str


def rows() -> list[Row]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [
            Row(row["paper"], row["equation"], re.findall(r"`([^`]+)`", row["files"]), row["tests"])
            for row in csv.DictReader(file)
        ]


def numbers(text: str) -> Iterator[str]:
    """Yield the numbers of equations: "(3a)" is 3, "(6.2)-(6.4)" are 6.2, 6.3 and 6.4."""
    for first, last in re.findall(rf"({NUMBER})(?:-({NUMBER}))?", text):
        chapter, start = re.fullmatch(r"\(((?:\d+\.)?)(\d+)\w*\)", first).groups()
        stop = re.fullmatch(r"\((?:\d+\.)?(\d+)\w*\)", last or first)[1]
        yield from (f"{chapter}{k}" for k in range(int(start), int(stop) + 1))


def test_what_a_row_names_exists():
    assert len(rows()) > 50
    absent = []
    for row in rows():
        where = f"{row.paper} {row.equation}"
        assert row.files, where
        homes = (ROOT / "nori_dyn", ROOT)
        absent += [(where, file) for file in row.files if not any((home / file).is_file() for home in homes)]
        named = re.findall(r"`([\w/]+\.py)`((?:[:, ]*`test_\w+`(?!\.))*)", row.tests)
        assert named, where
        for file, functions in named:
            path = ROOT / "tests" / file
            text = path.read_text() if path.is_file() else ""
            names = re.findall(r"`(test_\w+)`", functions) if text else [file]
            absent += [(where, file, name) for name in names if f"def {name}(" not in text]
        assert len(re.findall(r"`test_\w+`", row.tests)) == sum(part.count("`") // 2 for _, part in named), where
    assert not absent


def test_every_equation_that_the_code_cites_is_in_the_table():
    known = {
        heading: {n for row in rows() if row.paper == heading for n in numbers(row.equation)}
        for heading in PAPERS.values()
    }
    cited = 0
    for path in (ROOT / "nori_dyn").rglob("*.py"):
        for paper, equations in CITATION.findall(path.read_text()):
            for number in numbers(equations):
                assert number in known[PAPERS[paper]], f"{path.name}: {paper} ({number})"
                cited += 1
    assert cited > 80


def test_tests_that_the_errata_name_exist():
    absent = []
    for paragraph in ERRATA.read_text().split("\n\n"):
        files = re.findall(r"`(tests/[\w/]+\.py)`", paragraph)
        text = "".join((ROOT / file).read_text() for file in files)
        absent += [name for name in re.findall(r"`(test_\w+)`", paragraph) if f"def {name}(" not in text]
        assert paragraph.startswith(("#", "What", "No misprint")) or files or "../notebooks/" in paragraph, paragraph
    assert not absent


def test_each_paper_of_the_table_has_its_place_on_the_page():
    page = TABLE.with_suffix(".md").read_text()
    assert re.findall(r'^<!-- generate: papers\("(.*)"\) -->$', page, flags=re.M) == list(
        dict.fromkeys(row.paper for row in rows())
    )
