"""What `print(system)` and `print(sensors)` say."""

import nori_dyn as nd
from tests.systems import ACCELERATIONS, TORQUES, WRENCHES, sensor_set


def rows(thing) -> list[list[str]]:
    return [line.split() for line in str(thing).splitlines()]


def test_a_system_as_text():
    system = nd.System(nd.autotree(3), sensor_set(ACCELERATIONS, {**WRENCHES, "value": 0}))
    found = rows(system)
    assert found[2] == ["equations", "60", "in", "60", "unknowns,", "one", "for", "each"]
    assert found[3] == ["readings", "qdd:joint1,", "qdd:joint2,", "qdd:joint3"]
    assert ["equations", "of", "motion", "39", "0", "0", "0"] in found
    assert ["joint_acceleration", "3", "3", "0", "0"] in found
    assert ["external_wrench", "18", "0", "18", "0"] in found
    assert ["tau", "joint", "torque", "3"] in found
    weighted = nd.System(nd.autotree(3), sensor_set({**ACCELERATIONS, "sigma": 0.5}, TORQUES, {**WRENCHES, "value": 0}))
    assert "weighted least squares with 3 weights" in " ".join(str(weighted).split())
    assert ["joint_acceleration", "3", "3", "0", "3"] in rows(weighted)
    assert ["joint_torque", "3", "3", "0", "0"] in rows(weighted)
    short = nd.System(nd.autotree(3), sensor_set(ACCELERATIONS))
    assert rows(short)[2][-3:] == ["18", "too", "few"]


def test_a_set_of_sensors_as_text():
    feet = {"type": "external_wrench", "links": ["a", "b"], "components": ["fz"], "sigma": [0.25], "name": "cell"}
    text = str(sensor_set(ACCELERATIONS, feet, {"type": "joint_torque", "joints": {"match": "leg.*"}, "value": 0}))
    found = [" ".join(line.split()) for line in text.splitlines()]
    assert "joint_acceleration joints: all exact" in found
    assert "external_wrench name: cell; links: a, b; components: fz 0.25" in found
    assert "joint_torque value: 0; joints: match leg.* exact" in found
    biped = nd.sensors("biped_contacts")
    assert "while l_foot is open" in " ".join(str(biped).split())
    assert repr(biped) == "SensorSet('biped_contacts', 6 measurements, 2 contacts)"
