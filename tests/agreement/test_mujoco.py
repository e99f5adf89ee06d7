"""Inverse and forward dynamics of MJCF models, against MuJoCo's mj_inverse and mj_forward."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from nori_dyn.api.plan import plan
from nori_dyn.io.mjcf import load_mjcf
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from tests.agreement.test_pinocchio import BACKENDS
from tests.peers import mujoco
from tests.robots import mujoco_inverse, mujoco_joint, mujoco_model, mujoco_state
from tests.systems import ACCELERATIONS, TORQUES, Truth, random_states, readings, sensor_set
from tests.tolerances import SOLVED, assert_close

N_STATES = 25


def limb(side: str, sign: int) -> str:
    """Return a leg and an arm: hinges that cross at the hip, ball shoulder, sliding forearm."""
    return f"""
    <body name="{side}_hip" pos="0 {sign * 0.1} -0.1">
      <joint name="{side}_hip_x" axis="1 0 0" pos="0 0 0.02"/>
      <joint name="{side}_hip_z" axis="0 0 1"/>
      <joint name="{side}_hip_y" axis="{sign * 0.1} 1 0.2"/>
      <geom type="capsule" size="0.06" fromto="0 0 0 0 {sign * 0.01} -0.34"/>
      <body name="{side}_shin" pos="0 {sign * 0.01} -0.4">
        <joint name="{side}_knee" axis="0 -1 0" range="-2.8 0.03"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.3"/>
        <body name="{side}_foot" pos="0 0 -0.39">
          <joint name="{side}_ankle_y" axis="0 1 0" pos="0 0 0.08" ref="0.2"/>
          <joint name="{side}_ankle_x" axis="1 0 0.5" pos="0 0 0.08"/>
          <geom type="box" size="0.11 0.05 0.02" pos="0.03 0 0" euler="0 0 {sign * 5}"/>
        </body>
      </body>
    </body>
    <body name="{side}_arm" pos="0 {sign * 0.17} 0.35">
      <joint name="{side}_shoulder" type="ball"/>
      <geom type="capsule" size="0.04" fromto="0 0 0 0.1 {sign * 0.1} -0.16"/>
      <body name="{side}_forearm" pos="0.18 {sign * 0.18} -0.18" quat="0.9 0.1 {sign * 0.3} 0.2">
        <joint name="{side}_elbow" axis="0 -1 1"/>
        <joint name="{side}_reach" type="slide" axis="1 1 0" range="-0.1 0.2"/>
        <geom type="capsule" size="0.03" fromto="0.01 0 0.01 0.17 0 0.17"/>
      </body>
    </body>"""


HUMANOID = f"""
<mujoco model="humanoid"><compiler angle="degree"/><option gravity="0.5 -1 -9.81"/><worldbody>
  <body name="torso" pos="0 0 1.5"><freejoint name="root"/>
    <geom type="box" size="0.1 0.15 0.25"/>
    <body name="head" pos="0 0 0.4"><joint name="neck" type="ball"/><geom type="sphere" size="0.1"/></body>
    {limb("left", 1)} {limb("right", -1)}
  </body>
</worldbody></mujoco>"""

CRANE = """
<mujoco model="crane"><compiler angle="radian"/><worldbody>
  <body name="trolley"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
    <geom type="box" size="0.2 0.2 0.1"/>
    <body name="hook" pos="0 0 -1"><joint name="rope" type="ball" pos="0 0 1"/><geom type="sphere" size="0.1"/>
      <body name="load" pos="0 0 -0.3"><joint name="swivel" axis="0 0 1"/><geom type="box" size="0.3 0.1 0.2"/></body>
    </body>
  </body>
</worldbody></mujoco>"""

MODELS = {"humanoid": HUMANOID, "crane": CRANE}


@lru_cache(maxsize=8)
def model_of(name: str, folder) -> tuple[KinematicTree, mujoco.MjModel]:
    path = folder / f"{name}.xml"
    path.write_text(MODELS[name])
    return load_mjcf(path), mujoco_model(path)


@pytest.fixture(scope="module", params=MODELS)
def robot(request, tmp_path_factory):
    return model_of(request.param, tmp_path_factory.mktemp("mjcf"))


def bodies(tree: KinematicTree) -> list[str]:
    """Return the links that are bodies of MuJoCo: those between the joints of one body weigh nothing."""
    return [name for name, I in zip(tree.names, tree.I, strict=True) if I.any()]


def sensors(tree: KinematicTree, joints: dict) -> SensorSet:
    known = {"type": "external_wrench", "links": {"except": bodies(tree)}, "value": 0}
    entries = [joints, {"type": "external_wrench", "links": bodies(tree)}, known]
    return sensor_set(*entries[: 3 if len(bodies(tree)) < tree.n_links else 2])


def states(tree: KinematicTree) -> Truth:
    truth = random_states(tree, N_STATES, seed=tree.n_links)
    return truth._replace(fx=truth.fx * tree.I.any(axis=(1, 2))[:, None])


def forward(tree: KinematicTree, model: mujoco.MjModel, truth: Truth, k: int) -> np.ndarray:
    """Return qacc (model.nv,) by mj_forward, the wrenches applied at the centres of mass as MuJoCo does."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], _ = mujoco_state(tree, model, truth.q[k], truth.qd[k], truth.qdd[k])
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    for i, joint in enumerate(tree.joints):
        number = mujoco_joint(tree, model, i)
        body, v = model.jnt_bodyid[number], model.jnt_dofadr[number]
        part = truth.tau[k][tree.v_slices[i]]
        if joint.kind == "free":
            R = joint.transform(truth.q[k][tree.q_slices[i]]).E.T
            part = np.concatenate([R @ part[3:], part[:3]])
        data.qfrc_applied[v : v + joint.nv] = part
        last = model.body_jntadr[body] + model.body_jntnum[body] - 1
        if number == last:
            R = data.xmat[body].reshape(3, 3)
            moment, force = R @ truth.fx[k, i, :3], R @ truth.fx[k, i, 3:]
            arm = data.xpos[body] + R @ model.jnt_pos[last] - data.xipos[body]
            data.xfrc_applied[body] = np.concatenate([force, moment + np.cross(arm, force)])
    mujoco.mj_forward(model, data)
    return data.qacc.copy()


def test_inverse_dynamics(robot):
    tree, model = robot
    truth = states(tree)
    made = plan(System(tree, sensors(tree, ACCELERATIONS)))
    given = zip(truth.q, truth.qd, truth.qdd, truth.fx, strict=True)
    expected = [mujoco_inverse(tree, model, *state) for state in given]
    for backend in BACKENDS:
        tau = made.solver(backend).solve_batch(truth.q, truth.qd, readings(made.system, truth)).tau
        for found, each in zip(tau, expected, strict=True):
            assert_close(found, each, SOLVED)


def test_forward_dynamics(robot):
    tree, model = robot
    truth = states(tree)
    truth = truth._replace(tau=np.random.default_rng(1).normal(size=truth.qd.shape) * 20)
    made = plan(System(tree, sensors(tree, TORQUES)))
    expected = [forward(tree, model, truth, k) for k in range(N_STATES)]
    for backend in BACKENDS:
        qdd = made.solver(backend).solve_batch(truth.q, truth.qd, readings(made.system, truth)).qdd
        for k in range(N_STATES):
            assert_close(mujoco_state(tree, model, truth.q[k], truth.qd[k], qdd[k])[2], expected[k], SOLVED)


def test_models_have_every_joint_of_mujoco(tmp_path):
    kinds = {joint.kind for name in MODELS for joint in model_of(name, tmp_path)[0].joints}
    assert kinds >= {"revolute", "prismatic", "spherical", "free"}
