"""nori-dyn observe: its verdict, its exit status, and what a newcomer reads."""

import json

import numpy as np
import pytest

import nori_dyn as nd
from tests.robots import EXAMPLE_ROBOT_DATA, ROBOTS, load
from tests.words import plain

ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_prosup", "wrist_pitch", "wrist_yaw")
UPPER = [f"{part}_{axis}" for part in ("torso", "neck") for axis in ("pitch", "roll", "yaw")]
UPPER += [f"{side}_{joint}" for side in "lr" for joint in ARM]
ICUB = (str(ROBOTS["iCubGenova04"]), "--base", "floating", *(f"--lock={name}" for name in UPPER), "--sensors")
"""Its legs."""

QUICK = ("--samples", "2", "--failing", "0")


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_sensors_that_do_not_suffice(run):
    status, output, errors = run("observe", *ICUB, "icub_feet_three_axes", "--where", "coplanar:l_sole,r_sole")
    assert (status, errors) == (1, "")
    lines = output.splitlines()
    assert lines[0].startswith("No, these sensors do not suffice. Whatever the pose, 92 of the 270 unknowns of")
    assert max(map(len, lines)) <= 80
    text = plain(output)
    assert "rank 269 of 270, 1 short" in text
    assert "- an internal force along the line in which the planes of r_sole and l_sole meet" in text
    assert "Not determined: fx:r_ankle_2 (5), fx:l_ankle_2 (5)" in text
    assert "Add this. A torque sensor in r_hip_pitch: then everything is determined, at almost every pose." in text
    assert "- any internal force in the common plane of r_sole and l_sole (3 independent)" in text


def test_sensors_that_suffice_but_for_poses_that_nobody_asked_for(run, told):
    """Standing on flat ground, a robot on five-axis load cells loses a rank: a script is to notice if it is strict."""
    text = plain(told("observe", *ICUB, "load_cells_five", *QUICK))
    assert text.startswith("Yes, but not at every pose. At almost every pose all 270 unknowns of")
    assert "1 combination of the external" in text
    assert "only the sum of the two is seen" in text
    status, output, errors = run("observe", *ICUB, "load_cells_five", *QUICK, "--strict")
    assert (status, errors) == (1, "")
    assert output.startswith("Yes, but not at every pose.")
    ur5 = (ROBOTS["ur5"], "--sensors", "forward_dynamics", *QUICK)
    assert run("observe", *ur5, "--strict")[0] == 0
    assert "With --strict, so it is where they do not at the likely special poses" in plain(run("observe", "--help")[1])


def test_poses_that_are_asked_for_count(run, tmp_path):
    assert run("observe", *ICUB, "load_cells_five", "--where", "flat:l_sole,r_sole", *QUICK)[0] == 1
    tree = load("iCubGenova04", "floating", locked=UPPER)
    Q = [tree.neutral_configuration(), tree.random_configuration(0)]
    path = tmp_path / "poses.npz"
    np.savez(path, q=np.array(Q))
    status, output, _ = run("observe", *ICUB, "load_cells_five", "--poses", path, "--where", "at_limits", *QUICK)
    assert status == 1
    assert "Of 2 poses given, 1 leaves something undetermined" in output
    np.savez(path, q=np.array(Q[1:]))
    assert run("observe", *ICUB, "load_cells_five", "--poses", path, *QUICK)[0] == 0


def test_poses_from_a_table(told, tmp_path):
    tree = nd.load_urdf(ROBOTS["ur5"])
    path = tmp_path / "poses.csv"
    names = ",".join(f"q:{name}" for name in tree.joint_names)
    np.savetxt(path, [tree.random_configuration(0)] * 2, delimiter=",", header=names, comments="")
    output = told("observe", ROBOTS["ur5"], "--sensors", "forward_dynamics", "--poses", path)
    assert output.startswith("Yes, these sensors suffice. At almost every pose all 120 unknowns")
    assert "Of 2 poses given, none leave something undetermined and none are nearly singular." in plain(output)


def test_figures_as_json(figures):
    where = ("--where", "parallel:l_sole,r_sole", "--where", "at_zero")
    found = figures("observe", *ICUB, "load_cells_five", *where, *QUICK, status=1)
    assert found["verdict"]["heading"] == "Yes, but not at every pose"
    assert found["conditions"][0]["outcome"] == (
        "1 combination of the external wrenches on r_ankle_2 and l_ankle_2 not determined"
    )
    assert (found["is_observable"], found["generic_rank"], found["variables"]) == (True, 270, 270)
    assert [(c["condition"], c["lost"]) for c in found["conditions"]] == [("parallel", 1), ("at_zero", 1)]
    (added,) = found["additions"]
    assert (added["at_poses"], added["is_smallest"], len(added["sensors"])) == (True, True, 1)
    (part,) = found["conditions"][0]["unseen"]
    assert part["dimension"] == 1
    assert "fx:l_ankle_2.mz" in part["vectors"][0]


WEIGHED = """
name: weighed
measurements:
  - {type: joint_acceleration, joints: all, sigma: 0.5}
  - {type: joint_torque, joints: {match: ".*"}, sigma: 0.3}
  - {type: external_wrench, links: {except: [wrist_3_link, forearm_link]}, value: 0}
  - {type: external_wrench, links: wrist_3_link, sigma: 2}
  - {type: external_wrench, links: forearm_link, sigma: 2}
"""


@pytest.fixture
def weighed(tmp_path):
    path = tmp_path / "weighed.yaml"
    path.write_text(WEIGHED)
    return (str(ROBOTS["ur5"]), "--sensors", str(path), "--samples", "12")


def test_the_workspace_and_failures(told, weighed, tmp_path):
    page = tmp_path / "page.html"
    output = told("observe", *weighed, "--outputs", "tau", "--html", page)
    *lines, last = output.splitlines()
    assert max(len(line) for line in lines if str(page) not in line) <= 80
    assert last.startswith("Next: nori-dyn plan ")
    text = plain(output)
    assert "Of 12 random poses within joint limits, none leave something undetermined" in text
    assert "Expected standard deviations" in text
    assert "If sensors fail. Any one of" in text
    assert "Page written to" in output
    assert "</html>" in page.read_text()


def test_the_workspace_as_json(figures, weighed):
    asked = ("--outputs", "tau", "--failing", "1", "--seed", "3", "--workers", "1")
    found = figures("observe", *weighed, *asked)
    expected = nd.conditioning(nd.System(nd.load_urdf(ROBOTS["ur5"]), weighed[2]), n=12, seed=3)
    workspace = found["workspace"]
    assert workspace["poses"] == 12
    assert np.array_equal(workspace["margins"], expected.smallest)
    assert np.array_equal(workspace["sigma"], expected.sigma)
    assert np.array_equal(workspace["configurations"], expected.configurations)
    assert workspace["worst"] == expected.worst.tolist()
    first = {"output": "tau:shoulder_pan_joint", "unit": "N m"}
    first |= {"median": np.median(expected.sigma[:, 0]), "worst": expected.sigma[:, 0].max()}
    first |= {"worst_pose": int(expected.sigma[:, 0].argmax())}
    assert workspace["deviations"][0] == first
    assert (found["redundancy"]["size"], found["redundancy"]["critical"]) == (1, {})


def test_outputs_that_are_not_determined(run, figures, tmp_path):
    path = tmp_path / "few.yaml"
    known = (
        "- {type: joint_acceleration, joints: all, sigma: 1}\n- {type: external_wrench, links: wrist_3_link, sigma: 1}"
    )
    path.write_text(f"name: few\nmeasurements:\n{known}\n")
    few = (ROBOTS["ur5"], "--sensors", path, "--samples", "3")
    status, output, _ = run("observe", *few, "--outputs", "tau,fx:wrist_3_link")
    text = plain(output)
    assert status == 1
    words = "At each of 3 random poses within joint limits something is not determined, as at almost every pose"
    assert f"{words}; none leave more undetermined." in text
    assert "Not determined at most poses: tau:shoulder_pan_joint, tau:shoulder_lift_joint" in text
    found = figures("observe", *few, status=1)
    assert found["workspace"]["deviations"][0]["median"] is None
    assert found["workspace"]["lacking_rank"] == 3


TOUCH = """
name: touch
measurements:
  - {type: joint_acceleration, joints: all, sigma: 0.5}
  - {type: joint_torque, joints: all, sigma: 0.3}
  - {type: external_wrench, links: {except: forearm_link}, value: 0}
"""


@pytest.fixture
def touch(tmp_path):
    path = tmp_path / "touch.yaml"
    path.write_text(TOUCH)
    return ("observe", ROBOTS["ur5"], "--sensors", path, "--samples", "3")


def test_the_answer_begins_with_what_was_asked(run, touch):
    status, output, _ = run(*touch, "--outputs", "fx:forearm_link")
    assert status == 1
    text = plain(output)
    assert text.startswith("5 of 6 components of fx:forearm_link are undetermined. Whatever the pose, 18 of the 120")
    assert "Add this. A six-axis force-torque sensor in shoulder_pan_joint: then everything is determined" in text
    *_, last = text.partition("Instead of it, any one of these does as well:")[2].partition("why")[0].split(" - ")
    assert last.strip() == "the external wrench, read or known, on forearm_link"
    assert text.endswith(
        "Any one of 11 of the 12 sensors may fail; 1 may not. Lost without each of those that may not: - "
        "tau:elbow_joint: fx:forearm_link.my Any 2 of these may also fail together."
    )


@pytest.mark.parametrize(
    ("outputs", "answer"),
    [
        ("tau", "tau is determined, but these sensors do not suffice."),
        ("tau:elbow_joint,qdd", "tau:elbow_joint and qdd are determined, but these sensors do not suffice."),
        ("tau,fx", "5 of 36 components of fx are undetermined."),
        ("f:wrist_1_link,f:forearm_link", "5 of 6 components of f:forearm_link are undetermined."),
    ],
)
def test_the_answer_to_other_questions(run, touch, outputs, answer):
    assert plain(run(*touch, "--failing", "0", "--outputs", outputs)[1]).startswith(answer)


def test_what_is_undetermined_anyway_is_not_lost(run, figures, touch, tmp_path):
    touch[3].write_text(TOUCH.replace("joint_torque, joints: all", "joint_torque, joints: shoulder_pan_joint"))
    text = plain(run(*touch, "--outputs", "fx:forearm_link,tau:elbow_joint")[1])
    assert text.startswith("All 6 components of fx:forearm_link and tau:elbow_joint are undetermined. Whatever")
    assert "Nothing of fx:forearm_link, tau:elbow_joint is determined, so nothing can be lost." in text
    found = figures(*touch, "--outputs", "tau", status=1)
    assert (
        found["asked"]["tau"] == found["redundancy"]["undetermined"] == ["tau:shoulder_lift_joint", "tau:elbow_joint"]
    )


def test_nothing_is_asked_unless_it_is_named(run, touch):
    assert run(*touch, "--failing", "0")[1].startswith("No, these sensors do not suffice. Whatever the pose, 18 of")
    report = nd.observability(nd.System(nd.load_urdf(ROBOTS["ur5"]), touch[3]), outputs=["fx:forearm_link"], n=1)
    assert str(report).startswith("5 of 6 components of fx:forearm_link are undetermined.")
    assert [len(addition.sensors) for addition in report.additions] == [1]
    with pytest.raises(nd.errors.UnknownOutputError, match="unknown output 'fy'"):
        nd.observability(report.system, outputs=["fy"])


def test_limits_that_leave_no_room(told):
    pendulum = EXAMPLE_ROBOT_DATA / "double_pendulum_description/urdf/double_pendulum_simple.urdf"
    output = told("observe", pendulum, "--sensors", "forward_dynamics", *QUICK)
    assert "note: limits of zero range ignored: joint1, joint2" in plain(output)


def test_without_the_workspace(told, figures, weighed):
    output = told("observe", *weighed[:-1], "0", "--failing", "0")
    assert "Over the workspace" not in output
    assert "If sensors fail" not in output
    found = figures("observe", *weighed[:-1], "0", "--failing", "0")
    assert found["workspace"] is found["redundancy"] is None


def test_wrong_use(run, refused):
    wrong = ("observe", *ICUB, "load_cells_five", "--where", "paralel:l_sole")
    assert "is not a special pose" in refused(*wrong, status=2)
    assert run("observe", *ICUB, "load_cells_five", "--where", "at_zero", "--where", "at_zero")[0] == 2
    assert "nope" in refused("observe", *ICUB, "load_cells_five", "--where", "parallel:l_sole,nope")
    assert "there is no such file" in refused("observe", *ICUB, "load_cells_five", "--poses", "none.csv")


OFFSETS = """
name: offsets
measurements:
  - {type: joint_acceleration, joints: all, sigma: 0.5}
  - {type: joint_torque, joints: all, sigma: 0.3, offset: {sigma: 1}}
  - {type: external_wrench, links: {except: wrist_3_link}, value: 0}
memory:
  offsets: {of: offset}
  push: {of: "fx:wrist_3_link"}
"""


def test_what_is_learned_over_several_poses(told, refused, figures, tmp_path):
    path = tmp_path / "offsets.yaml"
    path.write_text(OFFSETS)
    robot = (str(ROBOTS["ur5"]), "--sensors", str(path), *QUICK)
    output = told("observe", *robot)
    text = plain(output)
    assert "Over time. The sensors determine all 12 numbers of the memory, over 3 poses." in text
    assert "The memory, and what determines it:" in text
    assert max(map(len, output.splitlines()[:-1])) <= 80
    found = figures("observe", *robot, "--states", "1")
    assert found["over_time"]["ranks"] == [6]
    assert "nothing persists: the sensors have no" in refused(
        "observe", str(ROBOTS["ur5"]), "--sensors", "inverse_dynamics", "--states", "2", status=2
    )


def test_touches_that_torques_tell(run, told, tmp_path):
    path = tmp_path / "touch.yaml"
    row, memory = "{type: joint_torque, joints: all, sigma: 0.1}", "{speed: {of: qd, rate: qdd, noise: 0.001}}"
    path.write_text(f"name: touch\nmeasurements: [{row}]\nmemory: {memory}\ntouch: {{links: all}}\n")
    panda = ("panda", "--lock=panda_finger_joint1", "--lock=panda_finger_joint2", "--sensors", path)
    status, output, errors = run("observe", *panda)
    assert (status, errors) == (1, "")
    text = plain(output)
    assert "determine force and line of action of a touch on panda_link5, panda_link6, panda_link7." in text
    found = json.loads(run("observe", *panda, "--json")[1])
    assert [one["rank"] for one in found["links"]] == [1, 2, 3, 4, 5, 6, 6]
    status, _, errors = run("observe", *panda, "--failing", "0")
    assert status == 2
    assert "sensors that have `touch`" in plain(errors)
    path.write_text(path.read_text().replace(row, f"{row}, {{type: force_torque, joints: {{at: 0}}, sigma: 0.1}}"))
    assert run("observe", *panda)[0] == 0
