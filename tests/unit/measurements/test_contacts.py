"""Contact states of a set of sensors; sensors of drives, on either side of the gear."""

import json

import numpy as np
import pytest
import scipy.sparse.linalg as spla
import yaml

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import InvalidConfigError, SensorConfigError, UnknownSensorNameError
from nori_dyn.model.tree import Frame
from tests.systems import FORWARD, TORQUES, UNLOADED, sensor_set
from tests.tolerances import RECURSION, ROUNDING, SOLVED, assert_close

CONFIG = """
name: feet
source: here
measurements:
  - {type: joint_acceleration, joints: all}
  - {type: external_wrench, links: {except: [link3, link4]}, value: 0}
contacts:
  left:
    closed: [{type: external_wrench, links: link3}]
    open: [{type: external_wrench, links: link3, value: 0}]
  right:
    closed: [{type: external_wrench, links: link4, name: cell}]
    open: [{type: external_wrench, links: link4, name: cell, value: 0}]
"""


def content():
    return yaml.safe_load(CONFIG)


@pytest.fixture
def feet():
    return nd.SensorSet.from_dict(content())


def test_a_state_has_the_rows_of_its_contacts_in_the_order_of_the_config(feet):
    assert feet.contact_names == ("left", "right")
    for closed, value in {
        (): (0, 0),
        ("left",): (None, 0),
        ("right",): (0, None),
        ("right", "left"): (None, None),
    }.items():
        state = feet.in_contact(*closed)
        assert state.measurements[:2] == feet.measurements
        assert tuple(row.value for row in state.measurements[2:]) == value
        assert [row.links for row in state.measurements[2:]] == ["link3", "link4"]
        assert (state.contacts, state.source) == ((), "here")
    assert feet.in_contact("left", "right") == feet.in_contact("right", "left", "left")
    names = [feet.in_contact(*closed).name for closed in ((), ("left",), ("right", "left"))]
    assert names == ["feet (no contact)", "feet (left)", "feet (left, right)"]


def test_a_state_is_the_set_that_says_the_same_without_contacts(feet):
    plain = content()
    contacts = plain.pop("contacts")
    plain["measurements"] += contacts["left"]["open"] + contacts["right"]["closed"]
    assert feet.in_contact("right").fingerprint == nd.SensorSet.from_dict(plain).fingerprint


def test_sets_without_contacts_are_what_they_were():
    known = nd.sensors("inverse_dynamics")
    assert known.in_contact() == known
    assert "contacts" not in known.to_dict()
    with pytest.raises(UnknownSensorNameError, match="There is none"):
        known.in_contact("left")


def test_contacts_go_to_a_dictionary_and_back(feet):
    again = nd.SensorSet.from_dict(json.loads(json.dumps(feet.to_dict())))
    assert again == feet
    assert again.fingerprint == feet.fingerprint
    assert len({feet.fingerprint, *(feet.in_contact(*closed).fingerprint for closed in ((), ["left"], ["right"]))}) == 4


def test_states_of_unknown_contacts_or_of_none_are_refused(feet):
    message = r"unknown contact 'rigth' in sensors 'feet'.*Did you mean 'right'"
    with pytest.raises(UnknownSensorNameError, match=message):
        feet.in_contact("rigth")
    with pytest.raises(SensorConfigError, match=r"have contacts \(left, right\).*in_contact\('left', 'right'\)"):
        nd.System(nd.autotree(4), feet)


WRONG = {
    r"contacts\.left\.open: contacts\.left lacks 'open'\. Its fields are closed, open": lambda c: c["left"].pop("open"),
    "contacts.left.shut": lambda c: c["left"].update(shut=[]),
    r"contacts\.left\.open\[0\]\.sigma": lambda c: c["left"]["open"][0].update(sigma=0),
    "contacts": lambda c: c.update({"a, b": c["left"]}),
    "two sensors are named 'cell'": lambda c: c["left"]["open"][0].update(name="cell"),
    "contacts.left": lambda c: c.update(left=None),
    "sensor type 'wrench'": lambda c: c["left"]["open"][0].update(type="wrench"),
    "sensor type 'x'": lambda c: c["left"].update(open=[{"type": "x"}, 3]),
}


def test_wrong_contacts_are_refused_with_their_place():
    for message, change in WRONG.items():
        data = content()
        change(data["contacts"])
        with pytest.raises(UnknownSensorNameError if "type" in message else InvalidConfigError, match=message):
            nd.SensorSet.from_dict(data)


def test_errors_in_files_name_the_line(tmp_path):
    path = tmp_path / "feet.yaml"
    path.write_text(CONFIG.replace("name: cell, value: 0", "sigma: -1"))
    message = rf"{path}:13: at contacts\.right\.open\[0\]\.sigma: it is -1, expected a number greater"
    with pytest.raises(SensorConfigError, match=message):
        nd.load_sensors(path)
    path.write_text(CONFIG)
    assert nd.load_sensors(path).contact_names == ("left", "right")


BARE = nd.autotree(3, skew=0.6)
ARM = BARE.replace(
    components=(
        nd.components.Rotor(joints="all", inertia=2e-4, gear=100),
        nd.components.Friction(joints="all", viscous=0.3, coulomb=1.0),
    )
)
LINK_SIDE = TORQUES | {"side": "link"}


def solved(system: nd.System, q: np.ndarray, qd: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """The variables by name, from the system's equations as they stand."""
    d = spla.spsolve(system.D(q).tocsc(), -system.b(q, qd, y))
    return {variable.name: d[variable.slice] for variable in system.variables}


def state() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, qd, qdd = np.random.default_rng(6).normal(size=(3, 3))
    return q, qd, qdd


def test_a_sensor_behind_the_gear_reads_what_rotor_and_friction_leave():
    q, qd, qdd = state()
    system = nd.System(ARM, sensor_set(LINK_SIDE, UNLOADED))
    assert system.measurement_names == ("tau_J:joint1", "tau_J:joint2", "tau_J:joint3")
    found = solved(system, q, qd, nd.rnea(BARE, q, qd, qdd))
    assert_close(np.concatenate([found[f"qdd:joint{k}"] for k in (1, 2, 3)]), qdd, SOLVED)
    assert_close(np.concatenate([found[f"tau:joint{k}"] for k in (1, 2, 3)]), nd.rnea(ARM, q, qd, qdd), SOLVED)


def test_a_side_is_motor_or_link_which_are_one_without_motors():
    q, *_ = state()
    link_side, motor_side = (nd.System(BARE, sensor_set(entry, UNLOADED)) for entry in (LINK_SIDE, TORQUES))
    assert link_side.measurement_names == ("tau_J:joint1", "tau_J:joint2", "tau_J:joint3")
    assert_close(link_side.D(q).toarray(), motor_side.D(q).toarray(), ROUNDING)
    both = nd.System(BARE, sensor_set({**LINK_SIDE, "sigma": 0.1}, {**TORQUES, "sigma": 0.1}))
    assert both.ny == 6
    entry = sensor_set(LINK_SIDE).measurements[0]
    assert [[e.name for e in one.on(ARM)] for one in entry.each(ARM)] == [[f"tau_J:joint{k}"] for k in (1, 2, 3)]
    with pytest.raises(SensorConfigError, match="'motor' or 'link'"):
        sensor_set({**LINK_SIDE, "side": "gear"})


def test_an_encoder_on_the_motor_reads_the_joint_through_the_gear():
    q, qd, qdd = state()
    encoders = [
        {"type": "linear_relation", "name": f"encoder{k}", "terms": {f"qdd:joint{k}": -50}, "value": None}
        for k in (1, 2, 3)
    ]
    system = nd.System(ARM, sensor_set(*encoders, UNLOADED))
    found = solved(system, q, qd, -50 * qdd)
    assert_close(np.concatenate([found[f"tau:joint{k}"] for k in (1, 2, 3)]), nd.rnea(ARM, q, qd, qdd), RECURSION)


def test_a_load_cell_in_a_rod_tells_the_torque_of_its_motor_as_a_sensor_in_the_loop_does():
    """On a planar four-bar: crank, rod and rocker of length 1, in the plane of x and y."""
    tip, pivot = (Transform(np.eye(3), np.array(place)) for place in ([1.0, 0.0, 0.0], [1.4, 0.3, 0.0]))
    rod = nd.components.Loop(name="rod", frames=["tip", "pivot"], constrains=["fx", "fy"])
    tree = nd.autotree(3).replace(
        gravity=(0.0, -9.81, 0.0), frames={"tip": Frame(2, tip), "pivot": Frame(-1, pivot)}, components=(rod,)
    )
    q, qd = nd.tools.closed(tree, np.array([1.2, -1.5, -0.8]), np.array([1.0, -0.5, 0.2]))
    truth = solved(nd.System(tree, FORWARD), q, qd, np.concatenate([[3.0, 0.5, -1.0], np.zeros(18)]))
    cell = {"type": "linear_relation", "name": "cell", "terms": {"loop:rod.fx": 1}, "value": None}
    accelerated = {"type": "joint_acceleration", "joints": "joint1"}
    torques = {"type": "joint_torque", "joints": ["joint2", "joint3"]}
    for known, reading in ((cell, truth["loop:rod"][0]), (accelerated, truth["qdd:joint1"][0])):
        system = nd.System(tree, sensor_set(known, torques, UNLOADED))
        found = solved(system, q, qd, np.array([reading, 0.5, -1.0]))
        assert_close(found["tau:joint1"], np.array([3.0]), SOLVED)
        assert_close(found["loop:rod"], truth["loop:rod"], SOLVED)
