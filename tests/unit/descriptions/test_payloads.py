"""Payloads as vendors take them, against Pinocchio's inertias and the vendors' definitions."""

import ast
import json
import re

import numpy as np
import pytest
import yaml

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform, spatial_inertia
from nori_dyn.descriptions.payloads import Payload
from nori_dyn.errors import FileFormatError, InputError, UnknownNameError
from nori_dyn.model.inertia import check_inertia
from nori_dyn.model.joints import axis_rotation
from nori_dyn.model.tree import Frame
from tests.peers import pin
from tests.robots import ROBOTS, load, pinocchio_model
from tests.unit.identification.simulated import ARM, saved_log

TOOL = pin.Inertia(1.5, np.array([0.01, -0.03, 0.08]), pin.Inertia.FromEllipsoid(1.5, 0.05, 0.08, 0.11).inertia)
TURN = pin.SE3(pin.exp3(np.array([0.3, -0.5, 0.7])), np.zeros(3))
BODY = pin.Inertia(TOOL.mass, TOOL.lever, TURN.act(TOOL).inertia)
"""In coordinates of the flange, with axes of its own."""

LINK, FLANGE = "wrist_3_link", "tool0"


@pytest.fixture(scope="module")
def arm() -> nd.KinematicTree:
    return load("ur5")


@pytest.fixture(scope="module")
def on_link() -> pin.Inertia:
    """The same in coordinates of the link."""
    model = pinocchio_model(ROBOTS["ur5"])
    return model.frames[model.getFrameId(FLANGE)].placement.act(BODY)


def ours(body: pin.Inertia) -> np.ndarray:
    return spatial_inertia(body.mass, body.lever, body.inertia)


def assert_is(mass, com, I_com, body: pin.Inertia, tolerance=1e-9) -> None:
    assert mass == pytest.approx(body.mass, abs=tolerance)
    np.testing.assert_allclose(com, body.lever, rtol=0, atol=tolerance)
    np.testing.assert_allclose(I_com, body.inertia, rtol=0, atol=tolerance)


@pytest.fixture(scope="module")
def payload(arm, on_link) -> Payload:
    return Payload.of(arm, ours(on_link), LINK, FLANGE)


def test_it_is_in_coordinates_of_the_flange(payload, arm, on_link):
    assert_is(payload.mass, payload.com, payload.I_com, BODY, 1e-11)
    there = Payload.of(arm, ours(on_link), LINK, LINK)
    assert_is(there.mass, there.com, there.I_com, on_link, 1e-11)


def test_a_load_and_the_parameters_of_a_link_are_the_same_payload(arm, on_link, tmp_path):
    I = arm.I.copy()
    I[5] += ours(on_link)
    free, loaded = saved_log(tmp_path / "free.npz", arm), saved_log(tmp_path / "loaded.npz", arm.replace(I=I))
    system, options = nd.System(arm, ARM), {"physical": False, "held_out": 0}
    found = nd.identify(free, system, ["inertias"], loaded=loaded, load_on=LINK, **options)
    one = found.payload(FLANGE)
    assert_is(one.mass, one.com, one.I_com, BODY, 1e-6)
    with pytest.raises(InputError, match=r"frame 'base' on the world: name one of its link"):
        found.payload("base")
    with pytest.raises(InputError, match=r"frame 'forearm_link' on 'forearm_link'"):
        found.payload("forearm_link")
    with pytest.raises(UnknownNameError, match="flansch"):
        found.payload("flansch")
    of_link = nd.identify(loaded, system, [f"m:{LINK}", f"mc:{LINK}.*", f"I:{LINK}.*"], **options)
    other = of_link.payload(FLANGE)
    assert_is(other.mass, other.com, other.I_com, BODY, 1e-6)
    with pytest.raises(InputError, match="nothing was identified of the payload of 'forearm_link'"):
        of_link.payload("forearm_link")
    all_links = nd.identify(loaded, system, ["inertias"], **options)
    with pytest.raises(InputError, match=rf"m:{LINK}.*: only in sums, if at all, was identified .*loaded and load_on"):
        all_links.payload(FLANGE)


def test_of_franka(payload, tmp_path):
    """The fields of its definition, matrices by columns; those of its own example are the same."""
    nd.tools.save_payload(payload, tmp_path / "endeffector-config.json")
    found = json.loads((tmp_path / "endeffector-config.json").read_text())
    sizes = {name: np.size(value) for name, value in found.items()}
    assert sizes == {"mass": 1, "centerOfMass": 3, "inertia": 9, "transformation": 16}
    assert_is(found["mass"], found["centerOfMass"], np.reshape(found["inertia"], (3, 3), order="F"), BODY)
    np.testing.assert_array_equal(np.reshape(found["transformation"], (4, 4), order="F"), np.eye(4))


def test_of_universal_robots(payload, tmp_path):
    """set_target_payload(m, cog, inertia), inertia = [Ixx, Iyy, Izz, Ixy, Ixz, Iyz] about the centre of gravity."""
    nd.tools.save_payload(payload, tmp_path / "tool.SCRIPT")
    text = (tmp_path / "tool.SCRIPT").read_text()
    assert not re.search(r"\de", text)  # no exponents
    (statement,) = ast.parse(text).body
    assert statement.value.func.id == "set_target_payload"
    m, cog, (xx, yy, zz, xy, xz, yz) = map(ast.literal_eval, statement.value.args)
    assert_is(m, cog, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], BODY)


def test_of_ros2_control(arm, on_link, tmp_path):
    """What the filter takes away, f - T_sw g and tau - p x T_sw g, is what a sensor reads of the payload at rest."""
    turned = Transform(axis_rotation((1.0, 0.0, 0.0), 0.4), np.array([0.0, 0.0, 1.0]))
    arm = arm.replace(frames={"mount": Frame(-1, turned), **arm.frames})
    nd.tools.save_payload(Payload.of(arm, ours(on_link), LINK, FLANGE), tmp_path / "tool.yaml")
    nodes = yaml.safe_load((tmp_path / "tool.yaml").read_text())
    of_filter = nodes["force_torque_sensor_broadcaster"]["ros__parameters"]["sensor_filter_chain"]["filter1"]
    assert of_filter["type"] == "control_filters/GravityCompensationWrench"
    params = of_filter["params"]
    assert (params["world_frame"], params["sensor_frame"]) == ("mount", FLANGE)
    force = turned.E.T @ params["CoG"]["force"]  # in the axes of the world
    model = pinocchio_model(ROBOTS["ur5"])
    data, flange = model.createData(), model.getFrameId(FLANGE)
    q = arm.random_configuration(3)
    pin.framesForwardKinematics(model, data, q)
    at_rest = pin.Motion(-data.oMf[flange].rotation.T @ model.gravity.linear, np.zeros(3))
    reads = -(BODY * at_rest)
    taken_away = data.oMf[flange].rotation.T @ force
    np.testing.assert_allclose(taken_away, reads.linear, rtol=0, atol=1e-7)
    np.testing.assert_allclose(np.cross(params["CoG"]["pos"], taken_away), reads.angular, rtol=0, atol=1e-7)
    of_controller = nodes["admittance_controller"]["ros__parameters"]["gravity_compensation"]
    assert of_controller["frame"] == {"id": FLANGE}
    np.testing.assert_allclose(of_controller["CoG"]["pos"], BODY.lever, atol=1e-9)
    assert of_controller["CoG"]["force"] == pytest.approx(1.5 * 9.81)


def test_what_no_body_has_is_brought_to_the_nearest(arm):
    I = spatial_inertia(1.0, np.zeros(3), np.diag([0.01, 0.01, 0.03]))
    payload = Payload.of(arm, I, LINK, LINK)
    assert check_inertia("", payload.mass, payload.com, payload.I_com)
    np.testing.assert_allclose(np.diag(payload.I_com), [0.015, 0.015, 0.03])  # of a disc
    with pytest.raises(InputError, match=r"beyond its model weighs -1 kg: no payload"):
        Payload.of(arm, -I, LINK, LINK)


def test_other_files_are_refused(payload, tmp_path):
    with pytest.raises(FileFormatError, match=r"ends in \.json, \.script, \.yaml"):
        nd.tools.save_payload(payload, tmp_path / "tool.txt")
    with pytest.raises(FileFormatError, match="does not exist"):
        nd.tools.save_payload(payload, tmp_path / "no" / "tool.json")
