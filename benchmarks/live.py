"""How long it takes from publishing joint states to publishing the estimate, between two processes; and overload.

Run from the repository: `python -m benchmarks.live [--seconds 60] [--realtime] [--json FILE]`. `nori-dyn serve` runs as
a process of its own, the publisher as another, both on two cores, over Zenoh on the loopback, at 1 kHz. Latencies are
by the clock of the machine: from just before a message is handed to Zenoh to just after the estimate was. Overload is
measured with a monitor, at ten times as many messages as it takes, and then again at a rate that it keeps up with.
"""

from __future__ import annotations

import argparse
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
from pathlib import Path
from typing import Any

import numpy as np

import nori_dyn as nd
from benchmarks.machine import machine
from nori_dyn.live.zenoh_transport import Endpoints, ZenohTransport
from tests.messages_of_ros import JOINT_STATE, joint_state

TOPIC = "/joint_states"
MOTION = 997
"""Messages after which the motion repeats."""

DIFFERENTIATED = ("--differentiate", "21")
CONSTANTS = {"q:root": [0, 0, 0.6, 0, 0, 0, 1], "qd:root": [0.0] * 6, "qdd:root": [0.0] * 6}
"""Of the humanoid, which stands still."""


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


def plans(folder: Path) -> dict[str, tuple[Path, list[str]]]:
    """Write plans and mappings, and return where plans are, and the options that go with them."""
    arm = nd.load_robot("panda", locked=("panda_finger_joint1", "panda_finger_joint2"))
    touch = nd.plan(nd.System(arm, "touch"), outputs=("tau", "fx:panda_hand"))
    touch.save(folder / "panda.plan")
    nd.plan(arm, nd.SensorSet.from_dict(TOUCHED), outputs=("fx:panda_hand",)).save(folder / "touched.plan")
    humanoid = nd.load_robot("icub", base="floating")
    nd.plan(nd.System(humanoid, "inverse_dynamics"), outputs=("tau",)).save(folder / "icub.plan")
    joints = {"q:{joint}": "position", "qd:{joint}": "velocity"}
    told = [{"of": of, "from": f"{TOPIC}.{field}:{{joint}}"} for of, field in joints.items()]
    root = humanoid.joint_names[0]
    still = [{"of": of.replace("root", root), "value": value} for of, value in CONSTANTS.items()]
    effort = {"of": "tau:{joint}", "from": f"{TOPIC}.effort:{{joint}}"}
    (folder / "icub.yaml").write_text(json.dumps({"columns": [*told, *still]}))
    (folder / "even.yaml").write_text(json.dumps({"columns": [*told, effort, {"of": "qdd:{joint}", "value": 0.0}]}))
    return {
        "panda, touch": (folder / "panda.plan", [*DIFFERENTIATED]),
        "icub, inverse dynamics": (folder / "icub.plan", [*DIFFERENTIATED, "--mapping", str(folder / "icub.yaml")]),
        "panda, contact": (folder / "touched.plan", ["--contacts", "recognise"]),
        "panda, monitor": (folder / "panda.plan", ["--monitor", "--mapping", str(folder / "even.yaml")]),
    }


def messages(plan: Path) -> list[bytearray]:
    """Return joint states of a motion within the limits of the joints."""
    tree = nd.Plan.load(plan).tree
    rng = np.random.default_rng(0)
    centre = tree.random_configuration(rng)
    joints = [(name, s.start) for name, s in zip(tree.joint_names, tree.q_slices, strict=True) if s.stop - s.start == 1]
    names, places = [name for name, _ in joints], [place for _, place in joints]
    phase, speed = rng.uniform(0, 6, len(names)), 2 * np.pi / MOTION * rng.integers(1, 4, len(names))
    found = []
    for k in range(MOTION):
        q = centre[places] + 0.1 * np.sin(speed * k + phase)
        qd = 0.1 * 1000 * speed * np.cos(speed * k + phase)
        found.append(bytearray(joint_state(0.0, names, q, qd, np.zeros(len(names)))))
    return found


def publish(plan: Path, place: str, phases: Sequence[tuple[float, float]]) -> None:
    """Publish at rates [Hz] for so many seconds each, and print how many were sent, and when, as JSON."""
    content, stamp = messages(plan), struct.Struct("<iI")
    transport = ZenohTransport(Endpoints(listen=(), connect=(place,)), waits=True)
    send = transport.advertise(TOPIC, JOINT_STATE)
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
        sent.append({"rate": rate, "messages": round(rate * seconds), "seconds": time.time() - start})
    time.sleep(1.0)
    transport.close()
    print(json.dumps(sent))


def measure(
    plan: Path, options: Sequence[str], phases: Sequence[tuple[float, float]], realtime: bool = False
) -> dict[str, Any]:
    """Return what `nori-dyn serve` says of a stream, what it was sent, and what it told on the way."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = f"tcp/127.0.0.1:{probe.getsockname()[1]}"
    given = [*options, "--every", "1", *(["--realtime"] if realtime else [])]
    serve = [sys.executable, "-m", "nori_dyn", "serve", "--plan", str(plan), "--listen", place, "--json"]
    load = os.getloadavg()[0]
    served = subprocess.Popen(
        [*serve, *given],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert served.stderr is not None
    first = served.stderr.readline()  # it listens
    if not first.startswith("listening"):
        raise SystemExit(first + served.stderr.read())
    said = ",".join(f"{rate}:{seconds}" for rate, seconds in phases)
    publisher = [sys.executable, "-m", "benchmarks.live", "--publish", str(plan), place, said]
    priority = ["chrt", "-f", "5"] if realtime else []
    sent = json.loads(subprocess.run([*priority, *publisher], stdout=subprocess.PIPE, check=True, text=True).stdout)
    served.send_signal(signal.SIGTERM)
    output, told = served.communicate()
    return {"sent": sent, "load": [load, os.getloadavg()[0]], "told": told.splitlines(), **json.loads(output)}


def shown(found: dict[str, Any]) -> str:
    """Return a line on a run."""
    streams, sent = found["streams"][TOPIC], sum(part["messages"] for part in found["sent"])
    latency = "".join(f"{1e3 * found['latency'][name]:9.3f}" for name in ("p50", "p99", "max"))
    received = f"{sent:10,d}{streams['received']:10,d}{streams.get('lost', 0):6d}{found['dropped']:9,d}"
    load = "-".join(f"{each:.1f}" for each in found["load"])
    return f"{received}{found['estimates']:11,d}{latency}{found['overruns']:10d}   {load}"


HEADER = (
    f"{'':24}{'sent':>10}{'received':>10}{'lost':>6}{'dropped':>9}{'estimates':>11}{'p50 [ms]':>9}{'p99':>9}{'max':>9}"
    f"{'overruns':>10}   load"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each run at 1 kHz")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each robot")
    parser.add_argument("--realtime", action="store_true", help="both processes before all others (needs the right to)")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--publish", nargs=3, metavar=("PLAN", "PLACE", "RATE:SECONDS,..."), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.publish:
        plan, place, said = options.publish
        publish(Path(plan), place, [tuple(map(float, part.split(":"))) for part in said.split(",")])  # type: ignore[misc]
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    results: dict[str, Any] = {"machine": machine()}
    print(f"{results['machine']['processor']}, two cores\n{HEADER}")
    with tempfile.TemporaryDirectory() as folder:
        known = plans(Path(folder))
        for name in ("panda, touch", "panda, contact", "icub, inverse dynamics"):
            for k in range(options.repeat):
                found = measure(*known[name], [(1000.0, options.seconds)], options.realtime)
                results[f"{name}, run {k + 1}"] = found
                print(f"{name:24}{shown(found)}", flush=True)
        flood = measure(*known["panda, monitor"], [(20_000.0, 5.0)])
        capacity = flood["estimates"] / sum(part["seconds"] for part in flood["sent"])
        usual, over = 0.2 * capacity, 10 * capacity
        found = measure(*known["panda, monitor"], [(usual, 5.0), (over, 10.0), (usual, 10.0)])
        results["overload"] = {"capacity": capacity, **found}
    offered = ", ".join(f"{part['messages'] / part['seconds']:,.0f}/s" for part in found["sent"])
    print(f"{'panda, monitor, overload':24}{shown(found)}\n")
    print(f"It takes {capacity:,.0f} messages a second; offered {offered}:")
    print("\n".join(f"  {line}" for line in found["told"]))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
