"""Corrected MJCF models: read by us as the robot is, moved by MuJoCo as our equations say, and all else as it was."""

import re

import numpy as np
import pytest

from nori_dyn.components import Friction, Loop, Rotor, Spring
from nori_dyn.descriptions.corrections import by_joint
from nori_dyn.descriptions.mjcf_corrected import check_mjcf, corrected_mjcf, principal
from nori_dyn.errors import FileFormatError, ModelError
from nori_dyn.model.joints import quaternion_rotation
from tests.cassie import mjcf_model
from tests.corrected import corrected, difference, heavier, without
from tests.corrected import loaded as load
from tests.covering import covering
from tests.oracles import newton_euler
from tests.robots import mujoco_inverse, mujoco_model
from tests.tolerances import RECURSION, assert_close
from tests.trees import random_state

SAME = 1e-12
INERTIAL = re.compile(rb"\s*<inertial\b[^>]*/>")
OF_JOINTS = re.compile(rb"\s(?:damping|frictionloss|armature|stiffness|springref|springdamper)=\"[^\"]*\"")

MODEL = """<mujoco model="two">
  <compiler angle="degree"/> <!-- MORE -->
  <default>
    <joint damping="0.1"/>
    <default class="stiff"><joint stiffness="3" springref="30"/></default>
  </default>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="table" pos="1 0 0"><geom size=".1"/></body>
    <body name="base" pos="0 0 1">
      <inertial pos="0 0 0" mass="3" fullinertia="0.02 0.03 0.04 0.001 0.002 0.003"/>
      <geom size=".1"/>
      <body name="upper">
        <joint name="yaw" axis="0 0 1"/>
        <joint name="shoulder" axis="0 1 0" pos=".05 0 .1" class="stiff" armature="0.01"/>
        <inertial pos="0.1 0 .1" mass="1.5" diaginertia="0.01 0.02 0.02" euler="10 20 30"/>
        <geom type="box" size=".1 .2 .3"/>
        <body pos="0 0 .2" euler="0 90 20"><geom type="box" size=".03 .02 .01"/></body>
        <frame pos="0 0 .3">
          <body name="lower">
            <joint axis="0 1 0" type="slide" frictionloss=".3"/>
            <geom type="box" size=".1 .02 .03" pos=".01 0 0" euler="0 10 0"/>
          </body>
        </frame>
        <body name="ball" pos="0 .1 0"><joint type="ball" pos="0 .02 0"/><geom size=".05" pos="0 .1 0"/></body>
      </body>
    </body>
    <body name="free" pos="0 2 1"><freejoint/><geom type="box" size=".05 .04 .03" pos=".01 .02 0"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def write(tmp_path):
    def write(old: str = "MORE", new: str = ""):
        path = tmp_path / "model.xml"
        assert old in MODEL
        path.write_text(MODEL.replace(old, new))
        return path

    return write


def again(tree, source, **options):
    """The robot of the corrected file, the path of that, and the notes."""
    found = corrected_mjcf(tree, source)
    out = source.with_name("out.xml")
    out.write_bytes(found.content)
    check_mjcf(tree, out, source)
    return load(out, **options), out, found.notes


def assert_moves_alike(tree, path):
    """Assert that MuJoCo's inverse dynamics of bare bodies are those of Newton's and Euler's equations of a tree."""
    bare, fx = tree.replace(components=()), np.zeros((tree.n_links, 6))
    state = (*random_state(bare, 0)[:3], fx)
    assert_close(newton_euler(bare, *state).tau, mujoco_inverse(bare, mujoco_model(path), *state), RECURSION)


def assert_read_back(tree, path, out):
    """Assert that a corrected file is of the given robot, and that all else in it is as it was."""
    back = load(out)
    assert difference(back.I, tree.I) < SAME
    for kind in (Friction, Rotor, Spring):
        theirs = by_joint(back, kind)
        for joint, sums in by_joint(tree, kind).items():
            if any(sums.values()):
                assert theirs[joint] == pytest.approx(sums, rel=SAME, abs=0)
    assert_moves_alike(tree, out)
    assert without(out.read_bytes(), INERTIAL, OF_JOINTS) == without(path.read_bytes(), INERTIAL, OF_JOINTS)


def test_models_are_read_back_as_they_are(write):
    path = write()
    for seed in range(3):
        tree = corrected(load(path), seed, share=0.8)
        _, out, notes = again(tree, path)
        assert_read_back(tree, path, out)
        assert notes[0].startswith("an <inertial> instead of the masses of geoms: '")


@covering(strength=1, name=("cassie.xml", "h1.xml", "leap_hand.xml", "shadow_hand.xml"), share=(1.0, 0.3))
def test_models_of_others(name, share, tmp_path):
    path = mjcf_model(name)
    before = load(path)
    tree = corrected(before, seed=4, share=share)
    (tmp_path / "out.xml").write_bytes(corrected_mjcf(tree, path).content)
    check_mjcf(tree, tmp_path / "out.xml", path)
    assert_read_back(tree, path, tmp_path / "out.xml")
    assert corrected_mjcf(before, path).content == path.read_bytes()


def test_what_did_not_change_is_not_touched_a_floating_base_and_locked_joints(write):
    path = write()
    for options in ({}, {"clean": False}, {"components": False}, {"locked": {"yaw": 0.3}}, {"kept": ["body4"]}):
        assert corrected_mjcf(load(path, **options), path).content == path.read_bytes()  # as it is
    path.write_text(re.sub(r'    <body name="free".*\n', "", path.read_text()))
    options = {"base": "floating", "locked": {"shoulder": 0.4}, "kept": ["body4"]}
    tree = load(path, **options)
    assert tree.joint_names[0] == "root_joint"
    new = corrected(tree, seed=2, joints=False)
    assert difference(again(new, path, **options)[0].I, new.I) < SAME


def test_springs(write):
    path = write()
    parts = [
        Spring(joints="shoulder", stiffness=4.0, reference=0.5, preload=0.2),
        Spring(joints="joint2", stiffness=2.0, reference=0.1),
        Spring(joints="yaw", stiffness=0.0, preload=0.7),
    ]
    tree = load(path).replace(components=parts)
    back, out, notes = again(tree, path)
    found = by_joint(back, Spring)
    assert found["shoulder"] == pytest.approx({"stiffness": 4.0, "preload": 2.2}, rel=SAME)
    assert found["joint2"] == pytest.approx({"stiffness": 2.0, "preload": 0.2}, rel=SAME)
    assert 'springref="0.1"' in out.read_text()  # metres
    assert "MJCF has no place for the spring without stiffness of 'yaw': a file of components has" in notes
    radian = write('angle="degree"', 'angle="radian"')
    assert 'springref="0.55"' in corrected_mjcf(load(radian).replace(components=parts), radian).content.decode()


def test_springs_that_say_their_time(write):
    path = write('<joint stiffness="3" springref="30"/>', '<joint springdamper=".2 1"/>')
    tree = load(path).replace(components=[Spring(joints="shoulder", stiffness=0.5)])
    with pytest.raises(ModelError, match=r"MuJoCo reads another stiffness of the joint 'shoulder'.*springdamper"):
        again(tree, path)
    path = write('type="slide" frictionloss=".3"', 'type="slide" springdamper=".2 1"')
    tree = load(path)
    before = by_joint(tree, Friction)["joint2"]["viscous"]
    tree = tree.replace(components=[Spring(joints="joint2", stiffness=5.0)])
    back, _, _ = again(tree, path)
    assert by_joint(back, Spring)["joint2"]["stiffness"] == 5.0
    assert by_joint(back, Friction)["joint2"]["viscous"] == pytest.approx(before, rel=SAME)


def test_geoms_that_overrule_inertials_no_longer_do_and_a_link_may_have_all_of_its_body(write):
    path = write('angle="degree"', 'angle="degree" inertiafromgeom="true"')
    before = load(path)
    tree = heavier(before, "lower", 1.1)
    back, out, notes = again(tree, path)
    assert difference(back.I, tree.I) < SAME
    assert 'inertiafromgeom="auto"' in out.read_text()
    assert_moves_alike(tree, out)
    assert notes[0] == "an <inertial> instead of the masses of geoms: 'lower'"
    assert corrected_mjcf(before, path).content == path.read_bytes()
    path = write()
    tree = heavier(load(path), "upper", 1e-3)  # less than what is fixed to it has
    back, out, notes = again(tree, path)
    assert difference(back.I, tree.I) < SAME
    assert notes[0] == "'upper' has the inertia of all that is fixed to it; 'body4' no longer any"
    assert_moves_alike(tree, out)


def test_components_that_are_in_no_model(write):
    path = write()
    tree = load(path)
    parts = [*tree.components, Rotor(joints="joint4", inertia=0.3), Friction(joints="joint4", viscous=0.5)]
    back, _, notes = again(tree.replace(components=parts), path)  # of a free joint
    assert back.components == tree.components
    assert notes == tuple(
        f"MJCF has no place for the {what} of 'joint4': a file of components has" for what in ("friction", "rotor")
    )
    loop = Loop(name="bar", frames=["ball", "free"], constrains="point")
    found = corrected_mjcf(tree.replace(components=[*tree.components, loop]), path)
    assert found.notes == ("the model has no place for the loop of 'bar': a file of components has",)
    held = '<equality><connect name="bar" body1="ball" body2="free" anchor="0 0 0"/></equality></mujoco>'
    path = write("</mujoco>", held)
    assert corrected_mjcf(load(path), path).notes == ()
    assert corrected_mjcf(load(path, components=False), path).notes == (
        "the friction of 'yaw', 'shoulder', 'joint2', 'joint3' is left as the file has it: the robot has none there",
        "the rotor of 'shoulder' is left as the file has it: the robot has none there",
        "the spring of 'shoulder' is left as the file has it: the robot has none there",
    )


COPIES = '<replicate count="2" offset="0 0 1"><body name="lower"><joint/><geom size=".1"/></body></replicate>'


@pytest.mark.parametrize("elsewhere", ['<include file="part.xml"/>', COPIES], ids=["included", "replicated"])
def test_bodies_that_are_written_elsewhere(write, tmp_path, elsewhere):
    (tmp_path / "part.xml").write_text('<mujoco><body name="inner"><joint/><geom size=".1"/></body></mujoco>')
    path = write('<frame pos="0 0 .3">', f'{elsewhere}<frame pos="0 0 .3">')
    path.write_text(path.read_text().replace('<body name="lower">\n', '<body name="last">\n'))
    before = load(path)
    outer = heavier(before, "last", 1.2)
    assert difference(again(outer, path)[0].I, outer.I) < SAME
    inner = before.I.copy()
    inner[[k for k, name in enumerate(before.names) if name.startswith(("inner", "lower"))]] *= 1.2
    with pytest.raises(FileFormatError, match=r"model\.xml: its body '(inner|lower0)' is not written out in it"):
        corrected_mjcf(before.replace(I=inner), path)


def test_what_the_compiler_changes_again_or_refuses_is_noticed(write):
    for setting in ('settotalmass="5"', 'boundmass="1.4"'):
        path = write('angle="degree"', f'angle="degree" {setting}')
        tree = load(path)
        with pytest.raises(ModelError, match=r"model\.xml: corrected, MuJoCo makes another inertia .*settotalmass"):
            again(tree.replace(I=tree.I * 0.9), path)
    path = write()
    tree = load(path)
    I = tree.I.copy()
    I[tree.link("upper/yaw")] = I[tree.link("lower")]
    with pytest.raises(ModelError, match="'upper/yaw' is between two joints of one body"):
        corrected_mjcf(tree.replace(I=I), path)
    I = tree.I.copy()
    I[tree.link("lower"), :3, :3] += np.diag([1.0, 0, 0])
    with pytest.raises(ModelError, match=r"model\.xml: corrected, MuJoCo refuses it: .*inertia must satisfy"):
        again(tree.replace(I=I), path)


def test_principal_moments_are_of_the_inertia():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(4, 3)) * [1, 1e-9 if seed % 2 else 1, 1e-3]
        I = sum(p @ p * np.eye(3) - np.outer(p, p) for p in points) * 10.0 ** -rng.integers(0, 9)
        moments, quaternion = principal(I)
        R = quaternion_rotation(np.roll(quaternion, -1)).T
        assert np.abs(R @ np.diag(moments) @ R.T - I).max() <= 1e-15 * np.abs(I).max() * 10
        assert 2 * moments.max() <= moments.sum()
    moments, quaternion = principal(np.diag([3.0, 1.0, 2.5]))  # a body along its axes keeps them
    np.testing.assert_array_equal(moments, [3.0, 1.0, 2.5])
    np.testing.assert_array_equal(quaternion, [1, 0, 0, 0])
