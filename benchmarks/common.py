"""What the benchmarks share: functions that take turns, quartiles of their times, and trees in Pinocchio."""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import nori_dyn as nd


def rounds(functions: dict[str, Callable[[], object]], n_rounds: int, seconds: float) -> dict[str, np.ndarray]:
    """Return the time of one call of each function in each round [s]; they take turns."""
    counts = {}
    for name, function in functions.items():
        start = time.perf_counter()
        function()
        counts[name] = max(1, int(seconds / max(time.perf_counter() - start, 1e-7)))
    times = {name: np.empty(n_rounds) for name in functions}
    for k in range(n_rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                function()
            times[name][k] = (time.perf_counter() - start) / counts[name]
    return times


def quartiles(values: np.ndarray) -> list[float]:
    """Return the lower quartile, the median and the upper quartile."""
    return [float(x) for x in np.percentile(values, [25, 50, 75])]


def arguments(description: str | None) -> argparse.Namespace:
    """Return what the command line says: quick, json, plot."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds, for a first look")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--plot", type=Path, help="where to draw them")
    return parser.parse_args()


def keep(
    results: list[dict[str, Any]], options: argparse.Namespace, draw: Callable[[list[dict[str, Any]], Path], None]
) -> None:
    """Write the figures and draw them, where the command line says so."""
    record = {"processor": platform.processor() or platform.machine(), "pinocchio": pin.__version__, "results": results}
    if options.json:
        options.json.write_text(json.dumps(record, indent=1))
    if options.plot:
        draw(results, options.plot)


def pinocchio_of(tree: nd.KinematicTree) -> pin.Model:
    """Return a tree of revolute and prismatic joints about or along x, y or z in Pinocchio."""
    model = pin.Model()
    joints: list[int] = []
    for i, joint in enumerate(tree.joints):
        parent = 0 if tree.is_root(i) else joints[tree.parents[i]]
        X, I = tree.X_tree[i], tree.I[i]
        kind = {"revolute": "R", "prismatic": "P"}[joint.kind] + "XYZ"[int(np.argmax(joint.axis))]
        peer = getattr(pin, f"JointModel{kind}")()
        joints.append(model.addJoint(parent, peer, pin.SE3(X.E.T, X.r), tree.joint_names[i]))
        mass = I[3, 3]
        com = np.array([I[2, 4], I[0, 5], I[1, 3]]) / (mass or 1.0)
        about_com = I[:3, :3] + mass * pin.skew(com) @ pin.skew(com)
        model.appendBodyToJoint(joints[-1], pin.Inertia(mass, com, about_com), pin.SE3.Identity())
    return model
