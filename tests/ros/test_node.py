"""The node of ros/nori_dyn_ros against a stand-in for rclpy: see tests/ros/stand_in.py for what that proves."""

import importlib
import runpy
import sys
import threading
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import nori_dyn as nd
from tests.messages_of_ros import JOINT_STATE, decode, joint_state
from tests.ros.stand_in import Graph, install, launch_modules
from tests.systems import braked

PACKAGE = Path(__file__).parents[2] / "ros" / "nori_dyn_ros"
NAMES = ("joint1", "joint2")
PATIENCE = 120.0


@pytest.fixture
def plan(tmp_path):
    nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"]).save(tmp_path / "arm.plan")
    return str(tmp_path / "arm.plan")


@pytest.fixture
def node(monkeypatch):
    def imported(graph):
        install(monkeypatch, graph, PACKAGE)
        return importlib.import_module("nori_dyn_ros.node")

    yield imported
    for name in [name for name in sys.modules if name.partition(".")[0] == "nori_dyn_ros"]:
        del sys.modules[name]


def run(module, graph, feed):
    """Run the node in this thread while another one publishes, until that says it is enough."""

    def publish():
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not feed(graph):
            time.sleep(0.002)
        graph.is_up = False

    feeding = threading.Thread(target=publish)
    feeding.start()
    status = module.main()
    feeding.join()
    return status


def test_estimates_of_joint_states_are_published(node, plan):
    graph = Graph(plan=plan)
    heard = []
    graph.receivers["/nori_dyn/joint_states"] = [heard.append]

    def feed(graph):
        graph.publish("/joint_states", joint_state(time.time(), NAMES, np.ones(2), np.zeros(2)))
        return len(heard) >= 10

    assert run(node(graph), graph, feed) == 0
    message = decode(heard[-1], JOINT_STATE)
    tree = nd.autotree(2)
    still = nd.rnea(tree, np.ones(2), np.zeros(2), np.zeros(2))
    np.testing.assert_allclose(message.effort, still, rtol=1e-6)
    assert any("velocities are collected" in line for line in graph.logged)
    assert "Hz | latency p50" in graph.logged[-1]
    assert graph.receivers["/joint_states"] == []


def test_the_parameters_are_the_options_of_serve(node, plan, tmp_path):
    (tmp_path / "arm.yaml").write_text(
        "columns: [{of: 'q:{joint}', from: '/arm.position:{joint}'}, {of: 'qd:{joint}', from: '/arm.velocity:{joint}'}]"
    )
    graph = Graph()
    module = node(graph)
    usual = module.PARAMETERS | {"plan": plan}
    settings = module.settings_of(
        usual | {"mapping": str(tmp_path / "arm.yaml"), "topics": "/ft=geometry_msgs/msg/WrenchStamped"}
    )
    assert set(settings.topics) == {"/ft", "/arm"}
    assert (settings.options.closed, settings.differentiate, settings.queue) == (None, "auto", 256)
    assert (settings.lag, settings.options.hypotheses) == (0, None)
    assert module.settings_of(usual | {"contacts": "none"}).options.closed == ()
    assert module.settings_of(usual | {"contacts": "l_foot, r_foot"}).options.closed == ("l_foot", "r_foot")
    assert module.settings_of(usual | {"lag": 8}).lag == 8
    braking = nd.plan(nd.autotree(1), braked(0.1, 0.1, 0.01), outputs=["fx:link1"])
    braking.save(tmp_path / "brake.plan")
    usual |= {"plan": str(tmp_path / "brake.plan")}
    assert module.settings_of(usual | {"contacts": "recognise"}).options.hypotheses == nd.Hypotheses()
    nd.Tracker(braking, 0.001, hypotheses=nd.Hypotheses(rate=5.0)).save(tmp_path / "brake.plan")
    assert module.settings_of(usual).options.hypotheses == nd.Hypotheses(rate=5.0)  # as its file says


def test_an_error_is_told_and_ends_it(node, tmp_path):
    graph = Graph(plan=str(tmp_path / "nothing.plan"))
    assert node(graph).main() == 1
    assert "nothing.plan" in graph.logged[-1]


def test_the_package_is_of_one_piece():
    """What package.xml and setup.py name is there."""
    root = ElementTree.parse(PACKAGE / "package.xml").getroot()
    name = root.findtext("name")
    assert (PACKAGE / "resource" / name).is_file()
    assert f'NAME = "{name}"' in (PACKAGE / "setup.py").read_text()
    assert (PACKAGE / name / "node.py").is_file()
    assert f'version="{root.findtext("version")}"' in (PACKAGE / "setup.py").read_text()


def test_the_launch_file_gives_the_node_parameters_that_it_has(node, monkeypatch):
    known = node(Graph()).PARAMETERS
    for name, module in launch_modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    described = runpy.run_path(str(PACKAGE / "launch" / "serve.launch.py"))["generate_launch_description"]()
    *arguments, started = described["entities"]
    assert (started["package"], started["executable"]) == ("nori_dyn_ros", "serve")
    assert '"console_scripts": [f"serve = {NAME}.node:main"]' in (PACKAGE / "setup.py").read_text()
    (parameters,) = started["parameters"]
    assert [argument["name"] for argument in arguments] == list(parameters)
    for argument in arguments:
        name = argument["name"]
        assert parameters[name] == {"value": name, "value_type": type(known[name])}
        assert str(known[name]).lower() == argument["default_value"]
        assert argument["description"]
