"""Recursions written in NumPy: what plain Python costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import Run
from benchmarks.peers.base import Maker, Peer
from benchmarks.robots import Robot, States
from nori_dyn.recursions.aba import aba
from nori_dyn.recursions.rnea import rnea


def _single(algorithm: Callable[..., Any]) -> Maker:
    def make(robot: Robot, states: States) -> Run:
        tree, (q, qd, y) = robot.tree, (states.q[0], states.qd[0], states.y[0])
        return Run(lambda: algorithm(tree, q, qd, y), lambda: np.asarray(algorithm(tree, q, qd, y)))

    return make


def _batch(algorithm: Callable[..., Any]) -> Maker:
    def make(robot: Robot, states: States) -> Run:
        tree = robot.tree
        q, qd, y = (np.ascontiguousarray(values.T) for values in (states.q, states.qd, states.y))
        return Run(lambda: algorithm(tree, q, qd, y), lambda: np.asarray(algorithm(tree, q, qd, y)).T, len(states.q))

    return make


PEER = Peer(
    "NumPy recursion",
    "numpy",
    "numpy",
    {
        "inverse_dynamics": _single(rnea),
        "forward_dynamics": _single(aba),
        "inverse_dynamics batch": _batch(rnea),
        "forward_dynamics batch": _batch(aba),
    },
)
