"""nori-dyn observe --parameters, identify --excite and identify: what they find, write, notice and refuse."""

import re
from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from tests.browser import parsed, text
from tests.robots import ROBOTS, load
from tests.unit.estimation.test_vendor_logs import GAINS, chain
from tests.unit.identification.simulated import changed, saved_log
from tests.words import plain

UR5 = ("--robot", ROBOTS["ur5"])


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in a new folder with a log of an arm with friction and other inertias; return the arm as simulated."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    _, other = changed(load("ur5"), seed=1)
    other = other.replace(components=(nd.components.Friction(joints="all", viscous=0.7, coulomb=1.5, width=0.01),))
    saved_log(Path("log.npz"), other, sigma=0.05, seed=1)
    return other


def test_a_robot_is_found_written_and_drawn(told, here):
    files = ("--out", "found.urdf", "--components-out", "found.yaml", "--html", "found.html")
    files += ("--mapping-out", "calibrated.log.yaml")
    lines = told("identify", "log.npz", *UR5, *files).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("58 of 58 combinations are identified.")
    assert "Robot written to found.urdf." in lines
    assert "Page written to found.html." in lines
    assert any(line.startswith("held out  the last 33 % of each log") for line in lines)
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 6))
    expected = nd.rnea(here, q, qd, qdd)
    found = nd.load_robot("found.urdf", components="found.yaml")
    np.testing.assert_allclose(nd.rnea(found, q, qd, qdd), expected, atol=0.1)
    offsets = [each.offset for each in nd.tools.load_mapping("calibrated.log.yaml").calibration.values()]
    assert len(offsets) == 6
    assert max(map(abs, offsets)) < 0.1
    page = parsed(Path("found.html").read_text())
    assert text(page.find(".//h1")).startswith("✓Errors of 0.049 to 0.052 N m on what was held out, ")


def test_a_log_whose_columns_have_other_names_is_drafted_and_asked_about(told, run, here):
    with np.load("log.npz") as log:
        table = np.column_stack([log["q"], log["qd"], log["tau"]])
    np.savetxt("log.csv", table, delimiter=",")  # without names and times
    given = ("identify", "log.csv", *UR5, "--parameters", "offsets")
    status, _, asked = run(*given)
    assert status == 1
    assert "q:{joint} from column[{k}]?" in plain(asked)
    said = told(*given, "--yes", "--mapping-out", "found.log.yaml")
    assert "so positions and velocities agree" in plain(said)
    kept = nd.tools.load_mapping("found.log.yaml")
    assert (kept.columns[0].of, len(kept.calibration)) == ("q:{joint}", 6)
    with np.load("log.npz") as log:  # positions by their usual name, torques not
        np.savez("other.npz", t=log["t"], q=log["q"], qd=log["qd"], tau_measured=log["tau"])
    _, _, asked = run("identify", "other.npz", *UR5, "--parameters", "offsets")
    assert "tau:{joint} from tau_measured[{k}]?" in plain(asked)
    with np.load("log.npz") as log:  # no velocities
        np.savez("slow.npz", t=log["t"], q=log["q"], tau=log["tau"])
    assert "velocities that the log lacks: made of the positions" in plain(
        told("identify", "slow.npz", *given[2:], "--yes")
    )


def test_joints_that_a_log_says_nothing_of_stand_still(told, run, here):
    robot = nd.load_robot(ROBOTS["ur5"], locked=["wrist_3_joint"])
    with np.load(saved_log(Path("five.npz"), robot, sigma=0.05)) as log:
        names = ("t", *(f"{joint}_{of}" for of in ("position", "velocity", "effort") for joint in robot.joint_names))
        table = np.column_stack([log["t"], log["q"], log["qd"], log["tau"]])
    np.savetxt("five.csv", table, delimiter=",", header=",".join(names), comments="")
    given = ("identify", "five.csv", *UR5, "--parameters", "friction")
    _, _, asked = run(*given)
    assert "nothing of the log is of wrist_3_joint: taken to stand still at zero?" in plain(asked)
    assert told(*given, "--yes") == told(*given, "--yes", "--lock", "wrist_3_joint")


def test_what_a_preset_knows_of_its_logs_and_its_robot_is_taken_and_goes_with_what_was_found(told, run, here, tmp_path):
    """Currents times the gains of the drives, in the columns of RTDE."""
    joints = [joint for joint in nd.preset("ur10e").data.order if joint]
    preset = nd.preset("ur10e", chain(tmp_path / "arm.urdf", joints))
    _, real = changed(preset.tree, seed=2)
    with np.load(saved_log(Path("log.npz"), real, sigma=0.05)) as log:
        read = {"q": log["q"], "qd": log["qd"], "current": log["tau"] / GAINS["ur10e"]}
        columns = {"timestamp": log["t"]}
    columns |= {f"actual_{name}_{k}": own[:, k] for name, own in read.items() for k in range(6)}
    np.savetxt("log.csv", np.column_stack([*columns.values()]), delimiter=",", header=",".join(columns), comments="")
    robot = ("--robot", "ur10e", "--model", "arm.urdf")
    files = ("--out", "found.urdf", "--components-out", "found.yaml", "--mapping-out", "found.log.yaml")
    said = told("identify", "log.csv", *robot, *files)
    assert plain(said).startswith("How the columns of log.csv are read - rtde: ur_rtde and RTDE recordings")
    assert "Use it: nori-dyn estimate LOG --robot ur10e --model found.urdf --components found.yaml" in plain(said)
    found = nd.preset("ur10e", "found.urdf", components="found.yaml").tree
    motions = np.random.default_rng(1).normal(size=(50, 3, 6))
    errors = [nd.rnea(found, *motion) - nd.rnea(real, *motion) for motion in motions]
    assert np.sqrt(np.mean(np.square(errors))) < 0.05
    kept = nd.tools.load_mapping("found.log.yaml")
    assert (kept.columns[2].scale, len(kept.calibration)) == (GAINS["ur10e"], 6)
    for wrong, said in (
        (("--lock", "wrist"), "Did you mean 'wrist_"),
        (("--inertias", "refuse"), "a preset"),
        (("--keep", joints[0]), "arm.urdf: unknown fixed joint to keep"),
    ):
        assert said in plain(run("identify", "log.csv", *robot, *wrong)[2])


def test_of_a_preset_whose_joint_is_locked_the_others_keep_their_numbers(told, here):
    joints = [joint for joint in nd.preset("ur10e").data.order if joint]
    _, real = changed(nd.preset("ur10e", chain(Path("arm.urdf"), joints)).fitted([joints[2]]).tree, seed=2)
    assert real.joint_names == (*joints[:2], *joints[3:])
    with np.load(saved_log(Path("log.npz"), real, sigma=0.05)) as log:
        read = {name: np.insert(log[name], 2, 0.0, axis=1) for name in ("q", "qd", "tau")}
        columns = {"timestamp": log["t"]}
    read["current"] = read.pop("tau") / GAINS["ur10e"]
    columns |= {f"actual_{name}_{k}": own[:, k] for name, own in read.items() for k in range(6)}
    np.savetxt("log.csv", np.column_stack([*columns.values()]), delimiter=",", header=",".join(columns), comments="")
    files = ("--out", "found.urdf", "--components-out", "found.yaml")
    said = told("identify", "log.csv", "--robot", "ur10e", "--model", "arm.urdf", "--lock", joints[2], *files)
    assert plain(said).startswith("How the columns of log.csv are read - rtde:")
    found = nd.load_robot("found.urdf", locked=[joints[2]], components="found.yaml")
    motions = np.random.default_rng(1).normal(size=(50, 3, 5))
    errors = [nd.rnea(found, *motion) - nd.rnea(real, *motion) for motion in motions]
    assert np.sqrt(np.mean(np.square(errors))) < 0.05


def test_several_robots_have_files_of_their_own(told, run, here):
    """They share inertias: friction, which the second has half of, is its own."""
    own = here.components[0].model_copy(update={"viscous": 0.35})
    saved_log(Path("other.npz"), here.replace(components=(own,)), sigma=0.05, seed=2)
    logs = ("a=log.npz", "b=other.npz")
    said = told("identify", *logs, *UR5, "--parameters", "inertias,friction", "--no-physical", "--out", "found.urdf")
    assert {"Robot of a written to found.a.urdf.", "Robot of b written to found.b.urdf."} <= set(said.splitlines())
    a, b = (nd.load_robot(f"found.{name}.urdf") for name in "ab")
    np.testing.assert_array_equal(a.I, b.I)
    viscous = [[each.viscous for each in tree.components if each.type == "friction"] for tree in (a, b)]
    np.testing.assert_allclose(viscous[0], 0.7, atol=0.05)
    np.testing.assert_allclose(viscous[1], 0.35, atol=0.05)
    for wrong, message in ((("a=log.npz", "other.npz"), "name the robot of each log"), (("a=none.npz",), "none.npz")):
        status, _, errors = run("identify", *wrong, *UR5)
        assert status in (1, 2)
        assert message in plain(errors)


BOTH = pytest.param(("--out", "--components-out"), marks=pytest.mark.long)


@pytest.mark.parametrize("files", [("--out",), BOTH])
def test_what_is_said_to_load_it_loads_all_that_was_found(told, figures, here, files):
    """The friction of the corrected file was left out, and torques erred by all of it."""
    names = {"--out": "found.urdf", "--components-out": "found.yaml"}
    options = ("log.npz", *UR5, *(word for option in files for word in (option, names[option])))
    (words,) = re.findall(r"^Load it: (nd\..*)$", told("identify", *options), re.MULTILINE)
    assert figures("identify", *options)["load"] == words
    motions = np.random.default_rng(1).normal(size=(50, 3, 6))

    def error(tree) -> float:
        gaps = [nd.rnea(tree, *motion) - nd.rnea(here, *motion) for motion in motions]
        return float(np.sqrt(np.mean(np.square(gaps))))

    bare = nd.load_robot("found.urdf", components=False)
    assert max(error(eval(words)), error(nd.load_robot("found.urdf"))) < 0.05
    assert error(bare) > 1.0
    assert "friction of 6 joints included, since identified" in " ".join(nd.load_robot("found.urdf").notes)
    assert "friction of 6 joints left out" in " ".join(bare.notes)


def test_all_of_it_in_json_judged_on_another_log(figures, here):
    saved_log(Path("second.npz"), here, n=800, sigma=0.05, seed=7)
    found = figures("identify", "log.npz", *UR5, "--no-physical", "--held-out", "sec*.npz")
    assert sorted(path.name for path in Path().iterdir()) == ["log.npz", "second.npz"]
    assert (found["held_out"], found["samples"], found["written"]) == ("second.npz", 2000, {})
    assert all(fit["held_out"] == pytest.approx(0.05, rel=0.15) for fit in found["fits"])
    by_name = {each["name"]: each for each in found["parameters"]}
    viscous = by_name["viscous:wrist_1_joint"]
    assert viscous["how"] == "identified"
    assert viscous["value"] == pytest.approx(0.7, abs=5 * viscous["deviation"])


def test_a_load_whose_mass_is_known_identifies_gains(figures, here):
    I = here.I.copy()
    I[5] += np.diag([0.02] * 3 + [2.0] * 3)
    gains = np.array([2.0, 3.0, 1.5, 4.0, 2.5, 3.5])
    for name, tree, seed in (("free.npz", here, 1), ("loaded.npz", here.replace(I=I), 2)):
        log = dict(np.load(saved_log(Path(name), tree, sigma=0.02, seed=seed)))
        np.savez(name, **log | {"tau": log["tau"] / gains})
    wanted = ("--parameters", "inertias,friction,gains", "--no-physical", "--loaded", "loaded.npz")
    found = figures("identify", "free.npz", *UR5, *wanted, "--load-on", here.names[5], "--known", "m:load=2")
    by_name = {each["name"]: each for each in found["parameters"]}
    assert by_name["m:load"]["how"] == "known"
    assert [by_name[f"gain:tau:{joint}"]["value"] for joint in here.joint_names] == pytest.approx(gains, rel=0.02)


def test_a_payload_is_written_as_its_vendor_takes_it(run, told, figures, here):
    assert run("identify", "log.npz", *UR5, "--payload-out", "load.json")[0] == 2  # of which frame?
    I = here.I.copy()
    I[5] += np.diag([0.02] * 3 + [2.0] * 3)
    saved_log(Path("loaded.npz"), here.replace(I=I), sigma=0.01, seed=2)
    loaded = "--no-physical", "--loaded", "loaded.npz", "--load-on", here.names[5], "--payload-frame", "tool0"
    output = told("identify", "log.npz", *UR5, *loaded, "--payload-out", "load.script")
    assert "Payload written to load.script." in output.splitlines()
    m, x, y, z, *_ = map(float, re.findall(r"-?[\d.]+", Path("load.script").read_text()))
    at = here.frames["tool0"].X
    assert [m, x, y, z] == pytest.approx([2.0, *(at.E @ -at.r)], abs=0.02)
    written = figures("identify", "log.npz", *UR5, *loaded, "--payload-out", "load.json")["written"]
    assert written == {"payload": "load.json"}


def test_offsets_alone_are_a_calibration(run, told, here):
    arrays = dict(np.load(saved_log(Path("log.npz"), load("ur5"), sigma=0.01)))
    np.savez("log.npz", **arrays | {"tau": arrays["tau"] + np.arange(6)})
    output = told("identify", "log.npz", *UR5, "--parameters", "offsets")
    assert "6 of 6 combinations are identified" in output
    assert "--out" not in output  # there is nothing of a robot to write
    assert "wrist_3_joint" in output
    assert "--out ROBOT.urdf does that." in run("identify", "log.npz", *UR5, "--no-physical")[1]
    assert [path.name for path in Path().iterdir()] == ["log.npz"]  # nothing is written unasked


def test_what_is_odd_is_said_first(told, here):
    log = dict(np.load("log.npz"))
    np.savez("log.npz", **{k: v if k == "t" else 0 * v + v[5] for k, v in log.items()})
    said_first = " ".join(told("identify", "log.npz", *UR5, "--no-physical").partition("Fit by reading")[0].split())
    assert "Look at this first:" in said_first
    assert "stood still all the time" in said_first


REFUSED = [
    (("--held-out", "none.npz"), "none.npz"),
    (("--held-out", "2"), "the share held out is 2"),
    (("--out", "no/found.urdf"), "does not exist"),
    (("--html", "no/found.html"), "does not exist"),
    (("--payload-out", "load.txt", "--payload-frame", "tool0"), "ends in .json, .script, .yaml"),
    (("--payload-out", "load.json", "--payload-frame", "tool1"), "unknown frame 'tool1'"),
    (("--sensors", "forward_dynamics"), "do not determine the motion"),
    (("--contacts", "l_foot"), "the sensors have no contacts"),
    (("--recognise", "no.plan"), "no.plan"),
]


def test_what_is_refused_in_words(refused, here):
    for options, said in REFUSED:
        assert said in refused("identify", "log.npz", *UR5, *options)
        assert [path.name for path in Path().iterdir()] == ["log.npz"], options


def test_a_robot_with_feet_is_asked_whether_it_stands_fixed(run, tmp_path):
    columns = {f"{joint}_{k}": np.zeros(50) for joint in load("solo12").joint_names for k in ("pos", "vel", "torque")}
    np.savez(log := tmp_path / "log.npz", t=0.01 * np.arange(50), **columns)
    status, _, errors = run("identify", log, "--robot", ROBOTS["solo12"])
    assert status == 1
    assert "the robot has feet, FL_FOOT, FR_FOOT, HL_FOOT, HR_FOOT. Is its base fixed to the world?" in plain(errors)


@pytest.mark.parametrize("has_accelerometer", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_base_that_a_log_lacks_is_estimated_or_it_is_said_what_that_takes(run, tmp_path, has_accelerometer):
    """Columns that may be of it are named, and no other: it was said that a joint's position might be it."""
    tree, t = load("solo12", "floating"), 0.01 * np.arange(200)
    q = np.tile([0.0, 0.8, -1.6], 4) + 0.01 * np.sin(np.outer(t, np.arange(1, 13)))
    columns = {f"{joint}_pos": q[:, k] for k, joint in enumerate(tree.joint_names[1:])}
    columns |= {f"{joint}_vel": np.gradient(q[:, k], t) for k, joint in enumerate(tree.joint_names[1:])}
    columns |= {f"{joint}_torque": 0.1 * np.cos(t) for joint in tree.joint_names[1:]}
    columns |= {"imu_gyro": np.zeros((200, 3)), "imu_quat": np.tile([0.0, 0, 0, 1], (200, 1)), "note": t}
    if has_accelerometer:
        columns["imu_acc"] = np.tile([0.0, 0.0, 9.81], (200, 1))
    np.savez(log := tmp_path / "log.npz", t=t, **columns)
    options = (
        "--robot",
        ROBOTS["solo12"],
        "--base",
        "floating",
        "--parameters",
        "m:base_link",
        "--yes",
        "--no-physical",
    )
    status, said, errors = run("identify", log, *options)
    if has_accelerometer:
        assert status == 0, errors
        assert "'root_joint': estimated by its IMU, encoders and torques" in plain(said)
        assert "what the ground does there is unknown at every sample" in plain(said)
        return
    assert status == 1
    assert "'root_joint': not estimated, for which no column is of an accelerometer" in plain(said)
    assert "has no pose of the base, 'q:root_joint[0]' to 'q:root_joint[6]' (7 of 19 numbers of q" in plain(errors)
    assert "By their names imu_gyro (3 columns), imu_quat (4 columns) may be of it, or of an IMU." in plain(errors)


PENDULUM = ROBOTS["double_pendulum"]


def test_it_says_what_is_identifiable(told):
    output = told("observe", PENDULUM, "--parameters", "inertias")
    assert output.startswith("6 combinations of 20 parameters are identifiable.")
    assert "Identifiable combinations:" in output


def test_parameters_and_joints_that_stand_still(figures):
    assert figures("observe", PENDULUM, "--parameters", "inertias, rotors")["rank"] == 7
    found = figures("observe", PENDULUM, "--parameters", "inertias", "--still", "joint1", "--still", "joint2")
    assert found["still"] == ["joint1", "joint2"]
    assert found["rank"] == 2  # what each joint holds up


def test_a_floating_base_has_sensors_of_its_own(figures):
    found = figures("observe", PENDULUM, "--parameters", "inertias", "--base", "floating")
    assert found["sensors"] == "identification_floating"
    assert found["unknown_wrenches"]["eliminated"] == 6


def test_mistakes_are_one_line(refused):
    for options, said in (
        (("--parameters", "masses"), "error: unknown parameter 'masses' in robot"),
        (("--sensors", "inverse_dynamics"), "none says anything of the parameters"),
    ):
        assert said in refused("observe", PENDULUM, "--parameters", "inertias", *options)


QUICK = (
    *("--robot", ROBOTS["ur5"], "--duration", "4", "--harmonics", "3", "--starts", "1", "--parameters", "inertias"),
    "--no-shapes",
)


def test_the_table_and_what_is_said_of_it(told, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    out = tmp_path / "motion.csv"
    limits = ("--speed", "1.5", "--torque", "90")
    output = told("identify", "--excite", *QUICK, *limits, "--out", out, "--rate", "50")
    lines = output.splitlines()
    assert lines[0] == "Exciting motion of ur5"
    assert plain(output).endswith(f"201 samples written to {out}.")
    (elbow,) = [line for line in lines if line.startswith("elbow_joint")]
    assert elbow.endswith(" of 90")
    table = np.genfromtxt(out, delimiter=",", names=True, deletechars="")
    assert np.abs(table["qd:elbow_joint"]).max() <= 1.5
    assert len(nd.read_log(out).streams[0].columns) == 1 + 4 * 6


def test_json(figures):
    found = figures("identify", "--excite", *QUICK, "--criterion", "A", "--periodic")
    assert (found["criterion"], found["samples"]) == ("A", None)
    assert found["value"] >= found["best_of_random"]
    assert all(parameter["deviation"] > 0 for parameter in found["parameters"])


IMPOSSIBLE = [
    (("--speed", "fast"), 2, "Invalid value"),
    (("--duration", "0"), 1, "duration is 0 s"),
    (("--at", "elbow_joint"), 2, "'elbow_joint' is not a position"),
    (("--at", "elbow=1"), 1, "Did you mean 'elbow_joint'?"),
    (("--contacts", "tool0:soft"), 1, "stands in no way called 'soft'"),
    (("--torque", "0.1"), 1, "no posture in which robot 'ur5' can rest"),
    (("--sensors", "nothing"), 1, "unknown set of sensors"),
    (("--criterion", "E"), 2, "Invalid value"),
    (("--out", "none/motion.csv"), 1, "does not exist"),
    (("--out", "motion.xlsx"), 1, "must end in .csv"),
]


def test_what_cannot_be_done(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for options, status, message in IMPOSSIBLE:
        found, _, errors = run("identify", "--excite", *QUICK, *options)
        assert found == status, options
        assert message in plain(errors)
        assert not list(tmp_path.iterdir()), options
