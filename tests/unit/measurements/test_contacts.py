"""Sets of sensors with named contacts: what a state of them is, and what is refused."""

import json

import pytest
import yaml

import nori_dyn as nd
from nori_dyn.errors import InvalidConfigError, SensorConfigError, UnknownSensorNameError

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
