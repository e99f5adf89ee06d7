"""Drafts of mappings: what names and sizes tell, why, and that a draft can be used as it is."""

import numpy as np
import yaml

import nori_dyn as nd
from nori_dyn.cli.map import USUAL
from nori_dyn.logs.draft import draft
from nori_dyn.logs.record import Record
from nori_dyn.logs.registry import open_log
from nori_dyn.report.mapping_text import mapping_text
from tests.logs import samples_in
from tests.systems import ACCELERATIONS, WRENCHES, sensor_set

N = 50


def arm(*names):
    """Return an arm whose joints are called so."""
    tree = nd.autotree(len(names))
    return tree.replace(joint_names=names)


def drafted(path, tree, sensors=None):
    system = nd.System(tree, sensors or nd.SensorSet.from_dict(USUAL))
    with open_log(path) as source:
        found = draft(source, Record.of({(): system}))
    text = mapping_text(found, path)
    assert yaml.safe_load(text) == found.data()  # what is written is what was found
    return found, text


def entries(found):
    return {str(guess.entry["of"]): guess.entry for guess in found.guesses}


def test_columns_that_are_named_after_joints(tmp_path):
    tree = arm("hip", "knee")
    rng = np.random.default_rng(0)
    arrays = {f"{joint}_{kind}": rng.normal(size=N) for joint in ("knee", "hip") for kind in ("pos", "vel", "torque")}
    np.savez(tmp_path / "log.npz", time=0.01 * np.arange(N), note=np.zeros(N), **arrays)
    found, text = drafted(tmp_path / "log.npz", tree)
    assert entries(found)["q:{joint}"] == {"of": "q:{joint}", "from": "{joint}_pos"}
    assert entries(found)["tau:{joint}"]["from"] == "{joint}_torque"
    assert found.left_over == ("note",)
    assert found.lacking == ("qdd (2 columns)",)
    assert "# named after the joints" in " ".join(text.split("  "))
    columns = [*found.data()["columns"], {"of": "qdd:{joint}", "joints": ["hip", "knee"], "value": 0.0}]
    log = samples_in(tmp_path / "log.npz", nd.System(tree, nd.SensorSet.from_dict(USUAL)), mapping={"columns": columns})
    np.testing.assert_array_equal(log.q, np.column_stack([arrays["hip_pos"], arrays["knee_pos"]]))


def test_degrees_and_milliseconds_are_seen_and_what_was_wanted_is_not_taken_for_what_was_measured(tmp_path):
    tree = arm("hip", "knee")
    angle = np.linspace([-80, 0], [80, 120], N)
    np.savez(tmp_path / "log.npz", q=angle, dq=np.ones((N, 2)), t=10.0 * np.arange(N))
    found, _ = drafted(tmp_path / "log.npz", tree)
    assert entries(found)["q:{joint}"]["unit"] == "deg"
    assert entries(found)["qd:{joint}"]["unit"] == "deg/s"
    assert dict(found.streams[""][0]) == {"unit": "ms"}
    arrays = {"q_d": np.ones((N, 2)), "q": np.zeros((N, 2)), "dq_des": np.ones((N, 2)), "dq": np.zeros((N, 2))}
    np.savez(tmp_path / "log.npz", **arrays)
    found, _ = drafted(tmp_path / "log.npz", tree)
    assert {str(entry["from"]) for entry in entries(found).values()} == {"q[{k}]", "dq[{k}]"}


def test_limbs_and_currents(tmp_path):
    tree = arm("l_hip", "l_knee", "r_hip", "r_knee")
    legs = {"right_leg_q": np.zeros((N, 2)), "left_leg_q": np.ones((N, 2))}
    np.savez(tmp_path / "log.npz", **legs, motor_current=np.ones((N, 4)))
    found, text = drafted(tmp_path / "log.npz", tree)
    told = [guess.entry for guess in found.guesses if guess.entry["of"] == "q:{joint}"]
    legs = {entry["from"]: entry.get("joints") for entry in told}
    assert legs == {"right_leg_q[{k}]": ["r_hip", "r_knee"], "left_leg_q[{k}]": ["l_hip", "l_knee"]}
    assert entries(found)["tau:{joint}"]["scale"] == [1.0] * 4
    assert "N m per A" in text


def test_wrenches_and_inertial_units_find_their_sensors(tmp_path):
    tree = arm("hip", "knee")
    accelerometer = {"type": "accelerometer", "links": "link1", "name": "imu", "sigma": 0.1}
    wrench = WRENCHES | {"links": "link2", "name": "foot_ft"}
    sensors = sensor_set(ACCELERATIONS | {"sigma": 1.0}, wrench, accelerometer)
    felt = np.random.default_rng(1).normal(size=(N, 6))
    np.savez(tmp_path / "log.npz", foot_ft=felt, q=np.zeros((N, 2)), qd=np.zeros((N, 2)))
    found, _ = drafted(tmp_path / "log.npz", tree, sensors)
    entry = entries(found)["foot_ft"]
    assert entry["components"] == ["fx", "fy", "fz", "mx", "my", "mz"]
    assert entry["from"] == [f"foot_ft[{k}]" for k in range(6)]


def test_a_table_without_names_tells_its_ranges(tmp_path):
    np.savetxt(tmp_path / "log.csv", np.linspace([0, -1], [5, 1], N), delimiter=",")
    found, text = drafted(tmp_path / "log.csv", arm("hip"))
    assert found.guesses == ()
    assert "column[1]: -1 to 1" in text
