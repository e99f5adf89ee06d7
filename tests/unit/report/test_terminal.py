"""How documents are printed: as wide as the terminal, and whole where they are piped."""

import io
import sys

import pytest

from nori_dyn.report.terminal import show
from nori_dyn.tables import Document, Table

LONG = [f"a_rather_long_name_{k}" for k in range(9)]
TABLE = Table("Names", ("one", "two", "three", "four", "five"), (tuple(LONG[:5]),) * 4, left=(0, 1, 2, 3, 4), most=2)


@pytest.fixture
def no_columns(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)


def test_piped_output_has_a_line_a_row(no_columns, capsys):
    show(Document((TABLE,)), "said " * 40)
    lines = capsys.readouterr().out.splitlines()
    assert sum(all(name in line for name in LONG[:5]) for line in lines) == 4
    assert "more" not in "".join(lines)
    assert lines[-1].count("said") == 40
    assert "\033" not in "".join(lines)


def test_columns_set_the_width(monkeypatch, capsys):
    for width in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        show(TABLE)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= width
        assert lines[-1] == "... 2 more"
        assert all(any(name in line for line in lines) for name in LONG[:5])


class Terminal(io.StringIO):
    """A terminal that knows no width."""

    def isatty(self):
        return True


@pytest.mark.parametrize(("variable", "bold"), [(None, True), ("NO_COLOR", False)])
def test_titles_are_bold_on_a_terminal(no_columns, monkeypatch, variable, bold):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if variable:
        monkeypatch.setenv(variable, "1")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    show(TABLE)
    assert ("\033[1mNames\033[0m" in terminal.getvalue()) == bold


def test_names_that_an_encoding_lacks_are_escaped(no_columns, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    show("足の裏 stands")
    sys.stdout.flush()
    assert raw.getvalue() == b"\\u8db3\\u306e\\u88cf stands\n"
