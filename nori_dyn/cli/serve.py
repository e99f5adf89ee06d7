"""nori-dyn serve: run a plan over a live stream."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import nori_dyn as nd
from nori_dyn.cli.common import how_differentiated, show_found
from nori_dyn.cli.estimator import EstimatorOptions
from nori_dyn.cli.options import Json
from nori_dyn.errors import InputError
from nori_dyn.tables.progress import BottomLine

if TYPE_CHECKING:
    from nori_dyn.live.account import Account

SWITCH = 5e-4
"""How long the thread that takes messages waits for the one that estimates [s]: under overload both have work."""


def serve(
    ctx: typer.Context,
    *,
    by: EstimatorOptions,
    mapping: Path | None = None,
    topic: Annotated[list[str] | None, typer.Option(metavar="TOPIC[=TYPE]")] = None,
    contacts: str | None = None,
    differentiate: Annotated[str | None, typer.Option(metavar="<way>")] = None,
    monitor: bool = False,
    lag: Annotated[int | None, typer.Option(min=0)] = None,
    meshes: Annotated[str | None, typer.Option(metavar="ROBOT")] = None,
    listen: Annotated[list[str] | None, typer.Option(metavar="ENDPOINT")] = None,
    connect: Annotated[list[str] | None, typer.Option(metavar="ENDPOINT")] = None,
    ros_domain: Annotated[int | None, typer.Option(metavar="N", min=0, max=232)] = None,
    prefix: str = "/nori_dyn",
    queue: Annotated[int, typer.Option(min=1)] = 256,
    duration: float | None = None,
    samples: Annotated[int | None, typer.Option(min=1)] = None,
    every: float | None = None,
    as_json: Json = False,
) -> None:
    """Run a plan over a live stream of messages, and publish the estimates.

    Messages are those of ROS 2, sensor_msgs/JointState, geometry_msgs/WrenchStamped and so on, over Zenoh. An estimate
    is made whenever the topic comes that tells the first joint, or which the mapping names as its clock; of the others
    the latest is taken. A plan of sensors with `memory` runs as a filter, with a lag as a smoother. What is wrong with
    messages is counted and ends nothing. Ctrl-C, or SIGTERM, ends it.

    Example: nori-dyn serve --robot go2 --what contacts

    Example: nori-dyn serve --plan panda.plan --mapping panda.yaml --duration 60

    Args:
        ctx: The call.
        by: See `EstimatorOptions`.
        mapping: A YAML file that ties the columns of topics to the robot, with units, signs, clocks and delays, as for
            estimate. Without it, topics are as the preset knows them, or joint states go by the names of joints.
        topic: Listen to this topic too, of this type of messages: /ft=geometry_msgs/msg/WrenchStamped; repeatable.
            Those that the mapping names are listened to anyway; without either, /joint_states.
        contacts: The contacts that are closed throughout: l_foot,r_foot, or none. Otherwise the mapping says what tells
            it. With `recognise`, a plan of sensors with `memory` finds out which are closed, and publishes how likely
            each is.
        differentiate: How joint accelerations that nothing tells are made of the velocities so far: auto, where it is
            left out, by Kalman filters that find the noise of each joint; none, to refuse such streams.
        monitor: Judge the readings, and publish p_value, deviations and suspects as well.
        lag: Of a plan of sensors with `memory`: estimate a sample so many later, from the readings until then. What the
            file of a tracker says, or none, when left out.
        meshes: The URDF, or the robot's name, whose collision shapes say where links are touched that sensors with
            `touch` recognise.
        listen: Where to listen; repeatable. By default tcp/127.0.0.1:7447, which this machine alone reaches; with
            --connect any free port of it. tcp/0.0.0.0:7447 lets the whole network in.
        connect: What to connect to, a Zenoh router or peer: tcp/192.168.1.5:7447; repeatable.
        ros_domain: Publish for nodes of rmw_zenoh in this ROS domain, and listen to those. Without it, estimates are
            published under their plain names, and nodes of domain 0 are listened to.
        prefix: What the topics of estimates begin with.
        queue: Messages that wait, at most; then the oldest are dropped, and counted.
        duration: Stop after so many seconds.
        samples: Stop after so many estimates.
        every: Seconds between two accounts; 1 on a terminal, 10 where there is none.
        as_json: Print the figures as JSON.
    """
    import gc

    from nori_dyn.estimation.log_estimate import with_peaks
    from nori_dyn.estimation.log_run import LogRunner
    from nori_dyn.estimation.run_options import options_of
    from nori_dyn.live.decoding import topics_of
    from nori_dyn.live.service import Service, Settings, Stop
    from nori_dyn.live.zenoh_transport import Endpoints, ZenohTransport

    for name, seconds in (("--duration", duration), ("--every", every)):
        if seconds is not None and not seconds > 0:
            raise InputError(f"{name} is {seconds:g}: it must be positive.")
    by.check(ctx)
    plans = nd.Plan.load(str(by.plan)) if by.preset is None else by.preset.plan(by.what)
    known = nd.tools.load_mapping(mapping) if mapping is not None else by.preset.live if by.preset else None
    chosen, surfaces = by.contacts(contacts), by.touched(plans.tree, meshes)
    options = options_of(
        None, None, chosen, monitor=monitor, backend=by.backend, alarms=by.watching(), surfaces=surfaces
    )
    if by.untouched is not None:
        of_logs = options_of(how_differentiated(differentiate or "kalman"), alarms=options.alarms, missing="drop")
        runner = with_peaks(LogRunner(plans, of_logs), by.free_logs(mapping))
        options = replace(options, alarms=runner.options.alarms)
    settings = Settings(
        topics=topics_of(known, topic or ()),
        mapping=known,
        options=options,
        lag=by.late(lag),
        differentiate=how_differentiated(differentiate),
        prefix=f"/{prefix.strip('/')}",
        queue=queue,
        period=every or (1.0 if sys.stderr.isatty() else 10.0),
    )
    endpoints = Endpoints(None if listen is None else tuple(listen), tuple(connect or ()), ros_domain, ros_domain or 0)
    stop, line = Stop(), BottomLine()

    def watch(period: Account, total: Account) -> None:
        line.show(period.line(total) if total.estimates else "")

    with stop.on_signals():
        transport = ZenohTransport(endpoints)
        try:
            service = Service(transport, plans, settings, line.tell, watch)
            sys.setswitchinterval(SWITCH)
            gc.collect()
            gc.freeze()  # what is there now stays: later collections need not go through it
            line.tell(f"{transport.place}; hearing {', '.join(settings.topics)}; Ctrl-C ends it")
            total = service.run(stop, duration, samples)
        finally:
            transport.close()
            line.show("")
    show_found(total.document(service.measured_from), as_json, topics=list(service.publication.topics))
    if not total.estimates:
        reason = f"waited for {service.waiting_for}" if service.engine is None else "all samples were left out"
        raise InputError(f"nothing was estimated: {reason}.")
