"""XML files changed in place: what is changed says what it should, by lxml, and all else keeps its bytes."""

import pytest
from lxml import etree

from nori_dyn.errors import FileFormatError
from nori_dyn.io.xml_text import XmlText, numbers

ROBOT = b"""<?xml version='1.0'  encoding="utf-8" ?>
<!-- who made it: \xc3\xa9 -->
<robot name='two &amp; more'
       version = "1">
    <link name = 'a'   />
    <link name="b"><inertial><mass value='1.50'/></inertial></link>
    <link name="c">

      <inertial>  <!-- measured -->
        <mass   value = "2"
                unit="kg"/>
      </inertial>
    </link>
    <link name="d"></link>
    <drake:rotor>  0.5
    </drake:rotor>
</robot>
<!-- end -->
"""


@pytest.fixture
def open_text(tmp_path):
    def open_text(content: bytes = ROBOT) -> XmlText:
        (tmp_path / "robot.urdf").write_bytes(content)
        return XmlText(tmp_path / "robot.urdf")

    return open_text


def link(text: XmlText, name: str):
    return next(one for one in text.root.findall("link") if one.get("name") == name)


def mass(text: XmlText, name: str):
    return link(text, name).find("inertial").find("mass")


def test_nothing_changes_by_itself(open_text):
    text = open_text()
    assert text.changed() == ROBOT
    assert text.root.get("name") == "two & more"
    assert [one.tag for one in text.root.iter()][:5] == ["robot", "link", "link", "inertial", "mass"]
    assert [one.line for one in text.root.findall("link")] == [5, 6, 7, 14]
    text.set_text(text.root.find("drake:rotor"), "0.25")  # which keeps the space around it
    assert text.changed() == ROBOT.replace(b"  0.5\n", b"  0.25\n")


def test_attributes_keep_their_place_and_quotes(open_text):
    text = open_text()
    text.set_numbers(mass(text, "b"), "value", 0.1)
    text.set_numbers(mass(text, "c"), "value", 2.0)  # as it is
    text.set(mass(text, "c"), "unit", "g")
    text.set(link(text, "a"), "more", "1")
    text.set(link(text, "a"), "and", "2")
    expected = ROBOT.replace(b"'1.50'", b"'0.1'").replace(b'"kg"', b'"g"')
    assert text.changed() == expected.replace(b"'a'   />", b'\'a\' more="1" and="2"   />')


def test_what_is_not_there_is_added_where_it_is_not_zero(open_text):
    text = open_text()
    text.set_numbers(mass(text, "b"), "other", 0.0)
    assert text.changed() == ROBOT
    text.set_numbers(mass(text, "b"), "other", 0.0, default=1.0)
    assert b"<mass value='1.50' other=\"0.0\"/>" in text.changed()
    text = open_text()  # and taken away with its space
    text.unset(mass(text, "c"), "unit")
    text.unset(link(text, "c"), "absent")
    assert text.changed() == ROBOT.replace(b'\n                unit="kg"', b"")


def test_elements_are_removed_with_their_lines(open_text):
    text = open_text()
    text.remove(link(text, "b"))
    text.remove(link(text, "c").find("inertial"))
    lines = ROBOT.splitlines(keepends=True)
    assert text.changed() == b"".join([*lines[:5], *lines[6:8], *lines[12:]])
    text = open_text()  # in a line with others
    text.remove(link(text, "b").find("inertial"))
    assert text.changed() == ROBOT.replace(b"<inertial><mass value='1.50'/></inertial>", b"")


INDENTED = b"\n        <x>\n            <y/>\n        </x>\n    </link>"
ADDED = {
    "a": (b"<link name = 'a'   />", b"<link name = 'a'   >" + INDENTED),
    "b": (b"</inertial></link>", b"</inertial><x><y/></x></link>"),
    "c": (b"      </inertial>\n", b"      </inertial>\n      <x>\n          <y/>\n      </x>\n"),
    "d": (b'"d"></link>', b'"d">' + INDENTED),
}


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_elements_are_added_as_the_file_is_indented(open_text, newline):
    for name, (before, after) in ADDED.items():
        text = open_text(ROBOT.replace(b"\n", newline))
        text.add(link(text, name), ["<x>", "  <y/>", "</x>"])
        assert text.changed() == ROBOT.replace(before, after).replace(b"\n", newline)
        parser = etree.XMLParser(recover=True)
        assert etree.fromstring(text.changed(), parser).find(f"link[@name='{name}']/x/y") is not None


def test_numbers_are_read_back_as_they_were():
    values = (1 / 3, -0.0, 1e-17, 2.0, 123456789.123456789)
    assert [float(part) for part in numbers(*values).split()] == [*values]
    assert numbers(-0.0) == "0.0"


def test_encodings_and_what_is_no_xml(open_text):
    latin = ROBOT.replace(b"utf-8", b"iso-8859-1").replace(b"\xc3\xa9", b"\xe9")
    text = open_text(latin)
    text.set(link(text, "d"), "name", "e")
    assert text.changed() == latin.replace(b'"d"', b'"e"')
    marked = open_text(b"\xef\xbb\xbf<robot><link name='a'/></robot>")
    marked.remove(link(marked, "a"))
    assert marked.changed() == b"\xef\xbb\xbf<robot></robot>"
    with pytest.raises(FileFormatError, match=r"UTF-16\. Save it as UTF-8"):
        open_text("<robot/>".encode("utf-16"))
    for content in (b"<robot>", b"", b"<!DOCTYPE r [<!ENTITY e 'x'>]><r>&e;</r>"):
        with pytest.raises(FileFormatError, match=r"robot\.urdf"):
            open_text(content)
