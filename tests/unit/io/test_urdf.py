"""URDF files written here: what is read, what is cleaned, and what each wrong file is told."""

from __future__ import annotations

import logging
import math
import pickle
import warnings

import numpy as np
import pytest

from nori_dyn.algebra.spatial import spatial_inertia
from nori_dyn.errors import FileFormatError, ModelError, NoriError, NoriWarning, UnknownModelNameError
from nori_dyn.io.urdf import load_urdf
from nori_dyn.io.urdf_document import UrdfInertial, UrdfJoint, UrdfLink, UrdfMimic, UrdfOrigin, UrdfRobot, read_urdf
from nori_dyn.model.cleaning import Cleaner, last_unit
from nori_dyn.model.drives import DriveLimits
from nori_dyn.model.joints import Continuous, Free, Planar, Prismatic, Revolute

INERTIAL = '<inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


def link(name: str, inertial: str = INERTIAL) -> str:
    return f'<link name="{name}">{inertial}</link>\n'


def joint(name: str, parent: str, child: str, kind: str = "revolute", more: str = '<axis xyz="0 0 1"/>') -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{more}</joint>\n'


TWO = link("base") + link("arm")


@pytest.fixture
def write(tmp_path):
    def write(body: str, whole: bool = False):
        path = tmp_path / "robot.urdf"
        path.write_text(body if whole else f'<?xml version="1.0"?>\n<robot name="test">\n{body}</robot>\n')
        return path

    return write


# What is read


def test_every_joint_type(write):
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


def test_defaults_are_those_of_the_specification(write):
    tree = load_urdf(write(link("base") + link("arm", "") + joint("j", "base", "arm", more="")))
    assert tree.joints[0].axis == (1.0, 0.0, 0.0)
    assert tree.joints[0].limits == (-math.inf, math.inf)
    assert not tree.I.any()
    np.testing.assert_array_equal(tree.X_tree[0].E, np.eye(3))
    assert tree.gravity == (0.0, 0.0, -9.81)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ('lower="-1.5" upper="2"', (-1.5, 2.0)),
        ('upper="2" effort="3" velocity="x"', (-math.inf, 2.0)),
        ('lower="-1e16" upper="3.4e38"', (-math.inf, math.inf)),
        ('lower="-inf" upper="inf"', (-math.inf, math.inf)),
    ],
)
def test_limits(write, limit, expected):
    more = f'<axis xyz="0 0 1"/><limit {limit}/>'
    assert load_urdf(write(TWO + joint("j", "base", "arm", more=more))).joints[0].limits == expected


def test_a_continuous_joint_has_no_limits(write):
    more = '<axis xyz="0 0 1"/><limit lower="0" upper="0" effort="1" velocity="1"/>'
    tree = load_urdf(write(TWO + joint("j", "base", "arm", "continuous", more)))
    assert tree.joints[0].limits == (-math.inf, math.inf)


def test_the_inertia_is_turned_into_link_axes(write):
    inertial = (
        '<inertial><origin xyz="0.1 0.2 0.3" rpy="0 0 1.5707963267948966"/><mass value="2"/>'
        '<inertia ixx="1" ixy="0.1" ixz="0" iyy="2" iyz="0" izz="2.5"/></inertial>'
    )
    tree = load_urdf(write(link("base") + link("arm", inertial) + joint("j", "base", "arm")))
    turned = np.array([[2.0, -0.1, 0.0], [-0.1, 1.0, 0.0], [0.0, 0.0, 2.5]])
    np.testing.assert_allclose(tree.I[0], spatial_inertia(2.0, np.array([0.1, 0.2, 0.3]), turned), atol=1e-15)
    np.testing.assert_array_equal(tree.I[0], tree.I[0].T)


def test_the_origin_of_a_joint(write):
    r, p, y = 0.3, -0.5, 0.7
    more = f'<origin xyz="1 2 3" rpy="{r} {p} {y}"/><axis xyz="0 3 4"/>'
    tree = load_urdf(write(TWO + joint("j", "base", "arm", more=more)))
    from scipy.spatial.transform import Rotation

    R = Rotation.from_euler("xyz", [r, p, y]).as_matrix()
    np.testing.assert_allclose(tree.X_tree[0].E, R.T, atol=1e-15)
    np.testing.assert_array_equal(tree.X_tree[0].r, [1, 2, 3])
    assert tree.joints[0].axis == (0.0, 0.6, 0.8)
    assert tree.notes == ()


def test_lumping_adds_mass_and_keeps_the_structure_of_a_rigid_body(write):
    origin = '<origin xyz="0.1 -0.2 0.3" rpy="0.1 0.2 0.3"/>'
    body = TWO + link("tool") + joint("j", "base", "arm") + joint("mount", "arm", "tool", "fixed", origin)
    tree = load_urdf(write(body))
    assert tree.names == ("arm",)
    assert tree.frames["tool"].link == 0
    np.testing.assert_array_equal(tree.frames["tool"].X.r, [0.1, -0.2, 0.3])
    I = tree.I[0]
    np.testing.assert_array_equal(I, I.T)
    np.testing.assert_array_equal(I[3:, 3:], 4 * np.eye(3))
    assert not I[range(3), range(3, 6)].any()
    assert tree.notes == ("1 fixed joint lumped, its link kept as a frame",)


def test_floating_base_and_gravity(write):
    tree = load_urdf(write(TWO + joint("j", "base", "arm")), base="floating", gravity=(0.0, 0.0, -1.6))
    assert tree.joint_names == ("root_joint", "j")
    assert isinstance(tree.joints[0], Free)
    assert tree.gravity == (0.0, 0.0, -1.6)


def test_gravity_is_a_vector(write):
    with pytest.raises(ModelError, match=r"robot\.urdf: gravity must be .* Write gravity=\(0, 0, -9\.81\)"):
        load_urdf(write(TWO + joint("j", "base", "arm")), gravity=9.81)


@pytest.mark.parametrize("locked", [("j",), "j", {"j": 0.0}])
def test_locked_joints_become_frames(write, locked):
    body = TWO + link("hand") + joint("j", "base", "arm") + joint("k", "arm", "hand")
    tree = load_urdf(write(body), locked=locked)
    assert tree.names == ("hand",)
    assert "locked: j" in tree.notes


def test_a_name_is_not_needed(write):
    assert load_urdf(write(f"<robot>{TWO}{joint('j', 'base', 'arm')}</robot>", whole=True)).name == "robot"


def test_what_the_dynamics_do_not_need_is_not_read(write):
    body = (
        '<link name="base"><visual><geometry><mesh filename="no" scale="a"/></geometry></visual></link>'
        + link("arm")
        + joint("j", "base", "arm", more='<axis xyz="0 0 1"/><dynamics damping="x"/><safety_controller/>')
        + '<transmission name="t"><joint name="j"/></transmission><gazebo><sensor:camera name="c"/></gazebo>'
        + "<!-- a comment --><?note an instruction?>"
    )
    assert load_urdf(write(body)).names == ("arm",)


def test_nothing_is_logged(write, caplog):
    with caplog.at_level(logging.DEBUG):
        load_urdf(write(TWO + joint("j", "base", "arm")))
    assert not caplog.records


# Mimic joints

MIMIC = (
    TWO
    + link("finger")
    + link("fixed_finger")
    + joint("j", "base", "arm")
    + joint("follower", "arm", "finger", more='<axis xyz="0 0 1"/><mimic joint="j" multiplier="2"/>')
    + joint("mount", "arm", "fixed_finger", "fixed", '<mimic joint="j"/>')
)


def test_mimic_joints_are_independent_with_one_warning(write):
    with pytest.warns(NoriWarning, match="mimic joints are followed as independent ones: follower") as caught:
        tree = load_urdf(write(MIMIC))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert tree.nv == 2
    assert "mimic joints followed as independent: follower" in tree.notes


def test_mimic_joints_can_be_refused_or_locked(write):
    with pytest.raises(ModelError, match=r"robot\.urdf: robot 'test' has mimic joints: follower\. Lock them"):
        load_urdf(write(MIMIC), mimic="refuse")
    assert load_urdf(write(MIMIC), mimic="refuse", locked=("follower",)).nv == 1
    with pytest.raises(ModelError, match="'independent', 'coupled' or 'refuse', not 'copy'"):
        load_urdf(write(MIMIC), mimic="copy")


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
    assert "friction of 1 joint left out: components=True takes it in" in tree.notes
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
    assert "transmissions that tell no inertia of a rotor left out: follower" in tree.notes
    for inertia, message in (("-1", "cannot be negative"), ("x", "'x' is not a number")):
        wrong = TRANSMISSION.format("j", f"<rotorInertia>{inertia}</rotorInertia>")
        with pytest.raises(FileFormatError, match=message):
            load_urdf(write(GEARED + wrong), components=True)


# Cleaning


@pytest.mark.parametrize(
    ("literal", "sine_cosine"),
    [
        ("1.5707963", (1, 0)),
        ("1.57079633", (1, 0)),
        ("-1.57079632679", (-1, 0)),
        ("3.14159265359", (0, -1)),
        ("1.5707963267948972", (1, 0)),
        ("-3.1415926535897905", (0, -1)),
        ("4.71238898038469", (-1, 0)),
        ("6.283185307179586", (0, 1)),
        ("1.5707963e+00", (1, 0)),
        ("5.6e-17", (0, 1)),
        ("-0.0", (0, 1)),
        ("0", (0, 1)),
    ],
)
def test_quarter_turns_are_exact(literal, sine_cosine):
    cleaner = Cleaner()
    s, c = sine_cosine
    np.testing.assert_array_equal(cleaner.rpy((literal, "0", "0")), [[1, 0, 0], [0, c, -s], [0, s, c]])
    assert cleaner.n_angles == (float(literal) != 0)
    assert cleaner.largest_angle <= 1e-7


@pytest.mark.parametrize(
    "literal",
    [
        "1.5708",
        "3.14159",
        "3.1416",
        "1.570796",
        "0.0000001",
        "1e-11",
        "1.5707965",
        "1.5707963270155092",
        "0.3",
    ],
)
def test_other_angles_stay_as_they_are(literal):
    cleaner = Cleaner()
    angle = float(literal)
    R = cleaner.rpy(("0", "0", literal))
    assert (R[1, 0], R[0, 0]) == (math.sin(angle), math.cos(angle))
    assert cleaner.notes() == ()


def test_products_of_quarter_turns_are_signed_permutations():
    quarters = [f"{k * math.pi / 2:.7f}" for k in range(-4, 5)]
    for roll in quarters:
        for pitch in quarters:
            for yaw in quarters:
                R = Cleaner().rpy((roll, pitch, yaw))
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


def test_the_notes_say_what_was_cleaned(write):
    more = '<origin rpy="1.5707963 0 3.14159265359" xyz="1e-18 0 1"/><axis xyz="0 1e-14 1"/>'
    tree = load_urdf(write(TWO + joint("j", "base", "arm", more=more)))
    np.testing.assert_array_equal(tree.X_tree[0].E, [[-1, 0, 0], [0, 0, 1], [0, 1, 0]])
    angles, axis, position = tree.notes
    assert angles == "2 angles taken as exact multiples of pi/2, the largest change 2.7e-08 rad"
    assert axis.startswith("1 axis ")
    assert position.startswith("1 position ")


def test_without_cleaning_numbers_stay(write):
    more = '<origin rpy="1.5707963 0 5.6e-17" xyz="1e-18 0 1"/><axis xyz="0 1e-14 1"/>'
    tree = load_urdf(write(TWO + joint("j", "base", "arm", more=more)), clean=False)
    assert tree.X_tree[0].E[1, 1] == math.cos(1.5707963)
    assert tree.X_tree[0].r[0] == 1e-18
    assert tree.joints[0].axis == (0.0, 1e-14, 1.0)
    assert tree.notes == ()


@pytest.mark.parametrize(
    ("literal", "unit"),
    [("1.5707963", 1e-7), ("1.570796", 0), ("1.5707963e-2", 1e-9), ("3", 0), ("nan", 0), ("x", 0)],
)
def test_last_unit(literal, unit):
    assert last_unit(literal) == pytest.approx(unit)


# Wrong files. Each message names the file, and what is wrong in it.

J = joint("j", "base", "arm")


def inertial(**inertia: str) -> str:
    values = {"ixx": "1", "iyy": "1", "izz": "1"} | inertia
    text = " ".join(f'{key}="{value}"' for key, value in values.items())
    return f'<inertial><mass value="1"/><inertia {text}/></inertial>'


WRONG = {
    "cycle": (
        link("a") + link("b") + joint("ab", "a", "b") + joint("ba", "b", "a"),
        ModelError,
        ["has a cycle", "a -> b -> a", "cut one"],
    ),
    "two roots": (TWO + link("lost") + J, ModelError, ["2 roots", "'base'", "'lost'", "Connect"]),
    "two parents": (
        TWO + link("hand") + J + joint("k", "arm", "hand") + joint("m", "base", "hand"),
        ModelError,
        ["'hand'", "'k'", "'m'", "one parent"],
    ),
    "missing link": (
        TWO + joint("j", "base", "amr"),
        UnknownModelNameError,
        ["joint 'j'", "'amr'", "Did you mean 'arm'"],
    ),
    "no links": ("", ModelError, ["no links"]),
    "no moving link": (link("base"), ModelError, ["no moving link"]),
    "two links of a name": (TWO + link("arm") + J, ModelError, ["two links named 'arm'"]),
    "two joints of a name": (
        TWO + link("c") + J + joint("j", "arm", "c"),
        ModelError,
        ["two joints named 'j'"],
    ),
    "negative mass": (
        link("base") + link("arm", INERTIAL.replace('value="2"', 'value="-2"')) + J,
        ModelError,
        ["link 'arm'", "-2 kg", "zero or positive"],
    ),
    "unknown joint type": (
        TWO + joint("j", "base", "arm", "helical"),
        ModelError,
        ["joint 'j'", "'helical'", "not supported", "revolute"],
    ),
    "zero axis": (
        TWO + joint("j", "base", "arm", more='<axis xyz="0 0 0"/>'),
        ModelError,
        ["joint 'j'", "zero axis"],
    ),
    "planar about x": (
        TWO + joint("j", "base", "arm", "planar", ""),
        ModelError,
        ["joint 'j'", "planar", "(1 0 0)"],
    ),
    "mass not a number": (
        link("base") + link("arm", INERTIAL.replace('value="2"', 'value="two"')) + J,
        FileFormatError,
        ["line 4", "link 'arm'", "<mass>", "value='two'", "'two' is not a number"],
    ),
    "mass missing": (
        link("base") + link("arm", "<inertial><mass/></inertial>") + J,
        FileFormatError,
        ["link 'arm'", "<mass> has no value"],
    ),
    "inertia missing": (
        link("base") + link("arm", '<inertial><mass value="1"/><inertia ixx="1"/></inertial>') + J,
        FileFormatError,
        ["link 'arm'", "<inertia> has no iyy"],
    ),
    "NaN inertia": (
        link("base") + link("arm", inertial(izz="nan")) + J,
        FileFormatError,
        ["'arm'", "izz", "not finite"],
    ),
    "infinite origin": (
        TWO + joint("j", "base", "arm", more='<origin xyz="0 inf 0"/>'),
        FileFormatError,
        ["line 5", "joint 'j'", "<origin>", "'inf' is not finite"],
    ),
    "overflow": (
        TWO + joint("j", "base", "arm", more='<origin xyz="0 1e308 0"/>'),
        FileFormatError,
        ["joint 'j'", "'1e308' is too large"],
    ),
    "two numbers": (
        TWO + joint("j", "base", "arm", more='<origin rpy="0 0"/>'),
        FileFormatError,
        ["joint 'j'", "rpy='0 0'", "3 numbers expected, not 2"],
    ),
    "comma": (
        TWO + joint("j", "base", "arm", more='<axis xyz="0, 0, 1"/>'),
        FileFormatError,
        ["joint 'j'", "'0,'"],
    ),
    "NaN limit": (
        TWO + joint("j", "base", "arm", more='<limit lower="nan"/>'),
        FileFormatError,
        ["'j'", "<limit>"],
    ),
    "no child": (
        TWO + '<joint name="j" type="fixed"><parent link="base"/></joint>',
        FileFormatError,
        ["'j'", "<child>"],
    ),
    "no type": (TWO + J.replace('type="revolute"', ""), FileFormatError, ["joint 'j'", "has no type"]),
    "no name": (TWO + "<link/>" + J, FileFormatError, ["a <link> has no name"]),
    "xacro": ('<xacro:macro name="x"/>' + TWO + J, FileFormatError, ["xacro", "Expand it first"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files(write, case):
    body, kind, fragments = WRONG[case]
    path = write(body)
    with pytest.raises(NoriError) as caught:
        load_urdf(path)
    assert type(caught.value) is kind
    message = str(caught.value)
    assert message.startswith(str(path))
    for fragment in fragments:
        assert fragment in message


NOT_URDF = {
    "empty": ("", ["not XML"]),
    "text": ("hello", ["line 1", "not XML"]),
    "truncated": ('<robot name="x">\n<link name="a">\n', ["line 3", "not XML"]),
    "html": ("<html></html>", ["not a URDF", "<html>", "<robot>"]),
    "mjcf": ("<mujoco></mujoco>", ["not a URDF", "load_mjcf"]),
}


@pytest.mark.parametrize("case", NOT_URDF)
def test_other_files(write, case):
    text, fragments = NOT_URDF[case]
    path = write(text, whole=True)
    with pytest.raises(FileFormatError) as caught:
        load_urdf(path)
    for fragment in (str(path), *fragments):
        assert fragment in str(caught.value)


def test_no_file(tmp_path):
    with pytest.raises(FileFormatError, match=r"no such file: .*absent\.urdf"):
        load_urdf(tmp_path / "absent.urdf")
    with pytest.raises(FileFormatError, match="is not a file"):
        load_urdf(tmp_path)


def test_unknown_joint_to_lock(write):
    with pytest.raises(UnknownModelNameError, match=r"'elbw'.*Did you mean 'elbow'"):
        load_urdf(write(TWO + joint("elbow", "base", "arm")), locked=("elbw",))
    with pytest.raises(ModelError, match="joint 'elbow' cannot be locked at nan"):
        load_urdf(write(TWO + joint("elbow", "base", "arm")), locked={"elbow": math.nan})


def test_unknown_base(write):
    with pytest.raises(ModelError, match="'fixed' or 'floating', not 'flying'"):
        load_urdf(write(TWO + J), base="flying")


@pytest.mark.parametrize(("moment", "shown"), [("3", "1, 1, 3"), ("-1", "-1, 1, 1")])
def test_an_inertia_that_no_mass_has_warns_is_mended_or_refused(write, moment, shown):
    path = write(link("base") + link("arm", inertial(ixx="1", iyy="1", izz=moment)) + J)
    said = rf"robot\.urdf: no distribution of mass has .* 'arm' \({shown} kg m\^2\)"
    with pytest.warns(NoriWarning, match=rf"{said}.* Correct them, or load with inertias='nearest'") as caught:
        given = load_urdf(path)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert given.I[0][2, 2] == float(moment)
    for options in ({"strict": True}, {"inertias": "refuse"}):
        with pytest.raises(ModelError, match=said):
            load_urdf(path, **options)
    nearest = load_urdf(path, inertias="nearest")
    assert given.notes != nearest.notes
    assert shown in " ".join(nearest.notes)
    with pytest.raises(ModelError, match="strict refuses the inertias that 'nearest' would mend"):
        load_urdf(path, inertias="nearest", strict=True)
    with pytest.raises(ModelError, match="inertias must be 'as_given', 'nearest' or 'refuse', not 'closest'"):
        load_urdf(path, inertias="closest")


def test_the_rounding_of_a_point_mass_is_not_indefinite(write):
    arm = inertial(ixx="0", iyy="0", izz="0", ixz="2.4e-35")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_urdf(write(link("base") + link("arm", arm) + J)).names == ("arm",)


# Entities


@pytest.mark.parametrize("place", ["element", "attribute", "unused"])
def test_external_entities_are_refused_unread(write, tmp_path, place):
    secret = tmp_path / "secret.txt"
    secret.write_text("swordfish")
    text = {
        "element": "<link name='arm'>&xxe;</link>",
        "attribute": "<link name='arm&in;'/>",
        "unused": link("arm"),
    }
    path = write(
        f'<?xml version="1.0"?>\n<!DOCTYPE robot [<!ENTITY xxe SYSTEM "{secret.as_uri()}"> <!ENTITY in "x">]>\n'
        f'<robot name="r">{link("base")}{text[place]}{J}</robot>',
        whole=True,
    )
    with pytest.raises(FileFormatError, match="declares XML entities") as caught:
        load_urdf(path)
    assert "swordfish" not in str(caught.value)


@pytest.mark.parametrize("name", ["arm", "&l9;"])
def test_a_billion_laughs_are_refused_at_once(write, name):
    laughs = '<!ENTITY l0 "ha">' + "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    body = f'<link name="{name}">&l9;</link>'
    with pytest.raises(FileFormatError, match=r"entit|not XML"):
        load_urdf(write(f'<!DOCTYPE robot [{laughs}]><robot name="r">{body}</robot>', whole=True))


def test_an_external_dtd_is_not_loaded(write, tmp_path):
    (tmp_path / "evil.dtd").write_text('<!ENTITY name "arm">')
    head = f'<!DOCTYPE robot SYSTEM "{(tmp_path / "evil.dtd").as_uri()}">'
    assert load_urdf(write(f'{head}<robot name="r">{TWO}{J}</robot>', whole=True)).names == ("arm",)
    with pytest.raises(FileFormatError):
        load_urdf(write(f'{head}<robot name="r">{link("base")}{link("&name;")}{J}</robot>', whole=True))


def test_no_reader_is_imported_with_the_package():
    import subprocess
    import sys

    code = "import sys, nori_dyn, nori_dyn.io.urdf, nori_dyn.io.mjcf; print({'mujoco', 'lxml'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_document_is_what_the_file_says(write):
    inertial = '<inertial><origin xyz="1 2 3"/><mass value="2"/><inertia ixx="1" ixz="-.1" iyy="2" izz="3"/></inertial>'
    more = '<origin rpy="1.50 0 -0"/><limit upper="2"/><mimic joint="k" multiplier="3"/>'
    robot = read_urdf(write(link("base", "") + link("arm", inertial) + joint("j", "base", "arm", more=more)))
    assert robot == UrdfRobot(
        "test",
        (
            UrdfLink("base", None),
            UrdfLink("arm", UrdfInertial(UrdfOrigin((1, 2, 3), ("0", "0", "0")), 2, (1, 0, -0.1, 2, 0, 3))),
        ),
        (
            UrdfJoint(
                name="j",
                type="revolute",
                parent="base",
                child="arm",
                origin=UrdfOrigin((0, 0, 0), ("1.50", "0", "-0")),
                axis=(1, 0, 0),
                lower=None,
                upper=2,
                mimic=UrdfMimic("k", multiplier=3),
            ),
        ),
    )


def test_a_printed_minus_zero_is_zero(write):
    more = '<origin xyz="-0 -0.0 1" rpy="-0 0 -0.0"/><axis xyz="-0 0 1"/>'
    tree = load_urdf(write(TWO + joint("j", "base", "arm", more=more)), clean=False)
    numbers = np.hstack([tree.X_tree[0].r, tree.X_tree[0].E.ravel(), tree.joints[0].axis])
    assert not np.signbit(numbers).any()


@pytest.mark.parametrize(
    ("limit", "speed", "effort"),
    [
        ('velocity="2.5" effort="87"', 2.5, 87.0),
        ('velocity="2.5"', 2.5, math.inf),
        ('velocity="0" effort="-1"', math.inf, math.inf),
        ('velocity="50000" effort="50000"', math.inf, math.inf),
        ('velocity="${speed}" effort="nan"', math.inf, math.inf),
    ],
)
def test_what_drives_can_do(write, limit, speed, effort):
    tree = load_urdf(write(TWO + joint("j", "base", "arm", more=f'<limit lower="-1" upper="1" {limit}/>')))
    assert tree.drives == {"j": DriveLimits(speed, effort)}
    assert tree.replace(name="other").drives == tree.drives
    assert pickle.loads(pickle.dumps(tree)).drives == tree.drives


def test_drives_of_locked_joints_are_left_out(write):
    assert load_urdf(write(MIMIC), mimic="coupled", locked="follower").drives.keys() == {"j"}
