"""URDF files written here: what is read, what is cleaned, and what each wrong file is told."""

import logging
import math
import pickle
from itertools import product

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from nori_dyn.algebra.spatial import spatial_inertia
from nori_dyn.descriptions.urdf import load_urdf
from nori_dyn.errors import FileFormatError, ModelError, NoriError, NoriWarning, UnknownModelNameError
from nori_dyn.model.cleaning import Cleaner, last_unit
from nori_dyn.model.joints import Continuous, DriveLimits, Free, Planar, Prismatic, Revolute

INERTIAL = '<inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


def link(name: str, inertial: str = INERTIAL) -> str:
    return f'<link name="{name}">{inertial}</link>\n'


def joint(name: str, parent: str, child: str, kind: str = "revolute", more: str = '<axis xyz="0 0 1"/>') -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{more}</joint>\n'


TWO = link("base") + link("arm")


def hinged(more: str, kind: str = "revolute") -> str:
    """Two links and a joint of which more is said."""
    return TWO + joint("j", "base", "arm", kind, more)


def heavy(inertial: str) -> str:
    """Two links and a joint; the second link is of this inertia."""
    return link("base") + link("arm", inertial) + J


J = joint("j", "base", "arm")


@pytest.fixture
def write(tmp_path):
    def write(body: str, whole: bool = False):
        path = tmp_path / "robot.urdf"
        path.write_text(body if whole else f'<?xml version="1.0"?>\n<robot name="test">\n{body}</robot>\n')
        return path

    return write


# What is read


def test_every_joint_type_and_the_defaults_of_the_specification(write):
    kinds = ("revolute", "continuous", "prismatic", "planar", "floating", "fixed")
    body = link("l0") + "".join(
        link(f"l{i}") + joint(f"j{i}", f"l{i - 1}", f"l{i}", kind) for i, kind in enumerate(kinds, start=1)
    )
    tree = load_urdf(write(body))
    assert [type(j) for j in tree.joints] == [Revolute, Continuous, Prismatic, Planar, Free]
    assert tree.names == ("l1", "l2", "l3", "l4", "l5")
    assert tree.joint_names == ("j1", "j2", "j3", "j4", "j5")
    assert tree.frames["l0"].on_world
    assert tree.frames["l6"].link == 4
    tree = load_urdf(write(link("base") + link("arm", "") + joint("j", "base", "arm", more="")))
    assert tree.joints[0].axis == (1.0, 0.0, 0.0)
    assert tree.joints[0].limits == (-math.inf, math.inf)
    assert not tree.I.any()
    np.testing.assert_array_equal(tree.X_tree[0].E, np.eye(3))
    assert tree.gravity == (0.0, 0.0, -9.81)


def test_limits(write):
    for limit, expected in (
        ('lower="-1.5" upper="2"', (-1.5, 2.0)),
        ('upper="2" effort="3" velocity="x"', (-math.inf, 2.0)),
        ('lower="-1e16" upper="3.4e38"', (-math.inf, math.inf)),
        ('lower="-inf" upper="inf"', (-math.inf, math.inf)),
    ):
        assert load_urdf(write(hinged(f'<axis xyz="0 0 1"/><limit {limit}/>'))).joints[0].limits == expected, limit
    endless = hinged('<axis xyz="0 0 1"/><limit lower="0" upper="0" effort="1" velocity="1"/>', "continuous")
    assert load_urdf(write(endless)).joints[0].limits == (-math.inf, math.inf)


def test_the_inertia_is_turned_into_link_axes_and_the_origin_of_a_joint(write):
    inertial = (
        '<inertial><origin xyz="0.1 0.2 0.3" rpy="0 0 1.5707963267948966"/><mass value="2"/>'
        '<inertia ixx="1" ixy="0.1" ixz="0" iyy="2" iyz="0" izz="2.5"/></inertial>'
    )
    tree = load_urdf(write(heavy(inertial)))
    turned = np.array([[2.0, -0.1, 0.0], [-0.1, 1.0, 0.0], [0.0, 0.0, 2.5]])
    np.testing.assert_allclose(tree.I[0], spatial_inertia(2.0, np.array([0.1, 0.2, 0.3]), turned), atol=1e-15)
    np.testing.assert_array_equal(tree.I[0], tree.I[0].T)
    tree = load_urdf(write(hinged('<origin xyz="1 2 3" rpy="0.3 -0.5 0.7"/><axis xyz="0 3 4"/>')))
    R = Rotation.from_euler("xyz", [0.3, -0.5, 0.7]).as_matrix()
    np.testing.assert_allclose(tree.X_tree[0].E, R.T, atol=1e-15)
    np.testing.assert_array_equal(tree.X_tree[0].r, [1, 2, 3])
    assert tree.joints[0].axis == (0.0, 0.6, 0.8)
    assert tree.notes == ()


def test_what_is_lumped_is_a_frame_and_noted(write):
    origin = '<origin xyz="0.1 -0.2 0.3" rpy="0.1 0.2 0.3"/>'
    body = TWO + link("tool") + joint("j", "base", "arm") + joint("mount", "arm", "tool", "fixed", origin)
    tree = load_urdf(write(body))
    assert tree.names == ("arm",)
    assert tree.frames["tool"].link == 0
    np.testing.assert_array_equal(tree.frames["tool"].X.r, [0.1, -0.2, 0.3])
    assert tree.notes == ("1 fixed joint lumped, its link kept as a frame",)


def test_floating_base_gravity_and_locked_joints(write):
    tree = load_urdf(write(TWO + J), base="floating", gravity=(0.0, 0.0, -1.6))
    assert tree.joint_names == ("root_joint", "j")
    assert isinstance(tree.joints[0], Free)
    assert tree.gravity == (0.0, 0.0, -1.6)
    with pytest.raises(ModelError, match=r"robot\.urdf: gravity must be .* Write gravity=\(0, 0, -9\.81\)"):
        load_urdf(write(TWO + J), gravity=9.81)
    path = write(TWO + link("hand") + J + joint("k", "arm", "hand"))
    for locked in (("j",), "j", {"j": 0.0}):
        tree = load_urdf(path, locked=locked)
        assert tree.names == ("hand",)
        assert "locked: j" in tree.notes


def test_what_the_dynamics_do_not_need_is_not_read_and_nothing_is_logged(write, caplog):
    body = (
        '<link name="base"><visual><geometry><mesh filename="no" scale="a"/></geometry></visual></link>'
        + link("arm")
        + joint("j", "base", "arm", more='<axis xyz="0 0 1"/><dynamics damping="x"/><safety_controller/>')
        + '<transmission name="t"><joint name="j"/></transmission><gazebo><sensor:camera name="c"/></gazebo>'
        + "<!-- a comment --><?note an instruction?>"
    )
    with caplog.at_level(logging.DEBUG):
        assert load_urdf(write(body)).names == ("arm",)
        assert load_urdf(write(f"<robot>{TWO}{J}</robot>", whole=True)).name == "robot"
    assert not caplog.records


# Mimic joints

MIMIC = (
    f"{TWO}{link('finger')}{link('fixed_finger')}{J}"
    + joint("follower", "arm", "finger", more='<axis xyz="0 0 1"/><mimic joint="j" multiplier="2"/>')
    + joint("mount", "arm", "fixed_finger", "fixed", '<mimic joint="j"/>')
)


def test_mimic_joints_are_independent_with_one_warning_or_refused_or_locked(write):
    path = write(MIMIC)
    with pytest.warns(NoriWarning, match="mimic joints are taken as independent: follower") as caught:
        tree = load_urdf(path)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert tree.nv == 2
    assert "mimic joints taken as independent: follower" in tree.notes
    with pytest.raises(ModelError, match=r"robot\.urdf: robot 'test' has mimic joints: follower\. Lock them"):
        load_urdf(path, mimic="refuse")
    assert load_urdf(path, mimic="refuse", locked=("follower",)).nv == 1
    with pytest.raises(ModelError, match="'independent', 'coupled' or 'refuse', not 'copy'"):
        load_urdf(path, mimic="copy")


def test_mimic_joints_can_be_coupled(write):
    tree = load_urdf(write(MIMIC.replace('multiplier="2"', 'multiplier="2" offset="0.1"')), mimic="coupled")
    (coupling,) = tree.components
    assert (coupling.joint, coupling.of, coupling.offset) == ("follower", {"j": 2.0}, 0.1)
    (held,) = load_urdf(write(MIMIC), mimic="coupled", locked={"j": 0.4}).components
    assert (held.joint, held.of, held.offset) == ("follower", {}, 0.8)
    assert load_urdf(write(MIMIC), mimic="coupled", locked="follower").components == ()
    with pytest.raises(ModelError, match=r"unknown joint that 'follower' mimics 'jj'.*Did you mean 'j'"):
        load_urdf(write(MIMIC.replace('mimic joint="j"', 'mimic joint="jj"')), mimic="coupled")
    with pytest.raises(ModelError, match="joint 'follower' is coupled with itself"):
        load_urdf(write(MIMIC.replace('mimic joint="j"', 'mimic joint="follower"')), mimic="coupled")


# What the file has beside rigid bodies

GEARED = (
    MIMIC.replace('"arm"/>\n', '"arm"/>')
    .replace('<child link="arm"/>', '<child link="arm"/><dynamics damping="0.5" friction="0.2"/>')
    .replace('<child link="finger"/>', '<child link="finger"/><dynamics damping="0.0"/>')
)
TRANSMISSION = (
    '<transmission name="t"><joint name="{}"/><actuator name="m"><mechanicalReduction>50</mechanicalReduction>{}'
    "</actuator></transmission>"
)


def test_friction_is_left_out_and_noted_unless_asked_for(write):
    path = write(GEARED.replace("<mimic", "<mimicks"))
    tree = load_urdf(path)
    assert tree.components == ()
    assert "friction of 1 joint left out: components=True includes it" in tree.notes
    (friction,) = load_urdf(path, components=True).components
    assert (friction.joints, friction.viscous, friction.coulomb) == ("j", 0.5, 0.2)
    assert load_urdf(path, components=True, locked="j").components == ()
    with pytest.raises(ModelError, match=r"friction of 'j': its viscous is -0.5, and it cannot be negative"):
        load_urdf(write(GEARED.replace("0.5", "-0.5")), components=True)
    with pytest.raises(FileFormatError, match=r"robot\.urdf: joint 'j': its <dynamics> has damping='x'"):
        load_urdf(write(GEARED.replace("0.5", "x")), components=True)


def test_transmissions_with_a_rotor(write):
    drake = TRANSMISSION.format("j", '<drake:rotor_inertia value="2e-5"/>')
    tree = load_urdf(write(GEARED + drake + TRANSMISSION.format("follower", "")), components=True)
    (rotor,) = (c for c in tree.components if c.type == "rotor")
    assert (rotor.joints, rotor.inertia, rotor.gear) == ("j", 2e-5, 50.0)
    assert "transmissions without a rotor inertia left out: follower" in tree.notes
    for inertia, message in (("-1", "cannot be negative"), ("x", "'x' is not a number")):
        wrong = TRANSMISSION.format("j", f"<rotorInertia>{inertia}</rotorInertia>")
        with pytest.raises(FileFormatError, match=message):
            load_urdf(write(GEARED + wrong), components=True)


# Cleaning


QUARTERS = {
    (1, 0): "1.5707963 1.57079633 1.5707963267948972 1.5707963e+00",
    (-1, 0): "-1.57079632679 4.71238898038469",
    (0, -1): "3.14159265359 -3.1415926535897905",
    (0, 1): "6.283185307179586 5.6e-17 -0.0 0",
}
"""Sine and cosine, and angles of which they are."""

OTHERS = "1.5708 3.14159 3.1416 1.570796 0.0000001 1e-11 1.5707965 1.5707963270155092 0.3"


def test_quarter_turns_are_exact_and_other_angles_stay_as_they_are():
    for (s, c), literals in QUARTERS.items():
        for literal in literals.split():
            cleaner = Cleaner()
            expected = [[1, 0, 0], [0, c, -s], [0, s, c]]
            np.testing.assert_array_equal(cleaner.rpy((literal, "0", "0")), expected, err_msg=literal)
            assert cleaner.n_angles == (float(literal) != 0), literal
            assert cleaner.largest_angle <= 1e-7, literal
    for literal in OTHERS.split():
        cleaner, angle = Cleaner(), float(literal)
        R = cleaner.rpy(("0", "0", literal))
        assert (R[1, 0], R[0, 0]) == (math.sin(angle), math.cos(angle)), literal
        assert cleaner.notes() == (), literal


def test_products_of_quarter_turns_are_signed_permutations():
    quarters = [f"{k * math.pi / 2:.7f}" for k in range(-4, 5)]
    for rpy in product(quarters, repeat=3):
        R = Cleaner().rpy(rpy)
        assert set(np.unique(np.abs(R))) == {0.0, 1.0}
        assert not np.signbit(R[R == 0]).any()
        assert np.linalg.det(R) == 1


def test_rounding_is_removed_from_rotations_axes_and_positions():
    cleaner = Cleaner()
    R = cleaner.rpy(("0.3", "-1.5707963267948966", "0.7"))  # gimbal lock: entries that cancel, or add up to one
    assert np.count_nonzero(R) == 5
    assert cleaner.axis(np.array([1e-13, 0.0, -5.0])) == (0.0, 0.0, -1.0)
    np.testing.assert_array_equal(cleaner.position(np.array([1e-17, 0.5, 1e-9])), [0, 0.5, 1e-9])
    assert cleaner.axis(np.array([1.0, 1.0, 1e-9]))[2] > 0
    assert len(cleaner.notes()) == 3
    units = {"1.5707963": 1e-7, "1.570796": 0, "1.5707963e-2": 1e-9, "3": 0, "nan": 0, "x": 0}
    assert {literal: last_unit(literal) for literal in units} == pytest.approx(units)


def test_the_notes_say_what_was_cleaned_and_without_numbers_stay(write):
    more = '<origin rpy="1.5707963 0 3.14159265359" xyz="1e-18 0 1"/><axis xyz="0 1e-14 1"/>'
    tree = load_urdf(write(hinged(more)))
    np.testing.assert_array_equal(tree.X_tree[0].E, [[-1, 0, 0], [0, 0, 1], [0, 1, 0]])
    angles, axis, position = tree.notes
    assert angles == "2 angles taken as exact multiples of pi/2, the largest change 2.7e-08 rad"
    assert axis.startswith("1 axis ")
    assert position.startswith("1 position ")
    tree = load_urdf(write(hinged(more.replace("3.14159265359", "5.6e-17"))), clean=False)
    assert tree.X_tree[0].E[1, 1] == math.cos(1.5707963)
    assert tree.X_tree[0].r[0] == 1e-18
    assert tree.joints[0].axis == (0.0, 1e-14, 1.0)
    assert tree.notes == ()


# Wrong files. Each message names the file, and what is wrong in it.


def inertial(**inertia: str) -> str:
    values = {"ixx": "1", "iyy": "1", "izz": "1"} | inertia
    text = " ".join(f'{key}="{value}"' for key, value in values.items())
    return f'<inertial><mass value="1"/><inertia {text}/></inertial>'


M, F = ModelError, FileFormatError

WRONG = {
    "has a cycle|a -> b -> a|cut one": (M, link("a") + link("b") + joint("ab", "a", "b") + joint("ba", "b", "a")),
    "2 roots|'base'|'lost'|Connect": (M, TWO + link("lost") + J),
    "'hand'|'k'|'m'|one parent": (M, TWO + link("hand") + J + joint("k", "arm", "hand") + joint("m", "base", "hand")),
    "joint 'j'|'amr'|Did you mean 'arm'": (UnknownModelNameError, TWO + joint("j", "base", "amr")),
    "no links": (M, ""),
    "no moving link": (M, link("base")),
    "two links named 'arm'": (M, TWO + link("arm") + J),
    "two joints named 'j'": (M, TWO + link("c") + J + joint("j", "arm", "c")),
    "link 'arm'|-2 kg|zero or positive": (M, heavy(INERTIAL.replace('value="2"', 'value="-2"'))),
    "joint 'j'|'helical'|not supported|revolute": (M, TWO + joint("j", "base", "arm", "helical")),
    "joint 'j'|zero axis": (M, hinged('<axis xyz="0 0 0"/>')),
    "joint 'j'|planar|(1 0 0)": (M, hinged("", "planar")),
    "line 4|link 'arm'|<mass>|value='two'|'two' is not a number": (F, heavy(INERTIAL.replace('="2"', '="two"'))),
    "link 'arm'|<mass> has no value": (F, heavy("<inertial><mass/></inertial>")),
    "link 'arm'|<inertia> has no iyy": (F, heavy('<inertial><mass value="1"/><inertia ixx="1"/></inertial>')),
    "'arm'|izz|not finite": (F, heavy(inertial(izz="nan"))),
    "line 5|joint 'j'|<origin>|'inf' is not finite": (F, hinged('<origin xyz="0 inf 0"/>')),
    "joint 'j'|'1e308' is too large": (F, hinged('<origin xyz="0 1e308 0"/>')),
    "joint 'j'|rpy='0 0'|3 numbers expected, not 2": (F, hinged('<origin rpy="0 0"/>')),
    "joint 'j'|'0,'": (F, hinged('<axis xyz="0, 0, 1"/>')),
    "'j'|<limit>": (F, hinged('<limit lower="nan"/>')),
    "'j'|<child>": (F, TWO + '<joint name="j" type="fixed"><parent link="base"/></joint>'),
    "joint 'j'|has no type": (F, TWO + J.replace('type="revolute"', "")),
    "a <link> has no name": (F, TWO + "<link/>" + J),
    "xacro|Expand it first": (F, '<xacro:macro name="x"/>' + TWO + J),
}
"""What is said, part by part, of what."""


NOT_URDF = {
    "not XML": (F, ""),
    "line 1|not XML": (F, "hello"),
    "line 3|not XML": (F, '<robot name="x">\n<link name="a">\n'),
    "not a URDF|<html>|<robot>": (F, "<html></html>"),
    "not a URDF|load_mjcf": (F, "<mujoco></mujoco>"),
}


def test_wrong_files(write):
    for said, (kind, body) in (WRONG | NOT_URDF).items():
        path = write(body, whole=said in NOT_URDF)
        with pytest.raises(NoriError) as caught:
            load_urdf(path)
        message = str(caught.value)
        assert type(caught.value) is kind, message
        assert message.startswith(str(path))
        assert all(part in message for part in said.split("|")), (said, message)


def test_no_file_and_wrong_options(write, tmp_path):
    with pytest.raises(FileFormatError, match=r"absent\.urdf: there is no such file"):
        load_urdf(tmp_path / "absent.urdf")
    with pytest.raises(FileFormatError, match="cannot be read: Is a directory"):
        load_urdf(tmp_path)
    path = write(TWO + joint("elbow", "base", "arm"))
    with pytest.raises(UnknownModelNameError, match=r"'elbw'.*Did you mean 'elbow'"):
        load_urdf(path, locked=("elbw",))
    with pytest.raises(ModelError, match="joint 'elbow' cannot be locked at nan"):
        load_urdf(path, locked={"elbow": math.nan})
    with pytest.raises(ModelError, match="'fixed' or 'floating', not 'flying'"):
        load_urdf(path, base="flying")
    with pytest.raises(ModelError, match="inertias must be 'as_given', 'nearest' or 'refuse', not 'closest'"):
        load_urdf(path, inertias="closest")


# Entities


def test_external_entities_are_refused_unread(write, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("swordfish")
    head = f'<!DOCTYPE robot [<!ENTITY xxe SYSTEM "{secret.as_uri()}"> <!ENTITY in "x">]>'
    for body in ("<link name='arm'>&xxe;</link>", "<link name='arm&in;'/>", link("arm")):
        text = f'<?xml version="1.0"?>\n{head}\n<robot name="r">{link("base")}{body}{J}</robot>'
        with pytest.raises(FileFormatError, match="declares XML entities") as caught:
            load_urdf(write(text, whole=True))
        assert "swordfish" not in str(caught.value)


def test_a_billion_laughs_are_refused_at_once_and_an_external_dtd_is_not_loaded(write, tmp_path):
    laughs = '<!ENTITY l0 "ha">' + "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    for name in ("arm", "&l9;"):
        text = f'<!DOCTYPE robot [{laughs}]><robot name="r"><link name="{name}">&l9;</link></robot>'
        with pytest.raises(FileFormatError, match=r"entit|not XML"):
            load_urdf(write(text, whole=True))
    (tmp_path / "evil.dtd").write_text('<!ENTITY name "arm">')
    head = f'<!DOCTYPE robot SYSTEM "{(tmp_path / "evil.dtd").as_uri()}">'
    assert load_urdf(write(f'{head}<robot name="r">{TWO}{J}</robot>', whole=True)).names == ("arm",)
    with pytest.raises(FileFormatError):
        load_urdf(write(f'{head}<robot name="r">{link("base")}{link("&name;")}{J}</robot>', whole=True))


def test_a_printed_minus_zero_is_zero(write):
    more = '<origin xyz="-0 -0.0 1" rpy="-0 0 -0.0"/><axis xyz="-0 0 1"/>'
    tree = load_urdf(write(hinged(more)), clean=False)
    numbers = np.hstack([tree.X_tree[0].r, tree.X_tree[0].E.ravel(), tree.joints[0].axis])
    assert not np.signbit(numbers).any()


def test_what_drives_can_do(write):
    for limit, speed, effort in (
        ('velocity="2.5" effort="87"', 2.5, 87.0),
        ('velocity="2.5"', 2.5, math.inf),
        ('velocity="0" effort="-1"', math.inf, math.inf),
        ('velocity="50000" effort="50000"', math.inf, math.inf),
        ('velocity="${speed}" effort="nan"', math.inf, math.inf),
    ):
        tree = load_urdf(write(hinged(f'<limit lower="-1" upper="1" {limit}/>')))
        for each in (tree, tree.replace(name="other"), pickle.loads(pickle.dumps(tree))):
            assert each.drives == {"j": DriveLimits(speed, effort)}, limit
    assert load_urdf(write(MIMIC), mimic="coupled", locked="follower").drives.keys() == {"j"}
