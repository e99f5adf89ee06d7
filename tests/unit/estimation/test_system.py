"""Systems of named sensors, and what is told where one thing is given for another."""

from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import WrongKindError
from nori_dyn.system.builder import System as Built

TREE = nd.autotree(3)
SENSORS = nd.sensors("inverse_dynamics")
SYSTEM = nd.System(TREE, SENSORS)


def test_the_systems_of_plans_are_public_ones(tmp_path):
    plan = nd.plan(SYSTEM)
    plan.save(tmp_path / "my.plan")
    assert isinstance(nd.Plan.load(tmp_path / "my.plan").system, nd.System)
    assert isinstance(plan.system, nd.System)
    assert isinstance(nd.plan(Built(TREE, SENSORS)), nd.Plan)


def test_plan_sets_of_named_sensors(tmp_path):
    path = tmp_path / "touch.yaml"
    touch = "[{type: external_wrench, links: link3}]"
    path.write_text(
        "name: touch\nmeasurements:\n  - {type: joint_acceleration, joints: all}\n"
        "  - {type: external_wrench, links: {except: [link3]}}\n"
        f"contacts:\n  tip: {{closed: {touch}, open: {touch}}}\n"
    )
    assert nd.plan(TREE, path, outputs=("tau",)).states == (("tip",), ())


ROBOT = r"a robot \(KinematicTree\), not "
WRONG = [
    (lambda: nd.System(SENSORS, TREE), ROBOT + r"a SensorSet: the robot comes first.* nd\.System\(tree, sen"),
    (lambda: nd.System("inverse_dynamics", TREE), ROBOT + "'inverse_dynamics': load it first"),
    (
        lambda: nd.System("robot.urdf", "inverse_dynamics"),
        ROBOT + r"'robot\.urdf': load it first, nd\.System\(nd\.load_robot\('robot\.urdf'\), sensors\)",
    ),
    (lambda: nd.System(Path("robot.urdf"), SENSORS), r"load it first.*load_robot\('robot\.urdf'\)"),
    (lambda: nd.System(None, SENSORS), ROBOT + "None"),
    (lambda: nd.System(TREE, TREE), r"sensors \(.*\), not a KinematicTree: .*'inverse_dynamics'"),
    (lambda: nd.System(TREE, {"name": "x"}), "not a dict"),
    (lambda: nd.sensors(5), "the name of a shipped set or a YAML file, not 5"),
    (
        lambda: nd.plan(TREE),
        r"nd\.plan takes a system \(System\), not a KinematicTree: .* nd\.plan\(nd\.System\(tree, 'inverse_dyn",
    ),
    (
        lambda: nd.plan("robot.urdf"),
        r"not 'robot\.urdf': .* nd\.plan\(nd\.System\(nd\.load_robot\('robot\.urdf'\), 'inverse_dynamics'\)\)",
    ),
    (lambda: nd.plan(SENSORS), r"not a SensorSet: .* nd\.plan\(nd\.System\(tree, sensors\)\)"),
    (lambda: nd.plan(np.eye(3)), "not a ndarray"),
    (lambda: nd.plan(object()), "not an object"),
    (lambda: nd.plan(SYSTEM, SENSORS), ROBOT + "a System"),
    (lambda: nd.plan(SENSORS, TREE), ROBOT + "a SensorSet"),
    (lambda: nd.plan(TREE, None), "not None"),
    (lambda: nd.observability(TREE), r"nd\.observability\(nd\.System\(tree, 'inverse_dynamics'\)\)"),
    (lambda: nd.conditioning(TREE), r"nd\.conditioning\(nd\.System\(tree, 'inverse_dynamics'\)\)"),
    (lambda: nd.redundancy("robot.urdf"), r"nd\.redundancy takes a system"),
    (lambda: nd.observability(SYSTEM, where="coplanar"), r"takes special poses with their frames, not 'coplanar'"),
    (lambda: nd.read_log(["a.csv", "b.csv"]), r"takes its path, not a list: .* one after the other"),
    (lambda: nd.Plan.load(3), "not 3"),
    (lambda: nd.load_robot(SYSTEM), "not a System"),
    (lambda: nd.load_urdf(None), "not None"),
    (lambda: nd.identify("log.npz", "panda"), r"robot \(KinematicTree\) or a system after the logs, not 'panda'"),
    (lambda: nd.identify(3, TREE), "not 3"),
    (lambda: nd.identifiability([], ["inertias"]), r"nd\.identifiability takes a system"),
    (lambda: nd.preset("panda", model=TREE), "not a KinematicTree"),
    (lambda: nd.preset("panda", components=[]), "not a list"),
    (lambda: nd.place(SYSTEM, None), r"nd\.place takes a robot .*, not a System: .* nd\.place\(tree, candidates"),
    (
        lambda: nd.placement.best_sensors("robot.urdf", None),
        r"load it first, nd\.placement\.best_sensors\(nd\.load_robot",
    ),
]


def test_one_thing_for_another():
    for call, message in WRONG:
        with pytest.raises(WrongKindError, match=message) as caught:
            call()
        assert isinstance(caught.value, nd.errors.NoriError)
        assert "\n" not in str(caught.value)
