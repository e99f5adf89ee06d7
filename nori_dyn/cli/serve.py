"""nori-dyn serve: run a plan over a live stream."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from nori_dyn.cli.common import (
    FalseAlarms,
    Json,
    Model,
    PresetName,
    Untouched,
    What,
    chosen_alarms,
    how_differentiated,
    named_contacts,
    print_json,
    refuse_given,
)
from nori_dyn.errors import InputError
from nori_dyn.report.terminal import show

SWITCH = 5e-4
"""How long the thread that takes messages waits for the one that estimates [s]: under overload both have work."""


def serve(
    ctx: typer.Context,
    plan: Annotated[Path | None, typer.Option(help="The file of a plan, or of a plan set.")] = None,
    robot: PresetName = None,
    model: Model = None,
    what: What = None,
    mapping: Annotated[
        Path | None,
        typer.Option(
            help="A YAML file that ties the columns of topics to the robot, with units, signs, clocks and delays, as "
            "for estimate. Without it, topics are as the preset knows them, or joint states go by the names of joints."
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC[=TYPE]",
            help="Listen to this topic too, of this type of messages: /ft=geometry_msgs/msg/WrenchStamped; repeatable. "
            "Those that the mapping names are listened to anyway; without either, /joint_states.",
        ),
    ] = None,
    contacts: Annotated[
        str | None,
        typer.Option(
            help="The contacts that are closed throughout: l_foot,r_foot, or none. Otherwise the mapping says what "
            "tells it. With `recognise`, a plan of sensors with `memory` finds out which are closed, and publishes how "
            "likely each is."
        ),
    ] = None,
    differentiate: Annotated[
        str | None,
        typer.Option(
            metavar="<way>",
            help="How joint accelerations that nothing tells are made of the velocities so far: auto, where it is left "
            "out, by Kalman filters that find the noise of each joint; 51, by a window of so many samples (Savitzky "
            "and Golay), whose delay is told; none, to refuse such streams.",
        ),
    ] = None,
    monitor: Annotated[
        bool,
        typer.Option("--monitor", help="Judge the readings, and publish p_value, deviations and suspects as well."),
    ] = False,
    lag: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Of a plan of sensors with `memory`: estimate a sample so many later, from the readings until then. "
            "What the file of a tracker says, or none, when left out.",
        ),
    ] = None,
    meshes: Annotated[
        str | None,
        typer.Option(
            metavar="ROBOT",
            help="The URDF, or the robot's name, whose collision shapes say where links are touched that sensors with "
            "`touch` recognise.",
        ),
    ] = None,
    alarms: FalseAlarms = None,
    untouched: Untouched = None,
    backend: Annotated[str, typer.Option(help="numpy, umfpack, or auto for the fastest that runs here.")] = "auto",
    listen: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ENDPOINT",
            help="Where to listen; repeatable. By default tcp/127.0.0.1:7447, which this machine alone reaches; with "
            "--connect any free port of it. tcp/0.0.0.0:7447 lets the whole network in.",
        ),
    ] = None,
    connect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ENDPOINT",
            help="What to connect to, a Zenoh router or peer: tcp/192.168.1.5:7447; repeatable.",
        ),
    ] = None,
    ros_domain: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=232,
            help="Publish for nodes of rmw_zenoh in this ROS domain, and listen to those. Without it, estimates are "
            "published under their plain names, and nodes of domain 0 are listened to.",
        ),
    ] = None,
    prefix: Annotated[str, typer.Option(help="What the topics of estimates begin with.")] = "/nori_dyn",
    queue: Annotated[
        int, typer.Option(min=1, help="Messages that wait, at most; then the oldest are dropped, and counted.")
    ] = 256,
    duration: Annotated[float | None, typer.Option(help="Stop after so many seconds.")] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Stop after so many estimates.")] = None,
    every: Annotated[
        float | None,
        typer.Option(help="Seconds between two accounts; 1 on a terminal, 10 where there is none."),
    ] = None,
    realtime: Annotated[
        bool, typer.Option("--realtime", help="Run before all processes without a real-time priority (Linux).")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a plan over a live stream of messages, and publish the estimates.

    Messages are those of ROS 2, sensor_msgs/JointState, geometry_msgs/WrenchStamped and so on, over Zenoh. An estimate
    is made whenever the topic comes that tells the first joint, or which the mapping names as its clock; of the others
    the latest is taken. A plan of sensors with `memory` runs as a filter, with a lag as a smoother. What is wrong with
    messages is counted and ends nothing. Ctrl-C, or SIGTERM, ends it.

    Example: nori-dyn serve --robot go2 --what contacts

    Example: nori-dyn serve --plan panda.plan --mapping panda.yaml --duration 60
    """
    import gc

    from nori_dyn.descriptions.surfaces import surfaces
    from nori_dyn.estimation.log_estimate import with_peaks
    from nori_dyn.estimation.log_run import RECOGNISE, LogRunner, options_of
    from nori_dyn.estimation.plan import Plan
    from nori_dyn.estimation.preset_logs import preset_log
    from nori_dyn.estimation.presets import preset
    from nori_dyn.live.decoding import topics_of
    from nori_dyn.live.engine import StreamOptions
    from nori_dyn.live.service import Service, Settings
    from nori_dyn.live.terminal import Stop, take_precedence, teller
    from nori_dyn.live.zenoh_transport import Endpoints, ZenohTransport
    from nori_dyn.logs.log import logs_called, read_log
    from nori_dyn.logs.mapping.log_mapping import load_mapping

    for name, seconds in (("--duration", duration), ("--every", every)):
        if seconds is not None and not seconds > 0:
            raise InputError(f"{name} is {seconds:g}: it must be positive.")
    if (plan is None) == (robot is None):
        raise typer.BadParameter("name a plan, or a robot that has a preset: --robot.", param_hint="--plan")
    if robot is None:
        refuse_given(ctx, ("model", "what"), "needs --robot.")
    ready = None if robot is None else preset(robot, model)
    plans = Plan.load(str(plan)) if ready is None else ready.plan(what)
    known = load_mapping(mapping) if mapping is not None else ready.live if ready else None
    wanted = None if ready is None else ready.estimand(what)
    contacts = contacts or (wanted.contacts if wanted else None)
    recognises = contacts == RECOGNISE
    closed = None if contacts is None or recognises else named_contacts(contacts)
    way = StreamOptions.of(plan, monitor, backend, closed, lag, recognises)
    way = replace(way, alarms=chosen_alarms(alarms, wanted.alarms if wanted else way.alarms))
    if meshes is not None:
        way = replace(way, surfaces=surfaces(meshes, plans.tree))
    elif ready is not None and plans.sensors.has_touches:
        way = replace(way, surfaces=ready.of(what).surfaces)
    if untouched is not None:
        free = [read_log(path, mapping) for path in logs_called(untouched)]
        free = free if ready is None else [preset_log(ready, log, what).log for log in free]
        options = options_of(how_differentiated(differentiate or "kalman"), alarms=way.alarms, missing="drop")
        way = replace(way, alarms=with_peaks(LogRunner(plans, options), free).options.alarms)
    settings = Settings(
        topics=topics_of(known, topic or ()),
        mapping=known,
        way=way,
        differentiate=how_differentiated(differentiate),
        prefix=f"/{prefix.strip('/')}",
        queue=queue,
        period=every or (1.0 if sys.stderr.isatty() else 10.0),
    )
    endpoints = Endpoints(None if listen is None else tuple(listen), tuple(connect or ()), ros_domain, ros_domain or 0)
    stop = Stop()
    if realtime:
        take_precedence()
    with stop.on_signals(), teller() as people:
        transport = ZenohTransport(endpoints)
        try:
            service = Service(transport, plans, settings, people.tell, people.watch)
            sys.setswitchinterval(SWITCH)
            gc.collect()
            gc.freeze()  # what is there now stays: later collections need not go through it
            people.tell(f"{transport.place}; hearing {', '.join(settings.topics)}; Ctrl-C ends it")
            total = service.run(stop, duration, samples)
        finally:
            transport.close()
    if as_json:
        topics = list(service.publication.topics)
        print_json({**total.figures(), "measured_from": service.measured_from, "topics": topics})
    else:
        show(total.document(service.measured_from))
    if not total.estimates:
        reason = f"waited for {service.waiting_for}" if service.engine is None else "all samples were left out"
        raise InputError(f"nothing was estimated: {reason}.")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(serve)
