"""A stand-in for what the node calls of rclpy: topics in one process, messages as bytes, checked by rosbags' classes.

It takes and gives what rclpy documents: `create_subscription(..., raw=True)` hands over bytes, `publish` takes bytes as
well as messages, parameters are declared with their defaults. It is no test of rclpy.
"""

import sys
import threading
from types import ModuleType, SimpleNamespace

from tests.messages_of_ros import STORE


class Graph:
    """All topics, whether ROS is up, and the parameters that were given."""

    def __init__(self, **parameters):
        self.parameters, self.receivers, self.is_up, self.logged = parameters, {}, False, []

    def publish(self, topic, payload):
        for receive in tuple(self.receivers.get(topic, ())):
            receive(payload)


class Logger:
    def __init__(self, graph):
        self._graph = graph

    def _log(self, line):
        assert isinstance(line, str)
        self._graph.logged.append(line)

    info = warning = fatal = _log


class Publisher:
    def __init__(self, graph, kind, topic):
        self._graph, self._kind, self.topic = graph, kind, topic

    def publish(self, message):
        assert isinstance(message, bytes)
        STORE.deserialize_cdr(message, self._kind.__msgtype__)  # raises where it is none
        self._graph.publish(self.topic, message)


def modules(graph):
    """The modules that the node imports, by name."""

    class Node:
        def __init__(self, name):
            assert graph.is_up
            self._name = name

        def get_fully_qualified_name(self):
            return f"/{self._name}"

        def get_logger(self):
            return Logger(graph)

        def declare_parameter(self, name, value):
            given = graph.parameters.get(name, value)
            assert type(given) is type(value)  # as rclpy insists
            return SimpleNamespace(value=given)

        def create_subscription(self, kind, topic, callback, qos, *, raw=False):
            assert raw
            assert isinstance(qos, QoSProfile)
            assert kind.__msgtype__ in STORE.types
            graph.receivers.setdefault(topic, []).append(callback)
            return topic, callback

        def create_publisher(self, kind, topic, depth):
            assert isinstance(depth, int)
            return Publisher(graph, kind, topic)

        def destroy_subscription(self, subscription):
            topic, callback = subscription
            graph.receivers[topic].remove(callback)

        def destroy_publisher(self, publisher):
            pass

        def destroy_node(self):
            pass

    class QoSProfile:
        def __init__(self, *, depth, reliability):
            assert depth > 0
            assert reliability == "best effort"

    class SingleThreadedExecutor:
        def __init__(self):
            self._is_over = threading.Event()

        def add_node(self, node):
            assert isinstance(node, Node)

        def spin(self):
            self._is_over.wait()

        def shutdown(self):
            self._is_over.set()

    def init(args=None):
        graph.is_up = True

    def try_shutdown():
        graph.is_up = False

    return {
        "rclpy": module("rclpy", init=init, ok=lambda: graph.is_up, try_shutdown=try_shutdown),
        "rclpy.node": module("rclpy.node", Node=Node),
        "rclpy.qos": module(
            "rclpy.qos", QoSProfile=QoSProfile, ReliabilityPolicy=SimpleNamespace(BEST_EFFORT="best effort")
        ),
        "rclpy.executors": module(
            "rclpy.executors",
            SingleThreadedExecutor=SingleThreadedExecutor,
            ExternalShutdownException=type("ExternalShutdownException", (Exception,), {}),
        ),
        "rosidl_runtime_py": module("rosidl_runtime_py"),
        "rosidl_runtime_py.utilities": module(
            "rosidl_runtime_py.utilities", get_message=lambda kind: STORE.types[kind]
        ),
    }


def launch_modules():
    """What the launch file imports, by name: all of it says what it was given."""
    given = {
        "launch": {"LaunchDescription": lambda entities: {"entities": entities}},
        "launch.actions": {"DeclareLaunchArgument": lambda name, **more: {"name": name, **more}},
        "launch.substitutions": {"LaunchConfiguration": lambda name: name},
        "launch_ros": {},
        "launch_ros.actions": {"Node": lambda **more: more},
        "launch_ros.parameter_descriptions": {"ParameterValue": lambda value, **more: {"value": value, **more}},
    }
    return {name: module(name, **parts) for name, parts in given.items()}


def module(name, **parts):
    made = ModuleType(name)
    made.__dict__.update(parts)
    return made


def install(monkeypatch, graph, package):
    """Have the node import the stand-in; forget what was imported with another one."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "nori_dyn_ros"]:
        monkeypatch.delitem(sys.modules, name)
    for name, part in modules(graph).items():
        monkeypatch.setitem(sys.modules, name, part)
    monkeypatch.syspath_prepend(str(package))
