"""The node: its parameters are the options of `nori-dyn serve`."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

from nori_dyn.cli.common import how_differentiated
from nori_dyn.cli.estimator import EstimatorOptions
from nori_dyn.errors import NoriError
from nori_dyn.estimation.plan import Plan
from nori_dyn.estimation.run_options import options_of
from nori_dyn.live.account import Account
from nori_dyn.live.decoding import topics_of
from nori_dyn.live.service import Service, Settings
from nori_dyn.live.transport import LIMIT
from nori_dyn.logs.mapping.log_mapping import load_mapping
from nori_dyn_ros.ros_transport import RosTransport

PARAMETERS = {
    "plan": "",
    "mapping": "",
    "topics": "",
    "contacts": "stream",
    "lag": -1,
    "differentiate": "auto",
    "monitor": False,
    "backend": "auto",
    "prefix": "/nori_dyn",
    "queue": LIMIT,
    "period": 1.0,
}
"""What `nori-dyn serve --help` says of each option holds here; "" and -1 are those that are left out. Between `topics`
there are blanks; `contacts` is "stream" where the mapping tells them, or a tracker recognises them by its file."""


def settings_of(parameters: dict[str, object]) -> Settings:
    """How a run goes.

    Raises:
        NoriError: a parameter that cannot be.
    """
    mapping = load_mapping(str(parameters["mapping"])) if parameters["mapping"] else None
    contacts = str(parameters["contacts"])
    lag = int(str(parameters["lag"]))
    by = EstimatorOptions(Path(str(parameters["plan"])), backend=str(parameters["backend"]))
    return Settings(
        topics=topics_of(mapping, str(parameters["topics"]).split()),
        mapping=mapping,
        options=options_of(
            None,
            contacts=by.contacts(None if contacts == "stream" else contacts),
            monitor=bool(parameters["monitor"]),
            backend=by.backend,
            alarms=by.watching(),
        ),
        lag=by.late(None if lag < 0 else lag),
        differentiate=how_differentiated(str(parameters["differentiate"])),
        prefix=str(parameters["prefix"]),
        queue=int(str(parameters["queue"])),
        period=float(str(parameters["period"])),
    )


def serve(node: Node) -> Account:
    """Run until ROS is shut down, and return what was counted.

    Raises:
        NoriError: the plan or the parameters cannot be used so.
    """
    parameters = {name: node.declare_parameter(name, given).value for name, given in PARAMETERS.items()}
    settings = settings_of(parameters)
    transport = RosTransport(node, settings.queue)
    log = node.get_logger()
    service = Service(transport, Plan.load(str(parameters["plan"])), settings, log.warning)
    executor = SingleThreadedExecutor()
    executor.add_node(node)

    def spin() -> None:
        with suppress(ExternalShutdownException):
            executor.spin()

    receiving = threading.Thread(target=spin, daemon=True)
    receiving.start()
    try:
        total = service.run(lambda: not rclpy.ok())
    finally:
        transport.close()
        executor.shutdown()
        receiving.join()
    log.info(total.line(total))
    return total


def main(args: list[str] | None = None) -> int:
    """Run the node: exit status 0, or 1 on an error that is told."""
    rclpy.init(args=args)
    node = Node("nori_dyn")
    try:
        serve(node)
    except NoriError as error:
        node.get_logger().fatal(str(error))
        return 1
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    return 0
