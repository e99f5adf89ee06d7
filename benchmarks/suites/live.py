"""From publishing joint states to publishing the estimate, between two processes; and overload.

`nori-dyn serve` runs as a process of its own, the publisher, which is this module as a program, as another, both on two
cores, over Zenoh on the loopback, at 1 kHz. Latencies are by the clock of the machine: from just before a message is
handed to Zenoh to just after the estimate was. Overload is measured with a monitor, at ten times as many messages as it
takes, and then again at a rate that it keeps up with.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import nori_dyn as nd
from benchmarks.harness import Result, figure_tables
from benchmarks.suites.base import Options, Suite
from nori_dyn.tables.progress import Progress

TOPIC, KIND = "/joint_states", "sensor_msgs/msg/JointState"
MOTION = 997
"""Messages after which the motion repeats."""

TOUCHED = {
    "name": "touched",
    "measurements": [
        {"type": "joint_torque", "joints": "all", "sigma": 0.5},
        {"type": "joint_acceleration", "joints": "all", "value": 0, "sigma": 100},
        {"type": "external_wrench", "links": {"except": ["panda_hand"]}, "value": 0},
    ],
    "contacts": {
        "hand": {
            "closed": [
                {"type": "external_wrench", "links": "panda_hand", "components": ["mx", "my", "mz"], "value": 0}
            ],
            "open": [{"type": "external_wrench", "links": "panda_hand", "value": 0}],
        }
    },
    "memory": {"speed": {"of": "qd", "rate": "qdd", "noise": 0.001}},
}
"""Of an arm whose hand may be touched: velocities persist, and whether it is, is recognised."""

Phases: TypeAlias = Sequence[tuple[float, float]]
"""Rates [Hz], and for how many seconds each."""


def plans(folder: Path) -> dict[str, tuple[Path, list[str]]]:
    """Write plans and mappings; where plans are, and the options that go with them."""
    arm = nd.load_robot("panda", locked=("panda_finger_joint1", "panda_finger_joint2"))
    nd.plan(nd.System(arm, "touch"), outputs=("tau", "fx:panda_hand")).save(folder / "panda.plan")
    nd.plan(arm, nd.SensorSet.from_dict(TOUCHED), outputs=("fx:panda_hand",)).save(folder / "touched.plan")
    humanoid = nd.load_robot("icub", base="floating")
    nd.plan(nd.System(humanoid, "inverse_dynamics"), outputs=("tau",)).save(folder / "icub.plan")
    joints = {"q:{joint}": "position", "qd:{joint}": "velocity"}
    read, root = (
        [{"of": of, "from": f"{TOPIC}.{field}:{{joint}}"} for of, field in joints.items()],
        humanoid.joint_names[0],
    )
    still = {f"q:{root}": [0, 0, 0.6, 0, 0, 0, 1], f"qd:{root}": [0.0] * 6, f"qdd:{root}": [0.0] * 6}
    fixed = [{"of": of, "value": value} for of, value in still.items()]
    effort = {"of": "tau:{joint}", "from": f"{TOPIC}.effort:{{joint}}"}
    (folder / "icub.yaml").write_text(json.dumps({"columns": [*read, *fixed]}))
    (folder / "even.yaml").write_text(json.dumps({"columns": [*read, effort, {"of": "qdd:{joint}", "value": 0.0}]}))
    return {
        "Panda, touch": (folder / "panda.plan", []),
        "iCub, inverse dynamics": (folder / "icub.plan", ["--mapping", str(folder / "icub.yaml")]),
        "Panda, touch recognised": (folder / "touched.plan", ["--contacts", "recognise"]),
        "Panda, monitor": (folder / "panda.plan", ["--monitor", "--mapping", str(folder / "even.yaml")]),
    }


def messages(plan: Path) -> list[bytearray]:
    """Joint states of a motion within the limits of the joints, as ROS 2 writes them."""
    typesys = import_module("rosbags.typesys")
    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    stamp = store.types["builtin_interfaces/msg/Time"](sec=0, nanosec=0)
    header = store.types["std_msgs/msg/Header"](stamp=stamp, frame_id="")
    tree, rng = nd.Plan.load(plan).tree, np.random.default_rng(0)
    centre = tree.random_configuration(rng)
    joints = [(name, s.start) for name, s in zip(tree.joint_names, tree.q_slices, strict=True) if s.stop - s.start == 1]
    names, places = [name for name, _ in joints], [place for _, place in joints]
    phase, speed = rng.uniform(0, 6, len(names)), 2 * np.pi / MOTION * rng.integers(1, 4, len(names))
    found = []
    for k in range(MOTION):
        q = centre[places] + 0.1 * np.sin(speed * k + phase)
        qd = 0.1 * 1000 * speed * np.cos(speed * k + phase)
        state = {"name": names, "position": q, "velocity": qd, "effort": np.zeros(len(names))}
        found.append(bytearray(store.serialize_cdr(store.types[KIND](header=header, **state), KIND)))
    return found


def publish(plan: Path, place: str, phases: Phases) -> None:
    """Publish at rates for so many seconds each, and print how many were sent, and when, as JSON."""
    from nori_dyn.live.zenoh_transport import Endpoints, ZenohTransport

    content, stamp = messages(plan), struct.Struct("<iI")
    transport = ZenohTransport(Endpoints(listen=(), connect=(place,)), waits=True)
    send = transport.advertise(TOPIC, KIND)
    time.sleep(1.0)  # the other side is to know of it
    sent, number = [], 0
    for rate, seconds in phases:
        start = time.time()
        for k in range(round(rate * seconds)):
            wait = start + k / rate - time.time()
            if wait > 0:
                time.sleep(wait)
            payload = content[number % MOTION]
            stamp.pack_into(payload, 4, *divmod(time.time_ns(), 10**9))
            send(bytes(payload))
            number += 1
        sent.append({"messages": round(rate * seconds), "seconds": time.time() - start})
    time.sleep(1.0)
    transport.close()
    print(json.dumps(sent))


def served(plan: Path, options: Sequence[str], phases: Phases, realtime: bool) -> dict[str, Any]:
    """What `nori-dyn serve` says of a stream, and what it was sent."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = f"tcp/127.0.0.1:{probe.getsockname()[1]}"
    serve = [sys.executable, "-m", "nori_dyn", "serve", "--plan", str(plan), "--listen", place, "--json", *options]
    command = [*(["chrt", "-f", "10"] if realtime else []), *serve]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    first = server.stderr.readline()  # it listens
    if not first.startswith("listening"):
        raise RuntimeError(first + server.stderr.read())
    asked = ",".join(f"{rate}:{seconds}" for rate, seconds in phases)
    publisher = [*(["chrt", "-f", "5"] if realtime else []), sys.executable, "-m", __name__, str(plan), place, asked]
    sent = json.loads(subprocess.run(publisher, stdout=subprocess.PIPE, check=True, text=True).stdout)
    server.send_signal(signal.SIGTERM)
    output, _ = server.communicate()
    return {"sent": sent, **json.loads(output)}


def _result(name: str, found: dict[str, Any], **more: float) -> Result:
    stream = found["streams"][TOPIC]
    counts = {"sent": sum(part["messages"] for part in found["sent"]), "lost": stream.get("lost", 0)}
    figures = {**counts, "dropped": found["dropped"], "estimates": found["estimates"], "overruns": found["overruns"]}
    figures |= {f"{part} [ms]": 1e3 * found["latency"][part] for part in ("p50", "p99", "max")}
    return Result({"plan": name}, figures={**figures, "load": os.getloadavg()[0], **more})


def measure(options: Options, progress: Progress) -> list[Result]:
    for name in ("zenoh", "rosbags"):
        if find_spec(name) is None:
            return [Result({}, skipped={"live streams": f"{name} is not installed"})]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    seconds, results = 5.0 if options.quick else 60.0, []
    with tempfile.TemporaryDirectory() as folder:
        *even, monitor = plans(Path(folder)).items()
        for k, (name, plan) in enumerate(even):
            progress(f"live, {name}", k / 4)
            results.append(_result(name, served(*plan, [(1000.0, seconds)], options.realtime)))
        progress("live, overload", 0.75)
        name, plan = monitor
        flood = served(*plan, [(20_000.0, 5.0)], options.realtime)
        capacity = flood["estimates"] / sum(part["seconds"] for part in flood["sent"])
        phases = [(0.2 * capacity, 5.0), (10 * capacity, 10.0), (0.2 * capacity, 10.0)]
        found = served(*plan, phases, options.realtime)
        results.append(_result(f"{name}, overload", found, **{"messages a second that it takes": capacity}))
    return results


SUITE = Suite(
    "live",
    "A live stream at 1 kHz",
    measure,
    tables=figure_tables,
    notes=("overload: in ten of 25 seconds, ten times as many messages as it takes.",),
)

if __name__ == "__main__":
    plan, place, asked = sys.argv[1:]
    publish(Path(plan), place, [(float(rate), float(s)) for rate, s in (part.split(":") for part in asked.split(","))])
