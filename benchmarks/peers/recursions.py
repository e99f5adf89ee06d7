"""Recursions written in NumPy: what plain Python costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import nori_dyn as nd
from benchmarks.harness import Run
from benchmarks.peers.base import Maker, Peer
from benchmarks.robots import Robot, States


def _run(algorithm: Callable[..., Any]) -> Maker:
    def make(robot: Robot, states: States) -> Run:
        tree, (q, qd, y) = robot.tree, (states.q[0], states.qd[0], states.y[0])
        return Run(lambda: algorithm(tree, q, qd, y), lambda: np.asarray(algorithm(tree, q, qd, y)))

    return make


PEER = Peer("NumPy recursion", "numpy", "numpy", {"inverse_dynamics": _run(nd.rnea), "forward_dynamics": _run(nd.aba)})
