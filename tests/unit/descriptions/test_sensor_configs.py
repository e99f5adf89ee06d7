"""Sensor configs from files: what is shipped, and errors that name the file and the line."""

import pytest

import nori_dyn as nd
from tests.robots import ROBOTS, load
from tests.trees import on_a_free_base

# One row a shipped set: the robots that it is for, and how many rows it has to spare.


def test_one_function_takes_names_and_files(tmp_path, monkeypatch):
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nmeasurements:\n  - {type: joint_torque, joints: all}\n")
    monkeypatch.chdir(tmp_path)
    for read in (nd.sensors, nd.load_sensors):
        assert read("inverse_dynamics").name == "inverse_dynamics"
        assert {read(file).name for file in (path, str(path), "mine.yaml")} == {"mine"}
        with pytest.raises(nd.errors.UnknownConfigError, match=r"neither shipped nor a file.*'mime'.*Known: "):
            read("mime")
        with pytest.raises(nd.errors.SensorConfigError, match="Did you mean 'inverse_dynamics'"):
            read("inverse_dynamic")
        with pytest.raises(nd.errors.FileFormatError, match="no such file"):
            read(tmp_path / "inverse_dynamics")  # a path is a file, whatever it is called


def test_links_and_joints_may_be_named_by_their_place():
    tree = nd.autotree(4)

    def read(selector):
        entry = {"type": "joint_torque", "joints": selector}
        sensors = nd.SensorSet.from_dict({"name": "some", "measurements": [entry]})
        assert nd.SensorSet.from_dict(sensors.to_dict()) == sensors
        return nd.System(tree, sensors).measurement_names

    assert read({"at": 0}) == ("tau:joint1",)
    assert read({"at": [-1, 0]}) == ("tau:joint1", "tau:joint4")
    assert read({"except": {"at": [0, -1]}}) == ("tau:joint2", "tau:joint3")
    with pytest.raises(nd.errors.SensorConfigError, match="no moving joint at 4: it has 4, from 0 to 3, or from -1"):
        read({"at": 4})


def test_hybrid_dynamics_drives_actuated_joints_and_lets_the_base_fall():
    tree = on_a_free_base(nd.tools.random_tree(3, 0, kinds=["revolute"]))
    names = nd.System(tree, nd.sensors("hybrid_dynamics")).measurement_names
    assert names[:2] == ("qdd:joint2", "qdd:joint3")
    assert [name.split(".")[0] for name in names[2:]] == ["tau:joint1"] * 6


GOOD = """\
name: mine
measurements:
  - {type: joint_acceleration, joints: all}
  - type: external_wrench
    links: all
    value: 0
"""


WRONG = {
    "is not YAML": (2, "name: mine", "name: [mine"),
    "colour": (6, "    links: all", "    links: all\n    colour: red"),
    "value": (6, "    value: 0", "    value: heavy"),
    "finite": (6, "    value: 0", "    value: .nan"),
    "not a regular expression": (5, "    links: all", "    links: {match: '('}"),
    "components": (6, "    value: 0", "    components: [mx, torque]"),
    "xyz": (6, "    value: 0", "    frame: {xyz: [0, 0]}"),
    "name": (1, "name: mine\n", ""),
}


def test_errors_name_the_file_and_the_line(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD)
    assert nd.load_sensors(path).name == "mine"
    for message, (line, old, new) in WRONG.items():
        path.write_text(GOOD.replace(old, new))
        with pytest.raises(nd.errors.SensorConfigError, match=message) as error:
            nd.load_sensors(path)
        assert str(error.value).startswith(f"{path}:{line}: ")
        assert "\n" not in str(error.value)


def test_other_content_is_refused_no_code_is_run_and_the_schema_names_every_sensor(tmp_path):
    path = tmp_path / "mine.yaml"
    for text in ("", "[]", "just words", "name: 3", "name: x\nmeasurements: 7"):
        path.write_text(text)
        with pytest.raises(nd.errors.SensorConfigError, match=r"mine\.yaml"):
            nd.load_sensors(path)
    path.write_text("name: !!python/object/apply:os.system ['touch owned']\nmeasurements: []\n")
    with pytest.raises(nd.errors.SensorConfigError, match="not YAML"):
        nd.load_sensors(path)


# Configs that take the sensors of the robot's own file.
FROM_MODEL = """\
name: mine
from_model: {from_model}
measurements:
  - {{type: joint_acceleration, joints: all}}
{more}
"""
ICUB = ROBOTS["iCubGenova04"]


def from_model(tmp_path, changes: str, more: str = "", tree=None, model=ICUB):
    path = tmp_path / "mine.yaml"
    path.write_text(FROM_MODEL.format(from_model=changes, more=more))
    return nd.load_sensors(path, model, tree)


def by_name(sensors):
    return {measurement.name: measurement for measurement in sensors.measurements if measurement.name}


def test_a_config_adds_to_the_sensors_of_the_model(tmp_path):
    found = from_model(tmp_path, "true")
    assert (found.name, len(found.measurements)) == ("mine", 6 + 62 + 1)
    assert found.measurements[:-1] == nd.tools.sensors_from_model(ICUB).measurements
    assert found.measurements[-1].type == "joint_acceleration"
    assert nd.SensorSet.from_dict(found.to_dict()) == found
    assert len(from_model(tmp_path, "false").measurements) == 1
    tree = load("iCubGenova04", "fixed", kept="sensors")  # root_link is the world: its accelerometer tells nothing
    lacking = set(by_name(found)) - set(by_name(from_model(tmp_path, "true", tree=tree)))
    assert lacking == {"root_link_ems_acc_eb5"}


def test_a_config_changes_the_sensors_of_the_model_by_type_and_by_name(tmp_path):
    changes = "{accelerometer: {sigma: 0.1}, head_imu_0: {sigma: 0.2, components: [ax]}, force_torque: null}"
    found = by_name(from_model(tmp_path, changes))
    assert len(found) == 62
    assert found["l_arm_ft_imu"].sigma == 0.1
    assert (found["head_imu_0"].sigma, found["head_imu_0"].components) == (0.2, ["ax"])
    more = "  - {type: force_torque, name: l_arm_ft, joints: l_arm_ft_sensor, sigma: 3}"  # instead of that of its name
    found = by_name(from_model(tmp_path, "true", more))
    assert len(found) == 68
    assert (found["l_arm_ft"].sigma, found["l_arm_ft"].measures) == (3.0, "parent_on_child")


def test_gyroscopes_of_the_model_come_where_the_base_is_state(tmp_path):
    more = "memory: {base: {of: base}, biases: {of: offset}}"
    changes = "{gyroscope: {sigma: 0.01, offset: {sigma: 0.05}}, force_torque: null, chest_ems_gyro_eb1: null}"
    found = by_name(from_model(tmp_path, changes, more))
    assert len(found) == 62 + 14
    assert found["root_link_ems_gyro_eb5"].offset.sigma == 0.05
    assert len(by_name(from_model(tmp_path, "true", more))) == 62 + 15 + 6
    tree = load("iCubGenova04", "floating", kept="sensors")
    with pytest.raises(nd.errors.SensorConfigError, match="reads the velocity of the base, which is no state here"):
        nd.System(tree, from_model(tmp_path, "{gyroscope: {sigma: 0.01}}", tree=tree))


def test_changes_that_make_no_sense_are_refused(tmp_path):
    suggested = "type or name of a sensor of the model 'acelerometer'.*mean 'accelerometer'"
    for changes, message in (
        ("{acelerometer: {sigma: 1}}", suggested),
        ("{head_imu_0: {sigma: -1}}", r"yaml:2: sensor 'head_imu_0' of the model, as changed: .*sigma"),
        ("{head_imu_0: {colour: red}}", "colour"),
        ("3", "from_model"),
    ):
        with pytest.raises(nd.errors.SensorConfigError, match=message) as caught:
            from_model(tmp_path, changes)
        assert "mine.yaml" in str(caught.value)
    said = r"mine\.yaml:2: from_model takes .*load_sensors\(path, model=FILE\)"
    with pytest.raises(nd.errors.SensorConfigError, match=said):
        from_model(tmp_path, "true", model=None)
