"""Tables as text and as HTML: widths, names that stay whole, numbers for people; the progress of long work."""

import math
import sys

import numpy as np
import pytest
from lxml import etree

import nori_dyn as nd
from nori_dyn.tables import (
    Bullets,
    Document,
    Facts,
    Paragraph,
    Shown,
    Table,
    listed,
    number,
    numbers,
    progress,
    unbroken,
)
from nori_dyn.tables.progress import progress_bar

NAMES = [f"a_rather_long_name_of_link_{k}" for k in range(30)]

LINKS = Table(
    "Links",
    ("#", "link", "joint", "kind", "parent", "mass [kg]"),
    tuple((k, name, f"joint_of_{name}", "revolute", name, 1.5 * k) for k, name in enumerate(NAMES)),
    left=(1, 2, 3, 4),
    most=20,
)


def parsed(html: str) -> etree._Element:
    return etree.fromstring(html, etree.XMLParser(recover=False, resolve_entities=False))


def test_numbers_are_plain():
    for value, digits, text in (
        (12345, 3, "12,345"),
        (np.int64(12345), 3, "12,345"),
        (342.0, 2, "342"),
        (342.2, 2, "340"),
        (12345.6, 3, "12,300"),
        (0.0123, 3, "0.0123"),
        (0.00999, 2, "0.010"),
        (-1234.5, 3, "-1,230"),
        (3.2e-7, 1, "3e-7"),
        (1.25e12, 3, "1.25e12"),
        (0.0, 3, "0"),
        (40.0, 3, "40"),
        (math.inf, 3, "inf"),
        (math.nan, 3, "nan"),
    ):
        assert number(value, digits) == text


def test_numbers_of_a_column_have_as_many_decimals():
    assert numbers([34.56, -1e-17, 0.01, np.nan]) == ["34.56", "0.00", "0.01", "nan"]
    assert numbers([12345.678, 1.0]) == ["12,346", "1"]
    assert numbers([1e-7, 2e-9]) == ["1e-7", "2e-9"]
    assert numbers([1.5e-4, 2e-9]) == ["0.0001500", "0.0000000"]
    assert numbers([0.0, 0.0]) == ["0", "0"]
    assert numbers([]) == []


def test_a_table_as_text():
    rows = (("recursive", 0, 12345, 3.14159), ("markowitz", 12, 1e-7, None))
    table = Table("Operations a tick", ("ordering", "fill-in", "paper", "LU"), rows, ("LU is given D.",))
    assert Document((table,)).text().splitlines() == [
        "Operations a tick",
        "ordering   fill-in   paper    LU",
        "--------------------------------",
        "recursive        0  12,345  3.14",
        "markowitz       12    1e-7",
        "LU is given D.",
    ]
    wide = Table("", ("link", "mass"), (("足の裏", 1), ("ankle", 2)))
    assert Document((wide,)).text().splitlines()[2:] == ["足の裏     1", "ankle      2"]


def test_no_line_is_wider_and_no_name_is_broken():
    document = Document((LINKS, "What there is: " + listed(NAMES), Facts((("links", listed(NAMES)),))))
    for width in (40, 60, 120):
        lines = document.text(width).splitlines()
        assert max(map(len, lines)) <= width
        assert all(any(name in line for line in lines) for name in NAMES[:20])
        assert "... 10 more" in lines
    lines = Document((LINKS,)).text(None).splitlines()  # without a width each row is one line
    assert len(lines) == 3 + len(NAMES)
    assert all(line.count(name) == 3 for line, name in zip(lines[3:], NAMES, strict=True))


def test_sentences_in_a_table_are_wrapped_and_names_with_spaces_are_not():
    rows = ((unbroken("a name of five words"), "a note of so many words that it takes several lines of the table"),)
    lines = Document((Table("", ("name", "note"), rows, left=(0, 1)),)).text(50).splitlines()
    assert max(map(len, lines)) <= 50
    assert lines[2].startswith("a name of five words  a note")
    assert len(lines) > 4
    names = [f"the name {k}" for k in range(40)]
    text = Document((listed(names),)).text()
    assert all(any(name in line for line in text.splitlines()) for name in names)


def test_lists_end_in_how_many_more_there_are():
    assert listed(["a", "b", "c"], 2) == "a, b and 1 more"
    assert listed(["a", "b"], 2) == "a, b"
    bullets = Document((Bullets(("one", "two " * 30, "three"), "What:", most=2),))
    lines = bullets.text().splitlines()
    assert lines[:2] == ["What:", "  - one"]
    assert lines[3].startswith("    two")
    assert lines[-1] == "  ... 1 more"
    assert "three" in bullets.text(None)
    assert "three" in bullets.html()


def test_bold_changes_no_letter_and_names_cannot_steer_a_terminal_or_change_a_page():
    document = Document((Paragraph("these do not suffice " * 8, "No, they do not."), LINKS, Facts((("a", "b"),), "F")))
    bold = document.text(60, bold=True)
    assert "\033[1mNo, they do not.\033[0m these" in bold
    assert "\033[1mLinks\033[0m" in bold
    assert bold.replace("\033[1m", "").replace("\033[0m", "") == document.text(60)
    nasty = ["<a&b>", '"><script>alert(1)</script>', "\033[31mred", "two\nlines", "\u202eback"]
    document = Document((listed(nasty), Table(nasty[0], (nasty[1], "n"), tuple((name, 1) for name in nasty))))
    text, html = document.text(), document.html()
    assert "\033" not in text
    assert "\u202e" not in text
    assert "\\x1b[31mred" in text
    assert text.count("two\\nlines") == 2
    root = parsed(html)
    assert not [*root.iter("script", "a")]
    assert "<a&b>" in "".join(root.itertext())


def test_what_is_shown_prints_and_repr_is_what_it_was():
    class Thing(Shown):
        def shown(self):
            return Document((Paragraph("of no use", "A thing"), LINKS))

        def __repr__(self):
            return "Thing()"

    thing = Thing()
    assert str(thing).startswith("A thing of no use\n\nLinks\n")
    assert repr(thing) == "Thing()"
    assert len(parsed(thing._repr_html_()).findall(".//tbody/tr")) == len(NAMES)


def test_without_a_terminal_stages_are_lines_where_that_is_wanted_and_a_function_is_told_itself(capsys):
    for watched, lines in ((True, "work: first\nwork: second\n"), (False, ""), (None, "")):
        with progress_bar("work", watched) as stage:
            for name in ("first", "first", "second"):
                stage(name, 0.5)
        assert capsys.readouterr() == ("", lines)
    told = []
    with progress_bar("work", lambda stage, done=None: told.append((stage, done))) as stage:
        stage("first", 0.5)
    assert told == [("first", 0.5)]


def test_on_a_terminal_there_is_a_bar_once_it_takes_long(monkeypatch):
    timers = []

    class Timer:
        def __init__(self, interval, function):
            timers.append((interval, function))

        start = cancel = join = lambda self: None

    monkeypatch.setattr(progress.threading, "Timer", Timer)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar("work") as stage:
        stage("first", 0.5)
    ((interval, start),) = timers
    assert (interval, start.__name__) == (progress.DELAY, "start")


def test_the_bar_is_drawn_in_place_and_erased(monkeypatch, capsys):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "PERIOD", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    drawn = ""
    with progress_bar("work") as stage:
        while "left" not in drawn:
            stage("first", 0.5)
            drawn += capsys.readouterr().err
    drawn += capsys.readouterr().err
    lines = drawn.split(progress.ERASED)
    assert any(line.startswith("work: first [########--------] 0:0") for line in lines)
    assert all(len(line) <= 60 for line in lines)
    assert lines[-1] == "\r"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_lines_are_told_above_the_last_one_of_a_terminal(capsys, monkeypatch, is_terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    line = progress.BottomLine()
    line.show("running")
    line.tell("lost a message")
    line.show("")
    first, erased = f"{progress.ERASED}running\r", progress.ERASED
    drawn = f"{first}{erased}lost a message\nrunning\r{erased}\r"
    assert capsys.readouterr().err == (drawn if is_terminal else "running\nlost a message\n")


def test_planning_and_sweeps_show_it(capsys):
    system = nd.System(nd.autotree(2), "inverse_dynamics")
    nd.plan(system, ordering="recursive", cache=False, progress=True)
    assert f"planning {system.tree.name} with inverse_dynamics: " in capsys.readouterr().err
    nd.conditioning(system, n=8, workers=1, progress=True)
    assert f"conditioning of {system.tree.name}: " in capsys.readouterr().err
