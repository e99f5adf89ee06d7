"""Sensor configs from files: what is shipped, and errors that name the file and the line."""

from __future__ import annotations

import json

import pytest

import nori_dyn as nd
from nori_dyn.io.sensor_configs import schema_json, shipped_configs
from nori_dyn.measurements.registry import measurement_types
from tests.robots import load


@pytest.mark.parametrize("name", shipped_configs())
def test_what_is_shipped_fits_the_robots_that_it_is_for(name):
    icub = (load("iCubGenova04", "floating"),)
    for tree in icub if name.startswith("icub_") else (nd.autotree(3), nd.random_tree(12, 0)):
        rows, columns = nd.System(tree, nd.sensors(name)).shape
        assert rows == columns


def test_the_contract_of_the_shipped_sets():
    tree = nd.random_tree(12, 0)
    assert {"inverse_dynamics", "forward_dynamics", "hybrid_dynamics"} <= set(shipped_configs())
    assert nd.System(tree, nd.sensors("inverse_dynamics")).ny == tree.nv
    assert nd.System(tree, nd.sensors("forward_dynamics")).ny == tree.nv


def test_hybrid_dynamics_drives_actuated_joints_and_lets_the_base_fall():
    tree = nd.random_tree(3, 0, kinds=["revolute"])
    free = nd.random_tree(1, 0, kinds=["free"])
    tree = tree.replace(joints=(free.joints[0], *tree.joints[1:]))
    names = nd.System(tree, nd.sensors("hybrid_dynamics")).measurement_names
    assert names[:2] == ("qdd:joint2", "qdd:joint3")
    assert [name.split(".")[0] for name in names[2:]] == ["tau:joint1"] * 6


def test_an_unknown_shipped_set_suggests():
    with pytest.raises(nd.SensorConfigError, match="Did you mean 'inverse_dynamics'"):
        nd.sensors("inverse_dynamic")


GOOD = """\
name: mine
measurements:
  - {type: joint_acceleration, joints: all}
  - type: external_wrench
    links: all
    value: 0
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("name: mine", "name: [mine", 2, "is not YAML"),
        ("joints: all}", "joint: all}", 3, "joint"),
        ("    links: all", "    links: all\n    colour: red", 6, "colour"),
        ("    value: 0", "    value: heavy", 6, "value"),
        ("    value: 0", "    value: .nan", 6, "finite"),
        ("    value: 0", "    sigma: -1", 6, "greater than 0"),
        ("    links: all", "    links: {match: '('}", 5, "not a regular expression"),
        ("    value: 0", "    components: [mx, torque]", 6, "components"),
        ("    value: 0", "    frame: {xyz: [0, 0]}", 6, "xyz"),
        ("name: mine\n", "", 1, "name"),
    ],
)
def test_errors_name_the_file_and_the_line(tmp_path, old, new, line, message):
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD)
    assert nd.load_sensors(path).name == "mine"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(nd.SensorConfigError, match=message) as error:
        nd.load_sensors(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert "\n" not in str(error.value)


def test_an_unknown_type_suggests_and_names_the_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD.replace("external_wrench", "external_wrenches"))
    with pytest.raises(nd.SensorConfigError, match=r"mine.yaml: .*'external_wrenches'.*Did you mean 'external_wrench'"):
        nd.load_sensors(path)


@pytest.mark.parametrize("text", ["", "[]", "just words", "name: 3", "name: x\nmeasurements: 7"])
def test_other_content_is_refused(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(nd.SensorConfigError, match=r"mine\.yaml"):
        nd.load_sensors(path)


def test_no_code_is_run_from_a_config(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("name: !!python/object/apply:os.system ['touch owned']\nmeasurements: []\n")
    with pytest.raises(nd.SensorConfigError, match="not YAML"):
        nd.load_sensors(path)


def test_the_schema_names_every_sensor():
    text = json.dumps(json.loads(schema_json()))
    assert all(name in text for name in measurement_types())
