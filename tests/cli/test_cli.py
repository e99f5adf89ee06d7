"""The command line, as a user meets it: what it prints, writes, and its exit status."""

import json
import os
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.components.config import component_types
from nori_dyn.demo import run_demo
from nori_dyn.measurements.sensor_set import SensorSet, measurement_types
from tests.peers import pin
from tests.robots import EXAMPLE_ROBOT_DATA, ROBOTS, load, pinocchio_model
from tests.unit.descriptions.test_model_sensors import ARM, ORIGIN, OWN, WRENCH
from tests.words import plain

PANDA = str(ROBOTS["panda"])
FINGERS = ("--lock", "panda_finger_joint1", "--lock", "panda_finger_joint2")


@pytest.fixture
def panda_plan(run, tmp_path_factory):
    """A plan, made once by the command."""
    path = tmp_path_factory.getbasetemp() / "panda.plan"
    if not path.exists():
        assert run("plan", PANDA, "--sensors", "inverse_dynamics", "--out", path, *FINGERS)[0] == 0
    return path


def write_states(path, rng, n=5, columns=None):
    values = rng.uniform(-1, 1, size=(n, 21))
    values[:, [3, 5]] += (-1.5, 1.5)  # within the limits of these joints
    names = [f"q[{k}]" for k in range(7)] + [f"qd:panda_joint{k + 1}" for k in range(7)]
    names += [f"qdd:panda_joint{k + 1}" for k in range(7)]
    np.savetxt(path, values, delimiter=",", header=",".join(columns or names), comments="")
    return values[:, :7], values[:, 7:14], values[:, 14:]


def test_plan_then_solve_gives_what_python_gives(told, panda_plan, tmp_path):
    q, qd, qdd = write_states(tmp_path / "log.csv", np.random.default_rng(1))
    np.savez(tmp_path / "log.npz", q=q, qd=qd, y=qdd)
    expected = nd.Plan.load(panda_plan).solver().solve_batch(q, qd, qdd)
    for log, ending in (("csv", "csv"), ("csv", "csv.gz"), ("csv", "npz"), ("npz", "npz")):
        out = tmp_path / f"estimate.{ending}"
        assert "5 samples" in told("solve", "--plan", panda_plan, "--input", tmp_path / f"log.{log}", "--out", out)
        if ending == "npz":
            with np.load(out, allow_pickle=False) as archive:
                names = {"a", "f", "tau", "fx", "qdd", "residual", "fell_back"}
                assert set(archive.files) == names | {"nori_dyn"}  # what the file says of itself
                tau = archive["tau"]
        else:
            table = np.genfromtxt(out, delimiter=",", names=True, deletechars="", replace_space=" ")
            tau = np.column_stack([table[f"tau:panda_joint{k + 1}"] for k in range(7)])
        np.testing.assert_array_equal(tau, expected.tau, err_msg=f"{log} {ending}")


def test_chosen_outputs_are_the_only_ones_written(run, figures, tmp_path):
    plan, out = tmp_path / "p.plan", tmp_path / "out.csv"
    options = ("--outputs", "tau,f:panda_link1", "--out", plan)
    assert run("plan", PANDA, "--sensors", "inverse_dynamics", *options, *FINGERS)[0] == 0
    write_states(tmp_path / "log.csv", np.random.default_rng(3))
    assert run("solve", "--plan", plan, "--input", tmp_path / "log.csv", "--out", out)[0] == 0
    header = out.read_text().splitlines()[0].split(",")
    assert header[:7] == [f"tau:panda_joint{k + 1}" for k in range(7)]
    assert header[7:] == [*(f"f:panda_link1.{c}" for c in ("mx", "my", "mz", "fx", "fy", "fz")), "fell_back"]
    arguments = ("--input", tmp_path / "log.csv", "--out", tmp_path / "out.npz")
    assert "The residual is not computed" in run("solve", "--plan", plan, *arguments)[1]
    assert figures("solve", "--plan", plan, *arguments)["largest_residual"] is None
    with np.load(tmp_path / "out.npz") as archive:
        assert set(archive.files) == {"tau", "f:panda_link1", "fell_back", "nori_dyn"}


def test_figures_as_json(run, figures, panda_plan, tmp_path):
    found = figures("info", panda_plan)
    assert (found["rows"], found["variables"], found["nv"]) == (140, 140, 7)
    assert found["measurements"] == [f"qdd:panda_joint{k + 1}" for k in range(7)]
    assert found["orderings"][0]["fill_in"] == 0

    found = figures("info", PANDA, "--base", "floating")
    assert (found["n_links"], found["nq"], found["nv"]) == (10, 16, 15)
    assert found["mass"] == pytest.approx(pin.computeTotalMass(pinocchio_model(ROBOTS["panda"], "floating")))

    write_states(tmp_path / "log.csv", np.random.default_rng(0))
    found = figures("solve", "--plan", panda_plan, "--input", tmp_path / "log.csv", "--out", tmp_path / "o.npz")
    assert found["samples"] == 5
    assert found["largest_residual"] < 1e-12


HELD = """
name: arm_with_a_gauge
measurements:
  - {type: joint_acceleration, joints: all, sigma: 0.1}
  - {type: joint_torque, joints: panda_joint2, sigma: 0.5, range: [-80, 80]}
  - {type: external_wrench, links: all, value: 0}
"""


def write_gaps(path, rng):
    """Write a log whose third and last samples lack a number, and whose fourth saturates a sensor; return it."""
    names = [f"{kind}:panda_joint{k + 1}" for kind in ("q", "qd", "qdd") for k in range(7)]
    values = rng.uniform(-1, 1, size=(5, 22))
    values[:, [3, 5]] += (-1.5, 1.5)
    values[3, 21] = 80.0
    rows = [[repr(x) for x in row] for row in values.tolist()]
    rows[2][15], rows[4][21] = "", " "
    path.write_text("\n".join(",".join(row) for row in [[*names, "tau:panda_joint2"], *rows]) + "\n")
    values[2, 15] = values[4, 21] = np.nan
    return values


def test_a_log_with_gaps_is_refused_or_does_without_the_sensors(run, refused, figures, tmp_path):
    sensors, plan, log = (tmp_path / name for name in ("held.yaml", "held.plan", "log.csv"))
    sensors.write_text(HELD)
    assert run("plan", PANDA, "--sensors", sensors, "--out", plan, *FINGERS)[0] == 0
    values = write_gaps(log, np.random.default_rng(8))
    arguments = ("solve", "--plan", plan, "--input", log, "--out", tmp_path / "out.npz", "--backend", "numpy")
    assert "log.csv:4: 'qdd:panda_joint2' is empty or nan. With --missing drop" in refused(*arguments)
    status, output, errors = run(*arguments, "--missing", "drop")
    assert status == 0
    assert "5 samples" in output
    assert errors.splitlines()[0] == "dropped, of 5 samples: 'qdd:panda_joint2' 1, 'tau:panda_joint2' 2"
    assert "contradict each other" in errors  # the torques are made up
    found = figures(*arguments, "--missing", "drop")
    assert found["dropped"] == {"qdd:panda_joint2": 1, "tau:panda_joint2": 2}
    solver = nd.Plan.load(plan).solver("numpy")
    expected = solver.solve_batch(values[:, :7], values[:, 7:14], values[:, 14:], missing="drop")
    with np.load(tmp_path / "out.npz") as archive:
        np.testing.assert_array_equal(archive["tau"], expected.tau)
    assert run(*arguments, "--missing", "ignore")[0] == 2


def test_an_empty_cell_of_the_state_is_refused_or_left_out(run, panda_plan, tmp_path):
    log = tmp_path / "log.csv"
    write_states(log, np.random.default_rng(9))
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:2], "," + lines[2].split(",", 1)[1], *lines[3:]]))
    arguments = ("solve", "--plan", panda_plan, "--input", log, "--out", tmp_path / "x.csv")
    assert "log.csv:3: column 'q[0]' is empty or nan" in run(*arguments)[2]
    status, output, errors = run(*arguments, "--missing", "drop")
    assert (status, errors) == (0, "left out: 1 samples q is not a number\n")
    assert "4 samples" in output


def test_components_of_a_file_and_of_the_robot(run, told, figures, tmp_path):
    (tmp_path / "motors.yaml").write_text("components: [{type: rotor, joints: all, inertia: 0.5}]")

    def types(*options):
        return [component["type"] for component in figures("info", PANDA, *FINGERS, *options)["components"]]

    assert types() == types("--components", "none") == []
    assert types("--components", "own") == ["friction"]
    assert types("--components", tmp_path / "motors.yaml") == ["friction", "rotor"]
    options = ("--sensors", "inverse_dynamics", "--components", tmp_path / "motors.yaml", "--out", tmp_path / "p.plan")
    told("plan", PANDA, *FINGERS, *options)
    assert nd.Plan.load(tmp_path / "p.plan").system.tree.components[1].inertia == 0.5
    schema = told("schema", "--components")
    assert json.loads(schema)
    assert all(f'"{name}"' in schema for name in component_types())


def test_schema_names_the_sensors_and_wrong_usage_is_status_2(run, told):
    schema = told("schema")
    assert "ExternalWrench" in json.loads(schema)["$defs"]
    assert all(f'"{name}"' in schema for name in measurement_types())
    assert run("plan", PANDA)[0] == 2
    assert run("no-such-command")[0] == 2
    assert run("plan", PANDA, "--sensors", "inverse_dynamics", "--out", "x", "--base", "hovering")[0] == 2


FITTING = [
    ("", "tau", ["identify {log} --robot {robot} --mapping {map}"]),
    (
        "",
        "",
        ["plan {robot} --sensors inverse_dynamics", "estimate --plan PLAN --input {log} --mapping {map} --out OUT"],
    ),
    ("identification", "tau", ["identify {log} --robot {robot} --sensors identification --mapping {map}"]),
    ("touch.yaml", "F", ["plan {robot} --sensors touch.yaml", "estimate --plan PLAN --input {log} --mapping {map}"]),
    ("few.yaml", "tau", ["observe {robot} --sensors few.yaml"]),
    ("PLAN", "", ["estimate --plan {plan} --input {log} --mapping {map} --out OUT"]),
]
"""Sensors, what the log holds beside q and qd, and what to run next."""


@pytest.mark.parametrize(("sensors", "holds", "commands"), FITTING)
def test_a_draft_names_what_fits_the_sensors(told, panda_plan, tmp_path, monkeypatch, sensors, holds, commands):
    monkeypatch.chdir(tmp_path)
    exact = "name: own\nmeasurements:\n  - {type: external_wrench, frame: panda_hand}\n"
    (tmp_path / "few.yaml").write_text(exact)
    (tmp_path / "touch.yaml").write_text(
        exact.replace("}", ", sigma: 1}") + "  - {type: joint_acceleration, joints: all, sigma: 1}\n"
        "  - {type: external_wrench, links: {except: panda_hand}, value: 0}\n"
    )
    names = [f"{kind}{k}" for kind in ("q", "qd", *([holds] if holds == "tau" else [])) for k in range(7)]
    names += [f"{letter}{axis}" for letter in "FT" for axis in "xyz"] if holds == "F" else []
    np.savez("log.npz", t=np.arange(50.0), **dict.fromkeys(names, np.zeros(50)))
    robot = (panda_plan,) if sensors == "PLAN" else (PANDA, *FINGERS)
    named = ("--sensors", sensors) if sensors not in ("", "PLAN") else ()
    lines = told("info", "log.npz", "--robot", *robot, *named, "--draft", "map.yaml").splitlines()
    known = {"log": "log.npz", "map": "map.yaml", "robot": PANDA, "plan": panda_plan}
    found = [line for line in lines if line.startswith(("Next: ", "Then: "))]
    assert len(found) == len(commands)
    for line, command in zip(found, commands, strict=True):
        assert line[6:].startswith(f"nori-dyn {command.format(**known)}")
    assert ("fx:panda_hand" in Path("map.yaml").read_text()) == (sensors in ("touch.yaml", "few.yaml"))


def test_a_draft_for_a_preset_knows_its_motors_and_sensors(told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    load("go2")
    names = [f"motor_{k}_{kind}" for k in range(12) for kind in ("q", "dq", "tau_est")]
    names += [f"{kind}_{axis}" for kind in ("gyro", "acc") for axis in "xyz"]
    np.savez("log.npz", t=np.arange(50.0), **dict.fromkeys(names, np.ones(50)))
    assert told("info", "log.npz", "--robot", "go2", "--draft", "map.yaml").endswith(
        "Next: nori-dyn estimate log.npz --robot go2 --mapping map.yaml\n"
    )
    mapping = nd.tools.load_mapping("map.yaml")
    assert [entry.of for entry in mapping.columns] == ["q:{joint}", "qd:{joint}", "tau:{joint}", "acc:imu", "gyro:imu"]
    assert mapping.columns[0].joints[:2] == ["FR_hip_joint", "FR_thigh_joint"]
    lines = told("info", "log.npz", "--robot", ROBOTS["solo12"], "--draft", "map.yaml").splitlines()
    assert lines[-1] == f"Next: nori-dyn estimate log.npz --robot {ROBOTS['solo12']} --mapping map.yaml"
    assert nd.tools.load_mapping("map.yaml").columns[-1].of == "gyro:base_link"  # it walks, by its model


def test_the_mapping_that_a_preset_has_of_a_log_is_written_for_other_commands(told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = Path(nd.__file__).parents[1] / "presets" / "logs" / "double_pendulum.csv.gz"
    lines = told("info", log, "--robot", "double_pendulum", "--draft", "map.yaml").splitlines()
    assert lines[0].startswith("The mapping 'recorded' of preset 'double_pendulum', written to map.yaml")
    assert lines[2] == f"Next: nori-dyn identify {log} --robot double_pendulum --mapping map.yaml"
    *_, tau = nd.tools.load_mapping("map.yaml").columns
    assert (tau.source, tau.offset) == (["tau1", "tau2"], [0.045, 0.006])
    output = told(*lines[2].split()[2:], "--parameters", "friction", "--held-out", "0")
    assert "Joints and readings" in output  # what stands for no joint by its name alone was read


def test_joints_that_a_log_lacks_are_frozen_by_the_command_that_follows(told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    *known, last = load("ur5").joint_names
    np.savez(
        "log.npz", t=np.arange(50.0), **{f"{k}:{joint}": np.zeros(50) for k in ("q", "qd", "tau") for joint in known}
    )
    lines = told("info", "log.npz", "--robot", ROBOTS["ur5"], "--draft", "map.yaml").splitlines()
    assert lines[-1].endswith(f"--lock {last}")


@pytest.mark.parametrize(
    ("contacts", "of_plan", "of_log", "told_by_columns"),
    [
        ((), " --contacts all", "", True),
        (("--contacts", "recognise"), " --contacts all", " --contacts recognise", False),
        (("--contacts", "LF,RH"), " --contacts LF,RH", "", False),
    ],
    ids=["columns", "recognised", "named"],
)
def test_a_draft_for_sensors_with_contacts_says_how_these_are_told(
    told, tmp_path, monkeypatch, contacts, of_plan, of_log, told_by_columns
):
    monkeypatch.chdir(tmp_path)
    load("solo12")
    feet = [("LF", "FL_LOWER_LEG"), ("RH", "HR_LOWER_LEG")]
    wrench = "type: external_wrench, links: {}"
    states = "".join(
        f"  {name}:\n    closed: [{{{wrench.format(link)}}}]\n    open: [{{{wrench.format(link)}, value: 0}}]\n"
        for name, link in feet
    )
    Path("feet.yaml").write_text(
        "name: feet\nmeasurements:\n  - {type: joint_acceleration, joints: all}\n"
        f"  - {{type: external_wrench, links: {{except: [FL_LOWER_LEG, HR_LOWER_LEG]}}, value: 0}}\ncontacts:\n{states}"
    )
    columns, flags = ("contact_LF", "rh_stance", "lf_mode"), ["contact:LF", "contact:RH"]
    np.savez("log.npz", t=np.arange(50.0), **dict.fromkeys(columns, np.ones(50)))
    lines = told(
        *("info", "log.npz", "--robot", "solo12", "--base", "floating", "--sensors", "feet.yaml"),
        *(*contacts, "--draft", "map.yaml"),
    ).splitlines()
    plan, run = (line for line in lines if line.startswith(("Next: ", "Then: ")))
    assert plan.endswith(f"plan solo12 --sensors feet.yaml{of_plan} --base floating --out PLAN")
    assert run.endswith(f"--mapping map.yaml{of_log} --differentiate smoother --out OUT")
    entries = [entry.of for entry in nd.tools.load_mapping("map.yaml").columns]
    assert [each for each in entries if str(each).startswith("contact")] == (flags if told_by_columns else [])


def test_contacts_of_a_draft_are_those_of_its_sensors(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("log.npz", t=np.arange(50.0), **dict.fromkeys((f"q[{k}]" for k in range(7)), np.zeros(50)))
    drafted = "info", "log.npz", "--robot", PANDA, *FINGERS, "--sensors", "inverse_dynamics", "--contacts"
    assert "sensors 'inverse_dynamics' have no contacts to recognise" in refused(*drafted, "recognise")
    assert "unknown contact 'l_foot'" in refused(*drafted, "l_foot")


def test_a_log_of_encoders_alone_is_run_as_its_draft_says(told, panda_plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    t = 0.01 * np.arange(200)
    middle = [0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0]
    np.savez("log.npz", t=t, **{f"angle{k}": middle[k] + 0.3 * np.sin((k + 1) * t) for k in range(7)})
    *_, last = told("info", "log.npz", "--robot", panda_plan, "--draft", "map.yaml").splitlines()
    assert last.endswith("--mapping map.yaml --differentiate smoother --out OUT")
    words = last.removeprefix("Next: nori-dyn ").removesuffix("OUT").split()
    text = plain(told(*words, "out.csv"))
    assert text.startswith("200 samples, 7 velocities and 7 accelerations by a smoother: noise of positions")
    assert len(Path("out.csv").read_text().splitlines()) == 201


PLAN_IT = "plan PANDA --sensors inverse_dynamics"
SOLVE_IT = "solve --plan PLAN --input"
BAD = {
    f"{PLAN_IT} --out x.plan --ordering metis": "unknown ordering 'metis'",
    "solve --plan no.plan --input log.csv --out x.csv": "there is no such file",
    f"{SOLVE_IT} short.csv --out x.csv --differentiate 51 --dt 0.01": "fewer than the window",
    f"{SOLVE_IT} log.csv --out x.csv --differentiate kalmann --dt 0.01": "such as 51, or 'kalman' or 'smoother'",
    f"{SOLVE_IT} short.csv --out x.csv --differentiate kalman --dt 0.01": "no 32 samples follow each other",
    f"{SOLVE_IT} log.csv --out x.csv --differentiate smoother --dt -1": "must be positive",
    f"{SOLVE_IT} pickled.npz --out x.csv": "'q': it holds object, not plain numbers",
    f"{SOLVE_IT} empty.csv --out x.csv": "holds no samples",
    f"{SOLVE_IT} empty.npz --out x.csv --differentiate kalman --dt 0.01": "holds no samples",
    f"{SOLVE_IT} broken.csv.gz --out x.csv": "damaged",
    "info log.csv": "log.csv is a log",
    "info truncated.plan": "truncated",
}


def test_bad_input_is_one_clear_line_and_leaves_nothing(refused, panda_plan, tmp_path, monkeypatch):
    """More of it, and all that is said, stands in tests/data/mistakes.md."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    rng = np.random.default_rng(4)
    write_states("log.csv", rng)
    columns = [f"{kind}[{k}]" for kind in ("q", "qd", "unused") for k in range(7)]
    write_states("short.csv", rng, columns=columns)
    (folder / "empty.csv").write_text((folder / "log.csv").read_text().splitlines()[0] + "\n")
    (folder / "broken.csv.gz").write_bytes(b"not gzip")
    np.savez("empty.npz", q=np.zeros((0, 7)), qd=np.zeros((0, 7)))
    np.savez("pickled.npz", q=np.array([{"a": 1}], dtype=object))
    (folder / "truncated.plan").write_text(panda_plan.read_text()[:1000])
    before = sorted(os.listdir())
    for command, message in BAD.items():
        assert message in refused(*({"PLAN": panda_plan, "PANDA": PANDA}.get(word, word) for word in command.split()))
        assert sorted(os.listdir()) == before, command


def test_robots_lists_names_and_packages(told, figures):
    output = told("robots")
    rows = {line.split()[0].strip(","): line for line in output.splitlines() if line}
    assert "example-robot-data" in rows["panda"]
    assert "icub" in rows["iCubGenova04"].replace(",", "").split()
    assert output.endswith("Next: nori-dyn info NAME\n")
    found = figures("robots")
    (talos,) = (robot for robot in found["robots"] if "talos" in robot["aliases"])
    assert talos["file"] == str(ROBOTS["talos_reduced"])
    assert talos["package"] == "example-robot-data"


def test_robots_says_what_to_do_where_no_package_has_any(told, monkeypatch):
    monkeypatch.setattr("nori_dyn.descriptions.robot_names.PACKAGES", {})
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    end = "\nNext: pip install 'nori_dyn[robots]', or name a file: nori-dyn info ROBOT.urdf\n"
    assert told("robots").endswith(end)


ANTENNA = str(EXAMPLE_ROBOT_DATA / "tiago_description/robots/tiago_no_hand.urdf")


def test_inertias_that_no_mass_has(run, refused, tmp_path):
    plan = ("plan", ANTENNA, "--sensors", "inverse_dynamics", "--out", tmp_path / "x.plan")
    status, output, errors = run("info", ANTENNA)
    assert status == 0
    (said,) = (line for line in errors.splitlines() if "distribution" in line)
    assert said.startswith(f"warning: {ANTENNA}: no distribution of mass has")
    assert "(--inertias nearest)" in said
    assert "nearest" not in output
    status, output, errors = run("info", ANTENNA, "--inertias", "nearest")
    assert (status, errors.count("distribution")) == (0, 0)
    assert "note: nearest physical principal moments" in output
    assert refused(*plan, "--inertias", "refuse").startswith(f"error: {ANTENNA}: no distribution of mass has")
    observe = ("observe", ANTENNA, "--sensors", "inverse_dynamics", "--samples", 0, "--failing", 0)
    status, output, errors = run(*observe, "--inertias", "nearest", "--strict")
    assert (status, errors.count("distribution")) == (0, 0)
    assert "--inertias nearest" in output.splitlines()[-1]


def test_demo_runs_the_main_job(told, figures, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("nori_dyn.demo.run_demo", cache(run_demo))  # both commands tell of one run
    picture = tmp_path / "demo.png"
    output = told("demo", "--ticks", 20, "--out", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert max(map(len, output.splitlines())) <= 80
    found = figures("demo", "--ticks", 20, "--out", picture)
    assert (found["rows"], found["n_links"], found["nv"]) == (670, 33, 38)
    assert found["largest_difference"] < 1e-12
    assert found["orderings"][0]["fill_in"] == 0


ICUB = str(ROBOTS["iCubGenova04"])


def test_info_lists_the_sensors_of_a_robots_file(run, told, figures, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    output = told("info", ICUB, "--keep", "sensors")
    assert "Sensors of its file: 62 accelerometer, 15 gyroscope, 6 force_torque" in plain(output)
    assert max(len(line) for line in output.splitlines() if not line.startswith("Next: ")) <= 80
    assert "head_imu_0" not in output
    output = told("info", ICUB, "--verbose")
    assert max(len(line) for line in output.splitlines() if not line.startswith("Next: ")) <= 80
    assert "head_imu_0" in output
    assert "with the base as memory" in plain(output)
    found = figures("info", ICUB, "--keep", "l_arm_ft_sensor")
    assert len(found["sensors"]) == 83
    (sensor,) = (sensor for sensor in found["sensors"] if sensor["name"] == "l_arm_ft")
    assert (sensor["type"], sensor["on"]) == ("force_torque", "l_arm_ft_sensor")
    assert sensor["measurement"]["measures"] == "child_on_parent"
    assert [link["kind"] for link in found["links"] if link["joint"] == "l_arm_ft_sensor"] == ["fixed"]
    assert figures("info", PANDA)["sensors"] == []


def test_info_lists_all_places_and_what_comes_next(run, figures):
    lines = run("info", "icub", "--frames")[1].splitlines()
    assert any(line.split() == ["l_sole", "l_ankle_2"] for line in lines)
    assert any(line.split() == ["l_ankle_2", "l_ankle_2"] for line in lines)
    output = run("info", "icub", "--base", "floating")[1]
    assert output.endswith("Next: nori-dyn observe icub --sensors own_sensors --base floating --keep sensors\n")
    assert figures("info", PANDA)["frames"]["panda_hand"] == "panda_link7"


def test_a_plan_is_named_after_its_robot_and_sensors(told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = told("plan", "panda", "--sensors", "inverse_dynamics", *FINGERS)
    assert (tmp_path / "panda_inverse_dynamics.plan").exists()
    assert "Next: nori-dyn estimate --plan panda_inverse_dynamics.plan --input LOG.csv" in output


def test_the_time_a_sample_is_without_compiling(run, figures, panda_plan, tmp_path):
    write_states(tmp_path / "log.csv", np.random.default_rng(0))
    arguments = ("solve", "--plan", panda_plan, "--input", tmp_path / "log.csv", "--out", tmp_path / "o.npz")
    assert "us a sample, after " in run(*arguments)[1]
    found = figures(*arguments)
    assert min(found["seconds"], found["preparing_seconds"]) > 0
    assert found["unused"] == []


LOOP = """
<mujoco model="loop"><worldbody>
  <body name="a"><joint name="a" axis="0 1 0" armature="1"/>
    <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <site name="imu"/>
    <body name="b" pos="0 0 1"><joint name="b" axis="0 1 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>
  </body></worldbody>
  <equality><connect name="rod" body1="b" body2="world" anchor="0.5 0 0"/></equality>
  <sensor><gyro name="turns" site="imu"/></sensor>
</mujoco>
"""


def test_info_of_a_robot_with_a_loop(told, tmp_path):
    (tmp_path / "loop.xml").write_text(LOOP)
    output = plain(told("info", str(tmp_path / "loop.xml"), "--verbose"))
    assert "turns" in output
    assert "without inertia" not in output
    assert "with the base as memory" in output


def test_info_of_a_robot_with_unreadable_sensors_says_so(told, tmp_path):
    path = tmp_path / "odd.urdf"
    with open(ICUB) as file:
        path.write_text(file.read().replace("<frame>sensor</frame>", "<frame>world</frame>"))
    assert "its sensors cannot be read" in plain(told("info", path))


def test_plan_keeps_joints_and_takes_the_sensors_of_the_model(run, told, refused, tmp_path):
    sensors, out = tmp_path / "wrist.yaml", tmp_path / "arm.plan"
    sensors.write_text(
        "name: wrist\nfrom_model: {accelerometer: null}\nmeasurements:\n"
        "  - {type: joint_acceleration, joints: all}\n"
        "  - {type: external_wrench, links: {except: hand}, value: 0}\n"
    )
    robot = tmp_path / "arm.urdf"
    sensor = WRENCH.format(parent=OWN, frame="sensor", direction="child_to_parent", origin=ORIGIN)
    robot.write_text(ARM.format(sensors=sensor))
    arguments = ("plan", robot, "--sensors", sensors, "--out", out, "--json")
    assert json.loads(told(*arguments, "--keep", "sensors"))["measurements"] == 1 + 6
    assert nd.Plan.load(out).system.measurement_names[0] == "ft.mx"
    assert run(*arguments, "--keep", "wrist")[0] == 0
    assert "kept" in refused(*arguments)
    assert "mean 'wrist'" in run(*arguments, "--keep", "wrst")[2]


@pytest.mark.filterwarnings("ignore")
def test_one_singular_sample_refuses_a_log_or_is_nan_and_named(run, refused, tmp_path):
    """Of the first joint's acceleration its share along the second link is read: nothing where the arm is straight."""
    measurements = [
        {"type": "accelerometer", "links": "link2", "components": ["ax"]},
        {"type": "joint_acceleration", "joints": "joint2"},
        {"type": "external_wrench", "links": "all", "value": 0},
    ]
    sensors = SensorSet.from_dict({"name": "tip", "measurements": measurements})
    nd.plan(nd.System(nd.autotree(2), sensors), outputs=["tau"]).save(tmp_path / "tip.plan")
    q = np.array([[0.1, 1.0], [0.2, 0.0], [0.3, -1.0]])
    np.savez(tmp_path / "log.npz", q=q, qd=np.zeros((3, 2)), y=np.ones((3, 2)))
    call = ("solve", "--plan", tmp_path / "tip.plan", "--input", tmp_path / "log.npz", "--out", tmp_path / "out.npz")
    assert "state 1 of 3" in refused(*call)
    assert not (tmp_path / "out.npz").exists()
    status, _, errors = run(*call, "--singular", "nan")
    assert status == 0
    assert "singular (nan): 1 of 3 samples, the first is 1" in errors
    with np.load(tmp_path / "out.npz") as archive:
        np.testing.assert_array_equal(np.isnan(archive["tau"]).all(axis=1), [False, True, False])
