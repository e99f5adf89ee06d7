"""Robots that walk in MuJoCo: what happened, and what their sensors would have read of it.

A quadruped trots on point feet and a biped steps from foot to foot on flat ones, both by springs and dampers about a
motion that is told beforehand. Everything comes from MuJoCo's own contacts and sensors; dynamics of ours take no part.
A foot is in contact while its normal force exceeds a small share of the weight.

Signs of MuJoCo's sensors: its force and torque sensors at a site read the wrench of the parent on the body that has the
site, in the site's axes and about its origin, which is f of Nori's (3f); its accelerometers read proper acceleration,
upwards at rest. Its contact forces act on the second geom of a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from nori_dyn.algebra.spatial import matvec
from nori_dyn.descriptions.mjcf import load_mjcf
from nori_dyn.interop.peer_states import from_convention
from nori_dyn.model.kinematics import velocities
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from tests.oracles import newton_euler
from tests.peers import mujoco

Floats = NDArray[np.float64]

DT = 1e-3
TOUCHING = 0.01
"""Share of the weight that a foot carries at least while it is said to be in contact."""

LIMB = 0.2
LEGS = {"LF": (1, 1), "RF": (1, -1), "LH": (-1, 1), "RH": (-1, -1)}
SIDES = {"l": 1, "r": -1}


@dataclass(frozen=True, eq=False)
class Walk:
    """What happened at N instants, `DT` apart, without noise.

    Attributes:
        tree: the robot.
        feet: the links that touch the ground.
        q, qd, qdd, tau: as of the tree (N, ...).
        fx: wrenches of the ground on the feet (N, n_feet, 6), in the axes of their links, about their origins.
        contact: whether each foot is in contact (N, n_feet).
        accelerometer: of the base (N, 3), by MuJoCo's sensor.
        force_torque: wrenches through the joints of the feet (N, n_feet, 6), on the feet, by MuJoCo's sensors.
    """

    tree: KinematicTree
    feet: tuple[str, ...]
    q: Floats
    qd: Floats
    qdd: Floats
    tau: Floats
    fx: Floats
    contact: NDArray[np.bool_]
    accelerometer: Floats
    force_torque: Floats

    @property
    def n(self) -> int:
        """Number of instants."""
        return len(self.q)

    def __getitem__(self, ticks: slice | list[int] | NDArray[np.bool_]) -> Walk:
        """Some of the instants."""
        arrays = [field.name for field in fields(self) if field.name not in ("tree", "feet")]
        return replace(self, **{name: getattr(self, name)[ticks] for name in arrays})

    @cached_property
    def wrenches(self) -> Floats:
        """Wrenches of the ground on all links (N, n_links, 6), of which only the feet meet it."""
        fx = np.zeros((self.n, self.tree.n_links, 6))
        fx[:, [self.tree.link(foot) for foot in self.feet]] = self.fx
        return fx

    @property
    def touching(self) -> NDArray[np.bool_]:
        """On which feet (N, n_feet) the ground acts at all."""
        return self.fx.any(axis=2)

    @cached_property
    def truth(self) -> dict[str, Floats]:
        """Each kind of variable (N, ...): what is recorded, and the rest by Newton's and Euler's laws."""
        ticks = zip(self.q, self.qd, self.qdd, self.wrenches, strict=True)
        laws = [newton_euler(self.tree, *tick) for tick in ticks]
        found = {name: np.array([getattr(law, name) for law in laws]) for name in ("a", "f", "tau")}
        return found | {"fx": self.wrenches, "qdd": self.qdd, "tau_J": found["tau"], "tau": self.tau}

    def d(self, system: System) -> Floats:
        """The true variables (N, columns) of a system."""
        d, v_slices = np.empty((self.n, system.shape[1])), self.tree.v_slices
        for v in system.variables:
            d[:, v.slice] = self.truth[v.kind][:, v.body if v.kind in ("a", "f", "fx") else v_slices[v.body]]
        return d

    def readings(self, system: System) -> Floats:
        """Y (N, ny): what the sensors of a system read, each the y of D_Y d + b_Y - y = 0."""
        Y, d, at = np.empty((self.n, system.ny)), self.d(system).T, velocities(self.tree, self.q.T, self.qd.T)
        for row in system.measurements:
            if row.y.start == row.y.stop:
                continue
            y = row.equation.bias(at, np.zeros((row.y.stop - row.y.start, self.n)))
            for key, block in row.equation.blocks(at).items():
                y = y + matvec(block, d[system.column(key.kind, key.body)])
            Y[:, row.y] = y.T
        return Y

    def near_switches(self, within: float) -> NDArray[np.bool_]:
        """Which instants (N,) are at most so many seconds from one at which a contact changes."""
        changes = np.flatnonzero((self.contact[1:] != self.contact[:-1]).any(axis=1))
        near = np.zeros(self.n, dtype=bool)
        reach = round(within / DT)
        for k in changes:
            near[max(k + 1 - reach, 0) : k + 1 + reach] = True
        return near


def quadruped_mjcf() -> str:
    """A quadruped of 12 joints with the sizes of Solo12 and five times its mass."""
    legs = "".join(
        f"""
    <body name="{leg}_hip" pos="{0.19 * fore} {0.1 * side} 0"><joint name="{leg}_hip_x" axis="1 0 0"/>
      <geom type="box" size="0.03 0.03 0.03" mass="0.4"/>
      <body name="{leg}_thigh" pos="0 {0.02 * side} 0"><joint name="{leg}_hip_y" axis="0 1 0"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0 0 -{LIMB}" mass="0.7"/>
        <body name="{leg}_foot" pos="0 0 -{LIMB}"><joint name="{leg}_knee" axis="0 1 0"/>
          <geom type="capsule" size="0.012" fromto="0 0 0 0 0 -{LIMB - 0.02}" mass="0.2"/>
          <geom name="{leg}_sole" type="sphere" size="0.005" pos="0 0 -{LIMB}" mass="0.05" conaffinity="1"/>
          <site name="{leg}_tip" pos="0 0 -{LIMB}"/>
        </body>
      </body>
    </body>"""
        for leg, (fore, side) in LEGS.items()
    )
    return _world(
        "quadruped", 0.33, '<geom type="box" size="0.2 0.09 0.05" mass="7"/>', legs, [f"{leg}_foot" for leg in LEGS]
    )


def biped_mjcf() -> str:
    """A biped of 10 joints and about 21 kg with flat feet."""
    legs = "".join(
        f"""
    <body name="{side}_hip" pos="0 {0.08 * sign} -0.05"><joint name="{side}_hip_x" axis="1 0 0"/>
      <geom type="box" size="0.04 0.03 0.03" mass="0.6"/>
      <body name="{side}_thigh"><joint name="{side}_hip_y" axis="0 1 0"/>
        <geom type="capsule" size="0.04" fromto="0 0 0 0 0 -0.3" mass="2"/>
        <body name="{side}_shin" pos="0 0 -0.3"><joint name="{side}_knee" axis="0 1 0"/>
          <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.3" mass="1.4"/>
          <body name="{side}_ankle" pos="0 0 -0.3"><joint name="{side}_ankle_y" axis="0 1 0"/>
            <geom type="box" size="0.02 0.02 0.02" mass="0.3"/>
            <body name="{side}_foot"><joint name="{side}_ankle_x" axis="1 0 0"/>
              <geom name="{side}_sole" type="box" size="0.11 0.055 0.015" pos="0.03 0 -0.045" mass="0.8"
                conaffinity="1"/>
              <site name="{side}_sole" pos="0.03 0 -0.06"/>
            </body>
          </body>
        </body>
      </body>
    </body>"""
        for side, sign in SIDES.items()
    )
    trunk = '<geom type="box" size="0.06 0.09 0.15" pos="0 0 0.1" mass="10"/>'
    return _world("biped", 0.69, trunk, legs, [f"{side}_foot" for side in SIDES])


def _world(name: str, height: float, trunk: str, legs: str, feet: list[str]) -> str:
    """A robot on a floor, with an accelerometer in its base, force-torque sensors in the joints of its feet."""
    for foot in feet:
        joint = legs.index("/>", legs.index(f'<body name="{foot}"')) + 2
        legs = f'{legs[:joint]}<site name="{foot}_ft"/>{legs[joint:]}'
    sensors = "".join(f'<force site="{foot}_ft"/><torque site="{foot}_ft"/>' for foot in feet)
    return f"""
<mujoco model="{name}"><compiler angle="radian"/><option timestep="{DT}" integrator="Euler" tolerance="1e-15"/>
  <default><joint armature="{ARMATURE[name]}"/><geom contype="0" conaffinity="0" friction="0.8 0.005 0.0001"/></default>
  <worldbody><geom name="floor" type="plane" size="9 9 1" contype="1"/>
  <body name="base" pos="0 0 {height}"><freejoint name="root"/>{trunk}<site name="imu"/>{legs}</body></worldbody>
  <sensor><accelerometer site="imu"/>{sensors}</sensor>
</mujoco>"""


def trot(t: float, period: float = 0.5, duty: float = 0.62, lift: float = 0.04, stride: float = 0.04) -> Floats:
    """The joint positions (12,) of a trot: legs in diagonal pairs, both pairs on the ground in between."""
    start = np.clip(t / 0.3, 0, 1)
    targets = []
    for leg in LEGS:
        phase = (t / period + (0.0 if leg in ("LF", "RH") else 0.5)) % 1.0
        if t < 0.3 or phase < duty:
            x = stride * (0.5 - phase / duty) if t >= 0.3 else 0.0
            z = 0.0
        else:
            s = (phase - duty) / (1 - duty)
            x, z = stride * (s - 0.5), lift * 0.5 * (1 - np.cos(2 * np.pi * s))
        x, down = start * x, 0.31 - z
        length = np.hypot(x, down)
        bend = np.arccos(length / (2 * LIMB))
        lean = np.arctan2(-x, down)
        targets += [0.0, lean - bend, 2 * bend]
    return np.array(targets)


def steps(t: float, shift: float = 0.9, stand: float = 0.7, sway: float = 0.07, lift: float = 0.03) -> Floats:
    """The joint positions (10,) of a biped that steps from foot to foot on the spot.

    It moves over one foot in `shift` seconds, and lifts the other for `stand` seconds.
    """
    number, phase = divmod(t, shift + stand)
    side = 1.0 if number % 2 == 0 else -1.0
    before = -side if number else 0.0
    aside = sway * (before + (side - before) * _smooth(phase / shift))
    up = lift * np.sin(np.pi * np.clip((phase - shift) / stand, 0, 1)) ** 2
    targets = []
    for sign in SIDES.values():
        down = 0.57 - (up if sign != side else 0.0)
        length = np.hypot(aside, down)
        bend, roll = np.arccos(length / 0.6), -np.arcsin(aside / length)
        targets += [roll, -bend, 2 * bend, -bend, -roll]
    return np.array(targets)


def _smooth(s: float) -> float:
    """A quintic from 0 at 0 to 1 at 1."""
    s = min(max(s, 0.0), 1.0)
    return s**3 * (10 - 15 * s + 6 * s**2)


MODELS = {"quadruped": quadruped_mjcf, "biped": biped_mjcf}
MOTIONS = {"quadruped": trot, "biped": steps}
FEET = {"quadruped": tuple(f"{leg}_foot" for leg in LEGS), "biped": tuple(f"{side}_foot" for side in SIDES)}
STIFFNESS = {"quadruped": (120.0, 3.0), "biped": (2500.0, 30.0)}
ARMATURE = {"quadruped": 0.01, "biped": 0.06}
SETTLING = 0.3
"""Time before the record begins, in which the robot comes to rest on its feet [s]."""


def walk(name: str, duration: float = 4.0) -> Walk:
    """The record of one of the robots."""
    return _recorded(name, duration)


@lru_cache(maxsize=4)
def _recorded(name: str, duration: float) -> Walk:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.xml"
        path.write_text(MODELS[name]())
        tree, model = load_mjcf(path), mujoco.MjModel.from_xml_path(str(path))
    data, motion, (kp, kd) = mujoco.MjData(model), MOTIONS[name], STIFFNESS[name]
    feet = FEET[name]
    bodies = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, foot) for foot in feet]
    start = motion(0.0)
    data.qpos[7:] = start
    before, N = round(SETTLING / DT), round(duration / DT)
    rows = {key: np.zeros((N, size)) for key, size in _sizes(model).items()}
    fx, normal = np.zeros((N, len(feet), 6)), np.zeros((N, len(feet)))
    for k in range(-before, N):
        target = motion(max(k, 0) * DT)
        data.qfrc_applied[6:] = kp * (target - data.qpos[7:]) - kd * data.qvel[6:]
        if k >= 0:
            rows["qpos"][k], rows["qvel"][k], rows["tau"][k] = data.qpos, data.qvel, data.qfrc_applied
        mujoco.mj_step(model, data)
        if k >= 0:
            rows["qacc"][k], rows["sensors"][k] = data.qacc, data.sensordata
            fx[k] = contact_wrenches(model, data, bodies)
            normal[k] = np.sum(data.xmat[bodies][:, 6:] * fx[k, :, 3:], axis=1)
    own = from_convention(tree, "mujoco", rows["qpos"], rows["qvel"], rows["qacc"], rows["tau"])
    read = rows["sensors"][:, 3:].reshape(N, len(feet), 2, 3)
    force_torque = np.concatenate([read[:, :, 1], read[:, :, 0]], axis=2)
    weight = 9.81 * float(tree.I[:, 5, 5].sum())
    contact = normal > TOUCHING * weight
    return Walk(tree, feet, own.q, own.qd, own.qdd, own.tau, fx, contact, rows["sensors"][:, :3], force_torque)


def contact_wrenches(model: mujoco.MjModel, data: mujoco.MjData, bodies: Sequence[int]) -> Floats:
    """The wrenches (n, 6) of contacts on bodies, in their axes, about their origins, couple first."""
    fx, contact = np.zeros((len(bodies), 6)), data.contact
    wrenches = np.zeros((len(contact), 6))
    for number, wrench in enumerate(wrenches):
        mujoco.mj_contactForce(model, data, number, wrench)
    pushes = wrenches.reshape(-1, 2, 3) @ contact.frame.reshape(-1, 3, 3)  # its first axis points to the second geom
    for geom, sign in ((0, -1.0), (1, 1.0)):
        own = model.geom_bodyid[contact.geom[:, geom]]
        on = own != 0  # the world
        body, (force, couple) = own[on], sign * pushes[on].swapaxes(0, 1)
        couple = couple + np.cross(contact.pos[on] - data.xpos[body], force)
        found = np.stack([couple, force], axis=1) @ data.xmat[body].reshape(-1, 3, 3)
        np.add.at(fx, [bodies.index(k) for k in body.tolist()], found.reshape(-1, 6))
    return fx


def _sizes(model: mujoco.MjModel) -> dict[str, int]:
    return {"qpos": model.nq, "qvel": model.nv, "qacc": model.nv, "tau": model.nv, "sensors": model.nsensordata}
