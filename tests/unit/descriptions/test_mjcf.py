"""MJCF files written here, against MuJoCo's own kinematics and inverse dynamics."""

import sys

import numpy as np
import pytest

from nori_dyn.descriptions.mjcf import load_mjcf
from nori_dyn.errors import FileFormatError, MissingExtraError, ModelError, NoriWarning, UnknownModelNameError
from nori_dyn.model.joints import Free, Prismatic, Revolute, Spherical
from nori_dyn.model.kinematics import positions
from tests.oracles import newton_euler
from tests.peers import mujoco
from tests.robots import mujoco_inverse, mujoco_model, mujoco_state
from tests.tolerances import PEER, RECURSION, assert_close
from tests.trees import random_state

GEOM = '<geom type="box" size=".1 .2 .3" pos=".1 .05 -.1" euler=".1 .2 .3"/>'

MIXED = f"""
<body name="a" pos="0.1 0.2 0.3" quat="0.9 0.1 0.3 -0.2">
  <joint name="a1" type="hinge" axis="1 2 3" pos="0.1 -0.2 0.05" ref="0.4" range="-1 2"/>
  <joint name="a2" type="slide" axis="0 1 1" pos="0.3 0 0" ref="-0.2"/>
  <joint type="hinge" axis="0 0 1" pos="-.1 .2 .3"/>
  {GEOM}
  <site name="tip" pos="1 2 3" euler="0.1 0.2 0.3"/> <site name="a"/> <site/>
  <body pos="0 0 .5" euler="1.5707963267948966 0 0">
    {GEOM}
    <body name="b" pos="0.5 0 0"><joint name="ball" type="ball" pos="0.1 0.1 0.1"/>{GEOM}
      <body name="c" pos="0.5 0 0"><joint name="cj" axis="0 1 0"/>{GEOM}</body>
    </body>
  </body>
</body>
<body name="free" pos="1 2 3" quat="0.9 0.1 0.3 -0.2"><freejoint name="f"/>{GEOM}
  <body name="d" pos="0.5 0 0" quat="0.707107 0.707107 0 0">
    <joint name="dj" axis="0 1 0" type="slide"/>{GEOM}
  </body>
</body>
"""

ARM = f"""
<geom type="plane" size="1 1 1"/>
<body name="table" pos="1 0 0">{GEOM}</body>
<body name="base" pos="0 0 1">{GEOM}
  <body name="upper" pos="0 0 .2"><joint name="shoulder" axis="0 1 0"/>{GEOM}
    <body name="lower" pos="0 0 .4"><joint name="elbow" axis="0 1 0"/>{GEOM}</body>
  </body>
</body>
"""


@pytest.fixture
def write(tmp_path):
    def write(world: str, more: str = ""):
        path = tmp_path / "model.xml"
        if not world.startswith("<mujoco"):
            more = f'<compiler angle="radian" autolimits="true"/>{more}'
            world = f'<mujoco model="test">{more}<worldbody>{world}</worldbody></mujoco>'
        path.write_text(world)
        return path

    return write


def state_of(tree, seed):
    q, qd, qdd, fx = random_state(tree, seed)
    fx[~tree.I.any(axis=(1, 2))] = 0  # MuJoCo has no massless links to push
    return q, qd, qdd, fx


def body_poses(tree, q, names):
    """Position (3,) and rotation (3, 3) in the world of each MuJoCo body frame, or of a site."""
    X_0 = positions(tree, q).X_0
    for name in names:
        frame = tree.frames.get(f"{name}/body") or tree.frame(name)
        at = frame.X @ X_0[frame.link]
        yield at.r, at.E.T


def test_joints_bodies_and_names(write):
    tree = load_mjcf(write(MIXED))
    assert tree.name == "test"
    assert tree.names == ("a/a1", "a/a2", "a", "b", "c", "free", "d")
    assert tree.joint_names == ("a1", "a2", "joint2", "ball", "cj", "f", "dj")
    assert tree.parents == (-1, 0, 1, 2, 3, -1, 5)
    kinds = [Revolute, Prismatic, Revolute, Spherical, Revolute, Free, Prismatic]
    assert [type(joint) for joint in tree.joints] == kinds
    assert tree.joints[0].limits == (-1.0, 2.0)
    assert not tree.I[:2].any()
    assert {*tree.frames} == {"world", "a/body", "b/body", "body2", "tip", "a/site"}
    np.testing.assert_array_equal(tree.X_tree[6].E, [[1, 0, 0], [0, 0, 1], [0, -1, 0]])
    assert tree.notes == (
        "2 rotations with components within 1e-12 of 0 or 1 made exact",
        "2 massless links added between the joints of bodies with several joints",
        "1 body without joints lumped, kept as frames",
    )


def test_what_has_no_name_takes_none_that_another_has(write):
    size = '<geom size="0.1"/>'
    other = f'<body name="body1" pos="1 0 0"><joint name="joint0_"/><joint name="joint0" axis="1 0 0"/>{size}</body>'
    tree = load_mjcf(write(f"<body><joint/>{size}{other}</body>"))
    assert tree.joint_names == ("joint0__", "joint0_", "joint0")
    assert tree.names == ("body1_", "body1/joint0_", "body1")


@pytest.mark.parametrize("clean", [True, False])
def test_kinematics_and_inverse_dynamics(write, clean):
    path = write(MIXED)
    tree, model = load_mjcf(path, clean=clean), mujoco_model(path)
    names = [model.body(i).name or f"body{i}" for i in range(model.nbody)]
    for seed in range(3):
        q, qd, qdd, fx = state_of(tree, seed)
        data = mujoco.MjData(model)
        data.qpos[:] = mujoco_state(tree, model, q, qd, qdd)[0]
        mujoco.mj_kinematics(model, data)
        *poses, tip = body_poses(tree, q, [*names, "tip"])
        for place, position, rotation in zip(
            [*poses, tip], [*data.xpos, data.site("tip").xpos], [*data.xmat, data.site("tip").xmat], strict=True
        ):
            assert_close(place[0], position, PEER)
            assert_close(place[1], rotation.reshape(3, 3), PEER)
        assert_close(newton_euler(tree, q, qd, qdd, fx).tau, mujoco_inverse(tree, model, q, qd, qdd, fx), RECURSION)
    path = write(ARM)
    tree, model = load_mjcf(path, clean=clean), mujoco_model(path)
    state = state_of(tree, 0)
    assert_close(newton_euler(tree, *state).tau, mujoco_inverse(tree, model, *state), RECURSION)


def test_gravity_is_the_models_unless_given(write):
    assert load_mjcf(write(ARM)).gravity == (0.0, 0.0, -9.81)
    assert load_mjcf(write(ARM, '<option gravity="0 1 -1.6"/>')).gravity == (0.0, 1.0, -1.6)
    assert load_mjcf(write(ARM, '<option gravity="0 1 -1.6"/>'), gravity=(0.0, 0.0, -3.7)).gravity[2] == -3.7
    weightless = '<option><flag gravity="disable"/></option>'
    assert load_mjcf(write(ARM, weightless)).gravity == (0.0, 0.0, 0.0)


def test_locked(write):
    path = write(MIXED)
    tree = load_mjcf(path, locked={"a1": 0.3, "cj": 0.0})
    assert tree.names == ("a/a2", "a", "b", "free", "d")
    assert "locked: a1, cj" in tree.notes
    full = load_mjcf(path)
    q = full.random_configuration(0)
    q[full.q_slices[0]], q[full.q_slices[4]] = 0.3, 0.0
    kept = np.concatenate([q[full.q_slices[full.link(name)]] for name in tree.names])
    for pose, other in zip(body_poses(tree, kept, "abcd"), body_poses(full, q, "abcd"), strict=True):
        assert_close(pose[0], other[0], PEER)
        assert_close(pose[1], other[1], PEER)
    with pytest.raises(UnknownModelNameError, match=r"'elbw'.*Did you mean 'elbow'"):
        load_mjcf(write(ARM), locked=("elbw",))


# Floating base


def test_a_floating_base_is_added_to_the_moving_body(write):
    tree = load_mjcf(write(ARM), base="floating")
    assert tree.names == ("base", "upper", "lower")
    assert tree.joint_names == ("root_joint", "shoulder", "elbow")
    assert "1 body fixed to the world left out" in tree.notes
    fixed = load_mjcf(write(ARM))
    assert fixed.names == ("upper", "lower")
    np.testing.assert_array_equal(tree.I[1:], fixed.I)
    np.testing.assert_array_equal(tree.X_tree[2].r, fixed.X_tree[1].r)
    freed = load_mjcf(write(ARM.replace('<body name="base" pos="0 0 1">', '<body name="base"><freejoint name="x"/>')))
    np.testing.assert_array_equal(tree.I, freed.I)
    assert [X.r.tolist() for X in tree.X_tree] == [X.r.tolist() for X in freed.X_tree]
    path = write(f'<body name="trunk"><freejoint/>{GEOM}</body>')  # floats already
    floating, fixed = load_mjcf(path, base="floating"), load_mjcf(path)
    assert floating.fingerprint == fixed.fingerprint
    assert floating.notes == ("the base is on a free joint of the model already",)
    assert fixed.joint_names == ("joint0",)


def test_a_floating_base_that_makes_no_sense(write):
    for world, said in (
        (MIXED, "2 moving bodies (a, free)"),
        (ARM.replace('<body name="base" pos="0 0 1">', '<body name="base"><joint name="z" type="slide"/>'), "'z'"),
        ("<geom size='1'/>", "no moving body"),
    ):
        path = write(world)
        with pytest.raises(ModelError, match="base='floating'") as caught:
            load_mjcf(path, base="floating")
        assert said in str(caught.value)
        assert str(caught.value).startswith(str(path))


# What is ignored, and what is wrong


FREE = f'<body><joint name="j" type="free" {{}}/>{GEOM}</body>'
HINGE = f'<body><joint name="j"/>{GEOM}<site name="s"/></body><body><joint name="k"/>{GEOM}<site name="t"/></body>'


ROPE = '<site site="s"/><site site="t"/>'
OF_J, OF_K = (f'<joint joint="{joint}" coef="1"/></fixed>' for joint in "jk")
SLACK = f'<fixed name="f" stiffness="1" frictionloss="2" springlength="0 1">{OF_J}'
DRUM = '<worldbody><geom name="drum" type="sphere" size="0.1"/></worldbody>'
EQUAL = '<equality><tendon name="e" tendon1="f" tendon2="g" polycoef="0 1 1 0 0"/></equality>'

IGNORED = {
    "armature of the free joint 'j'": (FREE.format('armature="1"'), ""),
    "friction .*'j', stiffness of the free joint 'j'": (FREE.format('damping="1" frictionloss="1" stiffness="1"'), ""),
    "gravity compensation": (FREE.format("").replace("<body>", '<body gravcomp="1">'), ""),
    "fluid forces": (HINGE, '<option density="1"/>'),
    r"frictionloss of tendon 'f', stiffness of tendon 'f' \(it is slack over a range\)": (
        HINGE,
        f"<tendon>{SLACK}</tendon>",
    ),
    r"tendon 'p' \(it branches at a pulley\)": (
        HINGE,
        f'<tendon><spatial name="p">{ROPE}<pulley divisor="2"/>{ROPE}</spatial></tendon>',
    ),
    r"tendon 'p' \(it wraps around a geom\)": (
        HINGE,
        f"""<tendon><spatial name="p">{ROPE.replace("><", '><geom geom="drum"/><')}</spatial></tendon>{DRUM}""",
    ),
    "equality constraint 'e' of two tendons": (
        HINGE,
        f'<tendon><fixed name="f">{OF_J}<fixed name="g">{OF_K}</tendon>{EQUAL}',
    ),
}


def test_one_warning_for_what_is_ignored(write):
    for names, (world, more) in IGNORED.items():
        path = write(world, more)
        with pytest.warns(NoriWarning, match=f"robot 'test': ignored: {names}.*do not include them") as caught:
            load_mjcf(path)
        assert len(caught) == 1, names
        assert caught[0].filename == __file__
        assert load_mjcf(path, components=False).components == ()


def test_constraints_that_hold_nothing_are_noted(write):
    more = (
        '<equality><connect name="off" active="false" body1="a" anchor="0 0 0"/>'
        '<weld name="one" body1="a" body2="tip"/><weld name="led" body1="a" body2="hand"/></equality>'
    )
    mocap = '<body name="hand" mocap="true"/>'
    world = f'<body name="a"><joint name="j"/>{GEOM}<body name="tip"/></body>{mocap}'
    tree = load_mjcf(write(world, more))
    assert tree.components == ()
    assert [note for note in tree.notes if "equality" in note] == [
        "equality constraint 'off' is not active at first, and left out",
        "equality constraint 'one' left out: both ends are on one link",
        "equality constraint 'led' left out: one end is on a mocap body, which is moved from outside",
    ]
    world = f'<body><joint name="j" damping="1" stiffness="1" frictionloss="1" armature="1"/>{GEOM}</body>'
    flags = '<option><flag spring="disable" damper="disable" frictionloss="disable"/></option>'
    assert [c.type for c in load_mjcf(write(world, flags)).components] == ["rotor"]  # options turn others off


def test_wrong_files(write, tmp_path, monkeypatch):
    with pytest.raises(FileFormatError, match="no such file"):
        load_mjcf(tmp_path / "absent.xml")
    (tmp_path / "robot.urdf").write_text("<robot/>")
    with pytest.raises(FileFormatError, match="It is a URDF: use load_urdf"):
        load_mjcf(tmp_path / "robot.urdf")
    refused = r"model\.xml: MuJoCo refuses it: .*"
    for error, message, text in (
        (FileFormatError, r"model\.xml, line 2: not XML", "<mujoco>\n<worldbody>"),
        (FileFormatError, "not MJCF: its root element is <mujoco_>", "<mujoco_/>"),
        (ModelError, rf"{refused}unrecognized attribute: 'nome'", f'<body nome="a"><joint/>{GEOM}</body>'),
        (ModelError, rf"{refused}mass and inertia", "<body><joint/></body>"),
        (ModelError, r"model\.xml: robot 'test' has no moving link", GEOM),
    ):
        with pytest.raises(error, match=message):
            load_mjcf(write(text))
    (tmp_path / "scene.xml").write_text('<mujoco><include file="model.xml"/></mujoco>')
    with pytest.raises(ModelError, match=r"mass and inertia.* It is part of scene\.xml: give that one\."):
        load_mjcf(write("<body><joint/></body>"))
    with pytest.raises(ModelError, match="'fixed' or 'floating', not 'flying'"):
        load_mjcf(write(ARM), base="flying")
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtraError, match=r"needs the extra 'mjcf': pip install 'nori_dyn\[mjcf\]'"):
        load_mjcf(write(ARM))
