"""Files of users that once ended in a traceback, or left something where the program runs."""

import os
import stat

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.io.files import write_bytes
from tests.logs import samples_in

BOMB = "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


NO_SENSORS = {
    "name: !!int x": "a value in it cannot be read",
    "name: 2001-13-45": "a value in it cannot be read",
    "name: !!bool x": "a value in it cannot be read",
    f"name: {'9' * 5000}": "a value in it cannot be read",
    "[" * 1000 + "]" * 1000: "nested too deeply",
    "name: &a [*a]": "nested too deeply, or an alias refers to an entry that contains it",
    f"a: &a [1]\n{BOMB}name: *i": "its aliases expand to more than",
    f"a: &a {{x: 1}}\n{BOMB}<<: *i": "its aliases expand to more than",
}


def test_yaml_that_is_no_set_of_sensors(tmp_path):
    path = tmp_path / "odd.yaml"
    for text, message in NO_SENSORS.items():
        path.write_text(text)
        with pytest.raises(nd.errors.SensorConfigError, match=rf"odd\.yaml.*: .*{message}"):
            nd.load_sensors(path)


def test_aliases_are_followed(tmp_path):
    path = tmp_path / "set.yaml"
    path.write_text("name: set\nmeasurements:\n  - &one {type: joint_torque, joints: j1}\n  - {<<: *one, joints: j2}\n")
    assert [m.joints for m in nd.load_sensors(path).measurements] == ["j1", "j2"]


@pytest.fixture
def system():
    return nd.System(nd.autotree(2), nd.sensors("inverse_dynamics"))


def test_text_in_a_log_is_left_alone(tmp_path, system):
    numbers = np.ones((3, 2))
    np.savez(tmp_path / "log.npz", q=numbers, qd=numbers, y=numbers, note="a log")
    assert len(samples_in(tmp_path / "log.npz", system).q) == 3


def test_numbers_whose_squares_overflow_are_no_warning(system):
    huge = np.full(2, 1e200)
    solver = nd.plan(system).solver("numpy")
    assert solver.solve(np.ones(2), np.zeros(2), huge).tau.shape == (2,)


MODEL = """<mujoco><worldbody><body><joint {}/>
<inertial pos="0 0 0" mass="{}" diaginertia="1 1 1"/></body></worldbody></mujoco>"""


def test_mujoco_writes_no_log_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.xml").write_text(MODEL.format("armature='-1'", 1))
    with pytest.warns(nd.errors.NoriWarning) as told:
        nd.load_mjcf("odd.xml", components=False)
    assert "MuJoCo: Inertia matrix is too close to singular" in str(told[0].message)
    assert os.listdir() == ["odd.xml"]


@pytest.mark.filterwarnings("ignore::nori_dyn.errors.NoriWarning")
def test_a_joint_with_a_negative_number_is_refused(tmp_path):
    for attribute, message in (
        ("armature='-1'", "rotor of 'joint0': its inertia is -1"),
        ("damping='-1'", "friction of 'joint0': its viscous is -1"),
    ):
        (tmp_path / "odd.xml").write_text(MODEL.format(attribute, 1))
        with pytest.raises(nd.errors.ModelError, match=rf"odd\.xml: the {message}, and it cannot be negative"):
            nd.load_mjcf(tmp_path / "odd.xml")


def test_an_mjcf_model_with_a_number_beyond_all_bounds_is_refused(tmp_path):
    for mass in ("1e60", "inf", "nan"):
        (tmp_path / "huge.xml").write_text(MODEL.format("", mass))
        with pytest.raises(nd.errors.ModelError, match=r"huge\.xml"):
            nd.load_mjcf(tmp_path / "huge.xml")


def test_what_is_no_file_is_written_and_not_replaced():
    write_bytes(os.devnull, b"content")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_names_that_no_file_has(tmp_path):
    for name in ("a\0b", "x" * 300):
        with pytest.raises(nd.errors.FileFormatError, match="cannot be written"):
            write_bytes(tmp_path / name, b"")
        with pytest.raises(nd.errors.FileFormatError, match="cannot be read"):
            nd.Plan.load(tmp_path / name)
