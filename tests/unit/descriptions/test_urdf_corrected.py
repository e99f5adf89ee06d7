"""URDF files that say what a robot is now, and are as they were else; the text of XML that is changed in place."""

from pathlib import Path

import numpy as np
import pytest
from lxml import etree

from nori_dyn.algebra.spatial import spatial_inertia
from nori_dyn.components import Coupling, Friction, Rotor, Spring
from nori_dyn.descriptions.corrections import by_joint, widths_by_joint
from nori_dyn.descriptions.urdf_corrected import corrected_urdf
from nori_dyn.errors import FileFormatError, ModelError, UnknownModelNameError
from nori_dyn.io.xml_file import read_xml
from nori_dyn.io.xml_text import XmlText, numbers
from tests.corrected import DYNAMICS, INERTIAL, corrected, difference, without
from tests.corrected import loaded as load
from tests.covering import covering
from tests.peers import pin
from tests.robots import ROBOTS

SWAP = np.roll(np.arange(6), 3)
SAME = 1e-12
NAMES = ("panda", "talos_full", "icub", "iCubGenova04", "anymal", "go2", "ur5", "allegro")

ARM = """<?xml version="1.0"?>
<robot name="arm">
  <!-- the wall -->
  <link name="wall"><inertial><mass value="9"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <link name="upper">
    <inertial>
      <origin xyz="0.1 0 0" rpy="0 0 1.570796327"/> <!-- turned -->
      <mass value="2.0"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/>
    </inertial>
  </link>
  <link name="plate">
    <inertial>
      <origin xyz="0 0.1 0" rpy="0.3 0 0"/><mass value="0.5"/><inertia ixx="1e-3" iyy="1e-3" izz="1e-3"/>
    </inertial>
  </link>
  <link name="fore"/>
  <link name="hand">
    <inertial><mass value="0.4"/><inertia ixx="1e-3" iyy="1e-3" izz="1e-3"/></inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="wall"/><child link="upper"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/>
    <dynamics damping="0.50" friction='0.1'/>
  </joint>
  <joint name="bolt" type="fixed"><parent link="upper"/><child link="plate"/><origin xyz="0 0 .1" rpy="0 .2 0"/></joint>
  <joint name="elbow" type="continuous">
    <origin xyz="0.3 0 0"/><parent link="upper"/><child link="fore"/><axis xyz="0 1 0"/>
  </joint>
  <joint name="wrist" type="fixed"><parent link="fore"/><child link="hand"/><origin xyz=".3 0 0" rpy="1 .2 .1"/></joint>
  <transmission name="t1">
    <joint name="shoulder"/><actuator name="m1"><mechanicalReduction>50</mechanicalReduction></actuator>
    <drake:rotor_inertia value="1e-5"/>
  </transmission>
</robot>
"""


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    return path


def again(tree, source: Path, folder: Path, **options):
    """The robot of the corrected file, its content, and the notes."""
    found = corrected_urdf(tree, source)
    out = folder / "out.urdf"
    out.write_bytes(found.content)
    return load(out, **options), found.content, found.notes


@covering(
    strength=1,
    name=NAMES,
    options={
        "components": {"components": True},
        "floating": {"base": "floating"},
        "kept": {"base": "floating", "kept": "sensors"},
    },
)
def test_robots_are_read_back_as_they_are(name, options, tmp_path):
    path = ROBOTS[name]
    before = load(path, **options)
    tree = corrected(before, seed=3, share=0.7, joints="components" in options)
    back, content, _ = again(tree, path, tmp_path, **options)
    assert difference(before.I, tree.I) > 1e-3
    assert difference(back.I, tree.I) < SAME
    assert back.joint_names == tree.joint_names
    assert without(content, INERTIAL, DYNAMICS) == without(path.read_bytes(), INERTIAL, DYNAMICS)
    theirs, ours = (
        {joint: sums for joint, sums in by_joint(each, Friction).items() if any(sums.values())} for each in (back, tree)
    )
    assert theirs == ours


def first_of(names, count):
    """The names as parameters, of which the first few are for each run."""
    return [pytest.param(name, marks=[pytest.mark.long] * (k >= count)) for k, name in enumerate(names)]


@pytest.mark.parametrize("name", first_of(("panda", "talos_full", "anymal", "iCubGenova04"), 2))
def test_pinocchio_reads_the_same(name, tmp_path):
    path = ROBOTS[name]
    tree = corrected(load(path, base="floating", components=True, mimic="independent", clean=False), seed=5)
    (tmp_path / "out.urdf").write_bytes(corrected_urdf(tree, path).content)
    model = pin.buildModelFromUrdf(str(tmp_path / "out.urdf"), pin.JointModelFreeFlyer())
    frictions = by_joint(tree, Friction)
    for i, joint in enumerate(tree.joint_names):
        number = model.getJointId(joint)
        assert difference(tree.I[i], model.inertias[number].matrix()[np.ix_(SWAP, SWAP)]) < SAME
        if joint in frictions:
            np.testing.assert_allclose(model.damping[model.idx_vs[number]], frictions[joint]["viscous"], rtol=SAME)
            np.testing.assert_allclose(model.friction[model.idx_vs[number]], frictions[joint]["coulomb"], rtol=SAME)


@pytest.mark.parametrize("name", first_of(dict.fromkeys([*NAMES, *ROBOTS]), 4))
def test_what_did_not_change_is_not_touched(name):
    for options in ({"components": True}, {"base": "floating", "clean": False}):
        found = corrected_urdf(load(ROBOTS[name], **options), ROBOTS[name])
        assert found.content == ROBOTS[name].read_bytes()


def test_locked_joints_are_where_they_were_locked(tmp_path):
    path, options = ROBOTS["panda"], {"locked": {"panda_joint2": 0.3, "panda_joint5": -1.2}}
    tree = corrected(load(path, **options), seed=1, joints=False)
    assert difference(again(tree, path, tmp_path, **options)[0].I, tree.I) < SAME


def test_the_link_that_moves_gets_the_change(arm, tmp_path):
    before = load(arm)
    I = before.I.copy()
    I[0] += spatial_inertia(0.1, np.array([0.1, 0.2, 0]), np.zeros((3, 3)))
    back, content, notes = again(before.replace(I=I), arm, tmp_path)
    assert difference(back.I, I) < SAME
    assert notes == (
        "the friction of 'shoulder' is left as the file has it: the robot has none there",
        "the rotor of 'shoulder' is left as the file has it: the robot has none there",
    )
    new = content.decode().splitlines()
    changed = [k for k, (a, b) in enumerate(zip(ARM.splitlines(), new, strict=True)) if a != b]
    assert changed == [5, 6, 7, 8]
    assert new[5] == '    <inertial identified="true">'
    assert new[6].endswith('rpy="0.0 0.0 0.0"/> <!-- turned -->')
    assert new[7] == '      <mass value="2.1"/>'


def test_a_change_that_the_link_alone_cannot_have_takes_in_what_is_fixed_to_it_but_no_fixed_root(arm, tmp_path):
    before = load(arm)
    tree = before.replace(I=before.I * 0.9)  # of the forearm, which has no mass, nothing is left
    back, content, notes = again(tree, arm, tmp_path)
    assert difference(back.I, tree.I) < SAME
    assert notes[0] == "'fore' has the inertia of all that is fixed to it; 'hand' no longer any"
    root = read_xml(tmp_path / "out.urdf")
    assert root.find("link[@name='hand']/inertial") is None
    assert float(root.find("link[@name='fore']/inertial/mass").get("value")) == pytest.approx(0.36, rel=1e-15)
    assert without(content, INERTIAL) == without(ARM.encode(), INERTIAL)
    tree = load(arm)  # and one that has none any more has no element for it
    back, content, _ = again(tree.replace(I=tree.I * np.array([1.0, 0.0])[:, None, None]), arm, tmp_path)
    assert not back.I[1].any()
    assert b'<link name="hand">\n  </link>' in content
    fixed, tree = load(arm), load(arm, base="floating")
    tree = tree.replace(I=tree.I * 1.5)
    back, content, _ = again(tree, arm, tmp_path, base="floating")
    assert difference(back.I, tree.I) < SAME
    assert b'<link name="wall"><inertial identified="true"><mass value="13.5"/>' in content
    assert b'<mass value="9"/>' in corrected_urdf(fixed.replace(I=fixed.I * 1.5), arm).content


def test_friction_and_rotors_of_joints(arm, tmp_path):
    tree = load(arm, components=True)
    parts = [
        Friction(joints="shoulder", viscous=0.7, coulomb=0.3),
        Friction(joints="elbow", viscous=0.2, coulomb=0.1, width=0.01),
        Rotor(joints="shoulder", inertia=0.05),
    ]
    tree = tree.replace(components=parts)
    back, content, notes = again(tree, arm, tmp_path, components=True)
    assert by_joint(back, Friction) == by_joint(tree, Friction)
    assert back.components[-1] == Rotor(joints="shoulder", inertia=0.05 / 50**2, gear=50)
    assert b"""<dynamics damping="0.7" friction='0.3' identified="true"/>""" in content
    wide = b'<dynamics damping="0.2" friction="0.1" width="0.01" identified="true"/>'
    assert b'<axis xyz="0 1 0"/>\n    ' + wide + b"\n  </joint>" in content
    assert b'<drake:rotor_inertia value="2e-05" identified="true"/>' in content
    assert notes == ()
    assert widths_by_joint(back) == {"shoulder": (0.001,), "elbow": (0.01,)}
    assert back.components == load(tmp_path / "out.urdf").components  # unasked
    assert not load(tmp_path / "out.urdf", components=False).components
    second = """<transmission name="t2"><joint name="shoulder"/><rotorInertia> 2e-5 </rotorInertia></transmission>"""
    arm.write_text(ARM.replace("</robot>", f"{second}</robot>"))
    tree = load(arm, components=True).replace(components=[Rotor(joints="shoulder", inertia=0.1)])
    back, content, _ = again(tree, arm, tmp_path, components=True)
    assert by_joint(back, Rotor) == by_joint(tree, Rotor)
    assert b'<rotorInertia identified="true"> 0.0 </rotorInertia>' in content


def test_what_a_urdf_has_no_place_for_is_said(arm):
    arm.write_text(ARM.replace('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><mimic joint="shoulder"/>'))
    tree = load(arm, base="floating").replace(components=[Friction(joints="root_joint", viscous=0.5)])
    notes = corrected_urdf(tree, arm).notes
    assert notes[0] == "a URDF has no place for the friction of 'root_joint': a file of components has"
    tree = load(arm, components=True)
    couplings = [one for one in tree.components if isinstance(one, Coupling)]
    assert couplings
    more = [
        Rotor(joints=["shoulder", "elbow"], inertia=0.1),
        Spring(joints="elbow", stiffness=3.0),
        Friction(joints="elbow", coulomb=1.0, static=2.0, asymmetry=0.1),
    ]
    assert corrected_urdf(tree.replace(components=[*couplings, *more]), arm).notes == (
        "a URDF has no place for friction that differs by direction of 'elbow'",
        "a URDF has no place for Stribeck's friction of 'elbow'",
        "the friction of 'shoulder' is left as the file has it: the robot has none there",
        "a URDF has no place for the rotor of 'elbow': a file of components has",
        "a URDF has no place for the spring of 'elbow': a file of components has",
    )


def test_inertias_that_no_body_has_are_said_and_the_nearest_are_written(arm, tmp_path):
    tree = load(arm)
    I = tree.I.copy()
    I[0, :3, :3] += np.diag([1.0, 0, 0])
    found = corrected_urdf(tree.replace(I=I), arm)
    assert "no distribution of mass has the inertia of 'upper': it is written as it is" in found.notes
    arm.write_text(ARM.replace('ixx="0.02"', 'ixx="0.2"'))
    tree = load(arm, inertias="nearest")
    assert difference(again(tree, arm, tmp_path)[0].I, tree.I) < SAME


def wrong(name, value):
    return lambda tree: tree.replace(**{name: value})


NO_FRICTION = Friction.model_construct(joints="elbow", viscous=-0.5)

WRONG = {
    "link 'upper': its mass is -2.5 kg, which no file": (ModelError, lambda tree: tree.replace(I=-tree.I)),
    "link 'upper': .* not finite": (ModelError, lambda tree: tree.replace(I=tree.I * np.nan)),
    "link 'upper': its mass is 0 kg and its first moment is not zero": (
        ModelError,
        lambda tree: tree.replace(I=tree.I * np.kron([[1, 1], [1, 0]], np.ones((3, 3)))),
    ),
    r"unknown link 'lower'.*arm\.urdf": (UnknownModelNameError, wrong("names", ("upper", "lower"))),
    "unknown joint 's'": (UnknownModelNameError, wrong("joint_names", ("s", "elbow"))),
    "joint 'elbow' carries 'fore'": (ModelError, wrong("joint_names", ("elbow", "shoulder"))),
    "robot 'arm' does not have its link 'wall'": (ModelError, wrong("frames", {})),
    "the friction of 'elbow' cannot be in a file: viscous is -0.5: .*greater than or equal to 0": (
        ModelError,
        wrong("components", [NO_FRICTION]),
    ),
}


def test_robots_that_no_file_can_hold(arm):
    for message, (error, make) in WRONG.items():
        with pytest.raises(error, match=message):
            corrected_urdf(make(load(arm)), arm)


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
