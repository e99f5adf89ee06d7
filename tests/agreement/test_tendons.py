"""Tendons against MuJoCo's: spatial ones in straight lines, fixed ones over joints, and motors that pull at them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse.linalg as spla

from nori_dyn.components import Tendon
from nori_dyn.errors import NoriWarning
from nori_dyn.io.mjcf import load_mjcf
from nori_dyn.model.kinematics import velocities
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.parts import parts_of
from nori_dyn.system.variables import VariableKey
from tests.oracles import newton_euler
from tests.peers import mujoco
from tests.robots import mujoco_model
from tests.systems import sensor_set
from tests.tolerances import PEER, SOLVED, assert_close

MJCF = """
<mujoco><option gravity="0.3 -1 -9.81"/><worldbody>
  <site name="wall" pos="0.2 -0.3 0.9"/>
  <body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0"/><joint name="turn" axis="0 0 1"/>
    <geom type="capsule" size="0.05" fromto="0 0 0 0.4 0 0"/><site name="biceps" pos="0.1 0.06 0.03"/>
    <body name="fore" pos="0.4 0 0"><joint name="elbow" axis="0 1 0.2"/>
      <geom type="capsule" size="0.04" fromto="0 0 0 0.3 0 0"/><site name="insertion" pos="0.08 0.03 0.05"/>
      <body name="hand" pos="0.3 0 0"><joint name="reach" type="slide" axis="1 0 0.1"/>
        <geom type="box" size="0.05 0.03 0.02"/><site name="palm" pos="0.03 0 0.02"/>
      </body></body></body>
</worldbody><tendon>
  <spatial name="cable" stiffness="150" damping="6" springlength="0.4">
    <site site="wall"/><site site="biceps"/><site site="insertion"/><site site="palm"/></spatial>
  <spatial name="hoist" stiffness="80" springlength="0.1">
    <pulley divisor="2"/><site site="wall"/><site site="palm"/></spatial>
  <spatial name="piston"><site site="biceps"/><site site="insertion"/></spatial>
  <fixed name="flexor" stiffness="40" damping="1.5" springlength="0.2">
    <joint joint="elbow" coef="0.7"/><joint joint="reach" coef="-1.3"/></fixed>
</tendon><actuator>
  <motor tendon="cable"/><motor tendon="hoist"/><motor tendon="piston"/><motor tendon="flexor"/>
</actuator>
</mujoco>"""

TENDONS = (
    Tendon(name="cable", through=["wall", "biceps", "insertion", "palm"], stiffness=150, damping=6, rest=0.4),
    Tendon(name="hoist", through=["wall", "palm"], stiffness=80, rest=0.1, divisor=2),
    Tendon(name="piston", through=["biceps", "insertion"]),
    Tendon(name="flexor", joints={"elbow": 0.7, "reach": -1.3}, stiffness=40, damping=1.5, rest=0.2),
)


@pytest.fixture(scope="module")
def arm(tmp_path_factory) -> tuple[KinematicTree, mujoco.MjModel]:
    path = tmp_path_factory.mktemp("tendons") / "arm.xml"
    path.write_text(MJCF)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoriWarning)
        return load_mjcf(path).replace(components=TENDONS), mujoco_model(path)


def states(tree: KinematicTree):
    """Yield states near the outstretched arm, the forces of motors at the joints, and those along the tendons."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        yield 0.5 * rng.normal(size=tree.nv), rng.normal(size=tree.nv), 5 * rng.normal(size=tree.nv), rng.normal(size=4)


def test_lengths_speeds_and_moment_arms_equal_mujoco(arm):
    tree, model = arm
    data = mujoco.MjData(model)
    lengths = [part.constraint for part in parts_of(tree) if part.unknowns]
    for q, qd, *_ in states(tree):
        data.qpos[:], data.qvel[:] = q, qd
        mujoco.mj_forward(model, data)
        at = velocities(tree, q, qd)
        assert_close(np.concatenate([length.value(at) for length in lengths]), data.ten_length, PEER)
        assert_close(np.concatenate([length.speed(at) for length in lengths]), data.ten_velocity, PEER)
        for k, length in enumerate(lengths):
            rates = []
            for e in np.eye(tree.nv):
                motion = newton_euler(tree.replace(gravity=(0, 0, 0)), q, 0 * qd, e, np.zeros((tree.n_links, 6)))
                read = {VariableKey("a", i): motion.a[i] for i in range(tree.n_links)}
                read |= {VariableKey("qdd", i): e[s] for i, s in enumerate(tree.v_slices)}
                rates.append(sum((block @ read[key]).item() for key, block in length.rows(at).items()))
            own = slice(model.ten_J_rowadr[k], model.ten_J_rowadr[k] + model.ten_J_rownnz[k])
            arms = np.zeros(tree.nv)
            arms[model.ten_J_colind[own]] = data.ten_J[own]
            assert_close(rates, arms, PEER)


def test_springs_dampers_and_motors_of_tendons_move_the_arm_as_in_mujoco(arm):
    tree, model = arm
    pulls = [
        {"type": "linear_relation", "name": tendon.name, "terms": {f"tendon:{tendon.name}": 1}, "value": None}
        for tendon in TENDONS
    ]
    entries = [{"type": "joint_torque", "joints": "all"}, {"type": "external_wrench", "links": "all", "value": 0}]
    system = System(tree, sensor_set(*entries, *pulls))
    data = mujoco.MjData(model)
    for q, qd, tau, pull in states(tree):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:], data.ctrl[:] = q, qd, tau, pull
        mujoco.mj_forward(model, data)
        d = spla.spsolve(system.D(q).tocsc(), -system.b(q, qd, np.concatenate([tau, pull])))
        qdd = np.concatenate([d[system.column("qdd", i)] for i in range(tree.n_links)])
        assert_close(qdd, data.qacc, SOLVED)
