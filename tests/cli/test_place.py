"""nori-dyn place: what it chooses, writes and refuses, and what a newcomer reads."""

from pathlib import Path

import pytest

from tests.robots import ROBOTS
from tests.words import plain

ICUB = (str(ROBOTS["iCubGenova04"]), "--base", "floating", "--keep", "sensors", "--candidates")
EXAMPLE = Path(__file__).parents[2] / "notebooks" / "icub_candidates.yaml"

UR5 = """
name: ur5
measurements:
  - {type: external_wrench, links: all, value: 0}
candidates:
  measurements:
    - {type: joint_acceleration, joints: all, sigma: 0.1}
    - {type: joint_torque, joints: all, sigma: 1}
costs: {joint_torque: 30, joint_acceleration: 7}
"""


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def ur5(tmp_path):
    path = tmp_path / "ur5.yaml"
    path.write_text(UR5)
    return path


@pytest.mark.long
def test_icub_among_all_its_sensors(told, tmp_path):
    """One force-torque sensor of six and three accelerometers of 62 suffice, and no cheaper set does."""
    bought = tmp_path / "bought.yaml"
    lines = told("place", *ICUB, EXAMPLE, "--out", bought).splitlines()
    assert lines[0] == "4 sensors for 3,120: the cheapest possible."
    assert max(len(line) for line in lines if str(bought) not in line) <= 80
    assert lines[-1].startswith("Next: nori-dyn plan ")
    assert lines[-1].endswith(f"--sensors {bought} --base floating --keep sensors --outputs tau")
    assert sum("_ft " in line and "3,000" in line for line in lines) == 1
    output = told("observe", *ICUB[:-1], "--sensors", bought, "--samples", "2", "--failing", "0")
    assert output.startswith("Yes, these sensors suffice. At almost every pose all 778 unknowns")


def test_the_best_in_json(figures, ur5):
    found = figures("place", ROBOTS["ur5"], "--candidates", ur5, "--best", "7")
    assert len(found["chosen"]) == 7
    assert found["bound"] <= found["value"]
    assert 0 <= found["gap"] < 1
    assert found["sigma"].keys() == set(found["outputs"])
    found = figures("place", ROBOTS["ur5"], "--candidates", ur5, "--outputs", "all")
    assert (found["cost"], found["is_optimal"], len(found["chosen"])) == (42, True, 6)
    assert found["exchanges"].keys() == set(found["chosen"])
    assert found["expected"]["known_least"].startswith("Least precise: ")


def test_the_page_and_the_best_as_it_is_read(told, refused, ur5, tmp_path):
    page = tmp_path / "page.html"
    output = told("place", ROBOTS["ur5"], "--candidates", ur5, "--html", page)
    assert output.startswith("6 sensors for 42: the cheapest possible.")
    assert "Page written to" in output
    assert "6 sensors for 42" in page.read_text()
    refused("place", ROBOTS["ur5"], "--candidates", ur5, "--html", tmp_path / "none" / "page.html")
    output = told("place", ROBOTS["ur5"], "--candidates", ur5, "--best", "6", "--criterion", "D")
    assert "least determinant of the covariance" in plain(output)
    assert "N m" in output


def test_what_nothing_replaces_is_said_to_be_irreplaceable(told, tmp_path):
    path = tmp_path / "few.yaml"
    path.write_text(UR5.replace("- {type: joint_torque, joints: all", "- {type: joint_torque, joints: elbow_joint"))
    lines = told("place", ROBOTS["ur5"], "--candidates", path, "--outputs", "qdd:wrist_3_joint").splitlines()
    assert ["qdd:wrist_3_joint", "7", "irreplaceable"] in [line.split() for line in lines]


TOUCHED = """
contacts:
  tool:
    closed: []
    open: [{type: external_wrench, links: wrist_3_link, value: 0}]
"""


def test_sensors_of_which_any_may_fail_at_poses_and_in_contact_states(told, figures, refused, tmp_path):
    path, out, poses = tmp_path / "touched.yaml", tmp_path / "chosen.yaml", tmp_path / "poses.csv"
    cell = "candidates:\n  measurements:\n    - {type: force_torque, joints: wrist_3_joint, sigma: 1}"
    there = UR5.replace("links: all, value", "links: {except: wrist_3_link}, value")
    path.write_text(there.replace("candidates:\n  measurements:", cell) + TOUCHED)
    names = ["shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"]
    poses.write_text(",".join(f"q:{name}_joint" for name in names) + "\n" + "0,1,0,0,1,0\n" * 2)
    command = "place", ROBOTS["ur5"], "--candidates", path, "--outputs", "tau:wrist_3_joint"
    asked = "--survive", "1", "--where", "at_zero", "--poses", poses, "--out", out
    lines = told(*command, *asked).splitlines()
    said = " ".join(lines)
    assert "at almost every pose, at_zero (1 pose) and poses.csv (2 poses), in each of 2 contact states" in said
    assert "whichever one of them fails." in said
    assert lines[-1].endswith("--contacts all")
    assert max(len(line) for line in lines if str(out) not in line) <= 80
    assert told("plan", ROBOTS["ur5"], "--sensors", out, "--outputs", "tau:wrist_3_joint", "--contacts", "all")
    found = figures(*command, "--contacts", "none")
    assert (found["survive"], found["contact_states"], found["cost"]) == (0, [[]], 1)
    assert "unknown contact 'foot'" in refused(*command, "--contacts", "foot")
    assert "is not a special pose" in refused(*command, "--where", "lying", status=2)
    assert "outputs open" in refused(*command, "--survive", "12")


def test_the_front_as_table_and_page(told, figures, refused, ur5, tmp_path):
    page = tmp_path / "front.html"
    command = "place", ROBOTS["ur5"], "--candidates", ur5, "--outputs", "tau:wrist_2_joint,tau:wrist_3_joint"
    output = told(*command, "--pareto", "--html", page)
    assert "no set is both cheaper and more precise than one of them" in plain(output)
    assert "sets of sensors" in page.read_text()
    points = figures(*command, "--pareto")["points"]
    assert all(point["is_optimal"] for point in points)
    for point in points[:2]:
        found = figures(*command, "--deviation", str(point["deviation"] * 1.000001))
        assert found["cost"] == point["cost"]
    refused(*command, "--pareto", "--deviation", "1", status=2)
    refused(*command, "--pareto", "--best", "2", status=2)
    refused(*command, "--best", "2", "--deviation", "1", status=2)
    assert "more than 0.001" in refused(*command, "--deviation", "0.001")


REFUSED = [
    ("name: a\ncandidates: 3\n", "bad.yaml:2: at candidates"),
    ("name: a\ncandidates:\n  measurements:\n    - {type: joint_torque, joint: all}\n", "bad.yaml:4: in candidates"),
    ("name: a\nprices: {}\ncandidates: {}\n", "bad.yaml:2: at prices"),
    ("name: a\ncandidates: {}\n", "candidates 'a' has no sensors"),
    ("name: a\ncandidates: [", "bad.yaml:2: is not YAML"),
    ("name: a\ncandidates: {from_model: {barometer: {sigma: 1}}}\n", "unknown type or name"),
    ("name: a\ncandidates: {measurements: [{type: joint_torque, joints: elbow_joint}]}", "leave 5 of 6 outputs open"),
]


def test_what_cannot_be_chosen(refused, tmp_path):
    path = tmp_path / "bad.yaml"
    for text, message in REFUSED:
        path.write_text(text)
        assert message in refused("place", ROBOTS["ur5"], "--candidates", path, "--out", tmp_path / "out.yaml")
        assert not (tmp_path / "out.yaml").exists(), text
    refused("place", ROBOTS["ur5"], "--candidates", tmp_path / "none.yaml")
