"""Long logs: how fast a humanoid's minutes at 1 kHz go through a plan, from file to file, and in how much memory.

python -m benchmarks.long_logs [--minutes 10] [--times 4] [--rounds 5] [--folder DIR] [--json FILE]

MuJoCo simulates `humanoid.xml`, held by a spring and moved by its motors; its own q, qd and qdd are the log, and the
torques that it applied are what inverse dynamics must find again. Each run is a process of its own, and runs of all
formats take turns, so that what else the machine does is shared by all.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import nori_dyn as nd
from nori_dyn.bench.records import quartiles
from nori_dyn.logs.log import whole_table
from nori_dyn.typing import Floats

ROBOT = Path(__file__).with_name("humanoid.xml")
RATE = 1000
CHUNK = 20_000
"""Samples that are simulated, and written, at once."""

TOLERANCE = 1e-9
"""How far estimated torques may be from those that MuJoCo applied [N m], which are up to some hundred."""

Chunk = tuple[Floats, Floats, Floats, Floats, Floats]
"""Times, q, qd, qdd and tau of samples (n, ...), as nori_dyn has them."""


def simulated(tree: nd.KinematicTree, samples: int, seed: int = 0) -> Iterator[Chunk]:
    """Yield a run of a humanoid, chunk by chunk.

    Args:
        tree: the robot.
        samples: how many there are to be.
        seed: of the motion.
    """
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(ROBOT))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    n = model.nv - 6
    swing, speed, phase = rng.uniform(0.1, 0.6, n), rng.uniform(0.5, 7.0, n), rng.uniform(0.0, 2 * np.pi, n)
    weight = np.array([0, 0, 9.81 * model.body_subtreemass[1]])
    data.qpos[7:] = swing * np.sin(phase)
    turn = np.zeros(3)
    for first in range(0, samples, CHUNK):
        size = min(CHUNK, samples - first)
        q, qd, qdd, tau = (np.empty((size, k)) for k in (model.nq, model.nv, model.nv, model.nv))
        for k in range(size):
            t, force = data.time, data.qfrc_applied
            force[6:] = 200 * (swing * np.sin(speed * t + phase) - data.qpos[7:]) - 10 * data.qvel[6:]
            place = np.array([0.3 * np.sin(0.2 * t), 0.3 * np.sin(0.13 * t), 1 + 0.1 * np.sin(0.31 * t)])
            force[:3] = 4000 * (place - data.qpos[:3]) - 400 * data.qvel[:3] + weight
            mujoco.mju_quat2Vel(turn, data.qpos[3:7], 1.0)
            force[3:6] = -400 * turn - 60 * data.qvel[3:6]
            q[k], qd[k], tau[k] = data.qpos, data.qvel, force
            mujoco.mj_step(model, data)
            qdd[k] = data.qacc
        state = nd.interop.from_convention(tree, "mujoco", q, qd, qdd, tau)
        yield (first + np.arange(size)) / RATE, state.q, state.qd, state.qdd, state.tau
