"""Which of a base's velocity, tilt, yaw, position and offsets sensors determine, against finite motions in 60 digits.

Products of velocities are inputs of a tick, at the last estimate. What only they would tell, an angular velocity by the
pull at an accelerometer, the package does not count: where nothing reads that velocity it may say less, and how many
instants of a motion it takes may be another. At rest both say the same after each instant, and else in the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection

import mpmath as mp
import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform
from nori_dyn.model.joints import MOTION, Free
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.learned_exact import FieldStates, Persisting
from tests.finite_motions import DIGITS, GRAVITY, FiniteMotion, Reading, exp, numbers
from tests.systems import sensor_set

SETS = 100
SHORT = (25, 30, 46, 76, 79, 85)
"""Those of the short suite, which are quick."""
ALL = ["wx", "wy", "wz", "vx", "vy", "vz"]
LABELS = {"gyroscope": ("gyro", MOTION[:3]), "accelerometer": ("acc", MOTION[3:])}


def drawn(seed: int) -> tuple[KinematicTree, list[Reading]]:
    """A random robot with a free base and sensors on it."""
    rng, n = np.random.default_rng(seed), 2 + seed % 5
    tree = nd.tools.random_tree(n, seed, ["revolute", "prismatic"], chain=0.4)
    tree = tree.replace(joints=(Free(), *tree.joints[1:]), X_tree=(Transform.identity(), *tree.X_tree[1:]))

    def on(kinds: Collection[str], counts: Collection[int], offsets: float = 0.0) -> list[Reading]:
        links = rng.choice(n, size=min(int(rng.choice(list(counts))), n), replace=False)
        return [Reading(str(rng.choice(list(kinds))), int(link), bool(rng.random() < offsets)) for link in links]

    found: list[Reading] = []
    while not found:
        found += on(["gyroscope"], (0, 1, 1, 1, 2), offsets=0.6)
        found += on(["accelerometer"], (0, 1, 1, 1), offsets=0.6)
        found += on(["point", "point", "plane"], (0, 1, 1, 2, 2, 3))
    return tree, found


def system_of(tree: KinematicTree, readings: Collection[Reading]) -> tuple[nd.System, list[str]]:
    """The same sensors for the package, both of a link as one imu, and the names of what they may tell."""
    names = [f"base:{of}" for of in ("velocity.x", "velocity.y", "velocity.z", "gravity.x", "gravity.y", "gravity.z")]
    names += [f"base:angular_velocity.{component}" for component in MOTION[:3]]
    rows: list[dict] = [{"type": "joint_acceleration", "joints": "actuated"}]
    halves: dict[str, dict] = {}
    for each in readings:
        link = tree.names[each.link]
        if each.kind in LABELS:
            label, components = LABELS[each.kind]
            names += [f"offset:{label}:{link}.{component}" for component in components if each.has_offset]
            offset = {"offset": {"sigma": 1.0}} if each.has_offset else {}
            halves.setdefault(link, {})[each.kind] = {"sigma": 0.1} | offset
        else:
            components = ALL if each.kind == "plane" else ALL[3:]
            rows.append({"type": "zero_velocity", "links": link, "components": components, "sigma": 0.1})
    for link, half in halves.items():
        if len(half) == 2:
            rows.append({"type": "imu", "links": link} | half)
        rows += [{"type": kind, "links": link} | own for kind, own in half.items() if len(half) == 1]
    memory = {"base": {"of": "base"}}
    if any(each.has_offset for each in readings):
        memory["bias"] = {"of": "offset"}
    return nd.System(tree, sensor_set(*rows, name="sensors of a base", memory=memory)), names


def motion_of(tree: KinematicTree, readings: list[Reading], what: str, n: int, rng: np.random.Generator):
    """A random motion over n ticks: of all, of the joints, or of the base alone, or none."""

    def some(moves: bool, *shape: int) -> np.ndarray:
        return numbers(rng.normal(size=shape) * moves)

    joints, base, m = what in ("all", "joints"), what in ("all", "base"), tree.nv - 6
    q = some(True, n, m) if joints else np.repeat(some(True, 1, m), n, axis=0)
    R = exp(some(True, 3))
    force = some(base, n, 3) - R.T @ GRAVITY * (not base)
    rates = some(joints, n, m), some(joints, n, m)
    return FiniteMotion(
        tree, readings, q, *rates, R, some(True, 3), some(base, 3), some(base, 3), force, some(base, n, 3)
    )


@pytest.mark.parametrize("seed", [k if k in SHORT else pytest.param(k, marks=pytest.mark.long) for k in range(SETS)])
def test_what_is_determined_is_what_finite_motions_determine(seed):
    tree, readings = drawn(seed)
    system, names = system_of(tree, readings)
    report, rng = nd.observability(system, where=None).over_time, np.random.default_rng(seed)
    assert sorted(report.names) == sorted(names)
    states, n = FieldStates(Persisting.of(system), seed), max(3, report.states + 1)
    reads_turning = any(each.kind in ("gyroscope", "plane") for each in readings)
    joints = range(1, tree.n_links)
    for what, moving in ("all", None), ("rest", ()), (("joints", joints), ("base", [0]))[seed % 2]:
        with mp.workdps(DIGITS):
            true = motion_of(tree, readings, what, n, rng).told()
        assert not any(now.pose for now in true)
        expected = [{names[i] for i in now.numbers} for now in true]
        subspaces = list(itertools.islice(states.subspaces(moving), n))
        seen = [{report.names[i] for i in each.seen} for each in subspaces]
        if what == "rest":
            assert (seen, [each.rank for each in subspaces]) == (expected, [now.rank for now in true])
        elif reads_turning:
            assert (seen[-1], subspaces[-1].rank) == (expected[-1], true[-1].rank)
        assert seen[-1] <= expected[-1]
        if what == "all":
            assert seen[-1] == {name for name, k in zip(report.names, report.seen_after, strict=True) if k}
            assert subspaces[-1].rank == report.rank
