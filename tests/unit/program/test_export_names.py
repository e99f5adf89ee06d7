"""Names in C: which are taken, what becomes of a model's, and that none leaves its comment."""

import pytest

from nori_dyn.errors import InputError
from nori_dyn.export.names import (
    PATTERN,
    checked_identifier,
    comment_text,
    default_identifier,
    distinct_identifiers,
    enumerators,
)

UNNAMED = ("unnamed", "unnamed_2", "unnamed_3")


REFUSED = {
    "a letter, then letters, digits and single": (
        *("", "2d", "_x", "x_", "a__b", "a-b", "a b"),
        *("é", "a\n", "../x", "a.c", "x;", "手", "²"),
    ),
    "keyword": ("int", "class", "restrict", "co_await"),
    "already names": (
        *("math", "Math", "stdio", "test", "all", "m"),
        *("main", "con", "string", "std", "linux"),
    ),
    "longer than 48": ("x" * 49,),
}


def test_an_identifier_is_taken_as_it_is():
    for name in ("panda", "Left_arm", "a", "r2d2", "x" * 48):
        assert checked_identifier(name) == name


@pytest.mark.parametrize("why", REFUSED)
def test_anything_else_is_refused_with_a_reason(why):
    for name in REFUSED[why]:
        with pytest.raises(InputError, match=why):
            checked_identifier(name)


ROBOTS = {
    "panda": "panda",
    "iCub 3.0": "iCub_3_0",
    "2link": "robot_2link",
    "__": "robot",
    "": "robot",
    "手": "robot",
    "test": "robot_test",
    "double": "robot_double",
    "*/ evil /*": "evil",
    "9" * 100: "robot_" + "9" * 42,
    "x" * 47 + "_yz": "x" * 47,
}


def test_a_robot_of_any_name_has_one():
    assert {name: default_identifier(name) for name in ROBOTS} == ROBOTS
    assert all(map(PATTERN.fullmatch, ROBOTS.values()))


def test_names_that_become_the_same_are_numbered():
    names = ["fx:sole", "fx-sole", "fx:手", "fx", "fx sole 2", "fx_sole", "fx:" + "x" * 99, "fx:" + "x" * 98]
    made = distinct_identifiers(names)
    assert made[:6] == ["fx_sole_2", "fx_sole_3", "fx_2", "fx", "fx_sole_2_2", "fx_sole"]
    assert len(set(made)) == len(names)
    assert max(map(len, made)) < 60


def test_names_that_are_the_same_or_nothing_are_numbered_too():
    assert distinct_identifiers(["a", "a", "a_2", "手", "é", ""]) == ["a", "a_3", "a_2", *UNNAMED]


def test_enumerators_are_distinct_and_no_longer_than_every_compiler_reads():
    names = ["2nd joint", "double", "x" * 60 + "a", "x" * 60 + "b"]
    made = enumerators("ROBOT_Q", names)
    assert made[:2] == ["ROBOT_Q_2nd_joint", "ROBOT_Q_double"]
    assert len(set(made)) == 4
    assert max(map(len, made)) <= 63


def test_a_comment_holds_nothing_that_ends_it():
    for name in ("*/", "/*", "//", "\\", "\n", "??/", "é", "\0", "\u2028", '"', "#", "*" * 500, "{", "\ud800"):
        text = comment_text(f"a{name}b")
        assert text.isascii()
        assert text.isprintable()
        assert not set(text) & set("*?\\\"'#")
        assert len(text) < 130


def test_a_comment_keeps_what_names_are_made_of():
    name = "tau:left_arm/joint-1.mx (rad) [2]"
    assert comment_text(name) == name
