"""Random problems for the attack: robots, sensors, weights and poses that nobody would choose, from a seed each.

To add a family: a function here that takes a `Draft` and adds its readings, named in `FAMILIES`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.joints import Free
from nori_dyn.model.synthetic import random_tree
from nori_dyn.model.tree import KinematicTree
from tests.attack.oracle import FORCE, MOTION, Reading, States

KINDS = ("revolute", "continuous", "prismatic", "helical", "cylindrical", "planar", "spherical", "free")

DECADES = 8.0
"""Weights are drawn over this many decades to either side of 1."""


@dataclass
class Draft:
    """A problem in the making.

    Attributes:
        rng: what it is drawn from.
        tree: the robot.
        entries: measurements of the config.
        readings: the same for the oracle.
        known: links without an external wrench.
        dynamics: sigma of the equations of motion, by law.
    """

    rng: np.random.Generator
    tree: KinematicTree
    entries: list[dict[str, Any]] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    known: dict[int, float] = field(default_factory=dict)
    dynamics: dict[str, float] = field(default_factory=dict)

    def chance(self, share: float) -> bool:
        """True in a share of the cases."""
        return bool(self.rng.random() < share)

    def read(
        self,
        type: str,
        body: int,
        soft: bool = False,
        value: float | None = None,
        placed: bool = False,
        components: tuple[str, ...] | None = None,
        pose_of_last: bool = False,
    ) -> None:
        """Add a reading of a joint or of a link, with a sigma where it is soft; placed at random, or as the last."""
        entry: dict[str, Any] = {"type": type}
        joint, of_joint = self.tree.joints[body], type in ("joint_acceleration", "joint_torque")
        if of_joint or type == "force_torque":
            entry["joints"] = self.tree.joint_names[body]
        else:
            entry["links"] = self.tree.names[body]
        xyz, rpy = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if placed:
            xyz, rpy = (tuple(map(float, self.rng.normal(size=3) * scale)) for scale in (0.2, 1.0))
        if pose_of_last:
            xyz, rpy = self.readings[-1].xyz, self.readings[-1].rpy
        if any((*xyz, *rpy)):
            entry["frame"] = {"xyz": list(xyz), "rpy": list(rpy)}
        if components:
            entry["components"] = list(components)
        if type == "rigid_contact":
            value = 0.0
        if value is not None:
            entry["value"] = value
        names = FORCE if type in ("external_wrench", "force_torque") else MOTION
        defaults = {"accelerometer": MOTION[3:], "angular_accelerometer": MOTION[:3]}
        chosen = tuple(map(names.index, components or defaults.get(type, names)))
        places = tuple(range(joint.nv)) if of_joint else chosen
        n_weights = 1
        if soft:
            entry["sigma"] = 1.0
            if len(places) > 1 and self.chance(0.3):
                entry["sigma"] = [2.0 - k / 10 for k in range(len(places))]
                n_weights = len(places)
        self.entries.append(entry)
        self.readings.append(Reading(type, body, xyz, rpy, places, value, not soft, n_weights))

    def no_wrench(self, body: int) -> None:
        """Say that no external wrench acts on a link."""
        self.known[body] = 0.0
        self.entries.append({"type": "external_wrench", "links": self.tree.names[body], "value": 0})


def inverse(draft: Draft) -> None:
    """Add what inverse dynamics needs."""
    for i in range(draft.tree.n_links):
        draft.read("joint_acceleration", i)
        draft.read("external_wrench", i)


def forward(draft: Draft) -> None:
    """Add what forward dynamics needs."""
    for i in range(draft.tree.n_links):
        draft.read("joint_torque", i)
        draft.no_wrench(i)


def hybrid(draft: Draft) -> None:
    """Add accelerations of some joints and torques of the others; some wrenches are read at other places."""
    for i in range(draft.tree.n_links):
        felt = draft.chance(0.3)  # a wrench through the joint that is read leaves nothing for its torque to tell
        draft.read("joint_acceleration" if felt or draft.chance(0.5) else "joint_torque", i)
        if felt:
            draft.read("force_torque", i, placed=draft.chance(0.5))
        elif draft.chance(0.3):
            draft.read("external_wrench", i, placed=True)
        else:
            draft.no_wrench(i)


def standing(draft: Draft) -> None:
    """Add torques of all joints of a robot that moves freely, but for a foot that the world holds, or a point of it."""
    joints = (Free(), *draft.tree.joints[1:])
    draft.tree = draft.tree.replace(joints=joints, parents=(-1, *(max(p, 0) for p in draft.tree.parents[1:])))
    foot, point = int(draft.rng.integers(draft.tree.n_links)), draft.chance(0.5)
    for i in range(draft.tree.n_links):
        draft.read("joint_torque", i)
        if i != foot:
            draft.no_wrench(i)
        elif point:
            draft.read("rigid_contact", i, components=MOTION[3:], placed=True)
            draft.read("external_wrench", i, value=0.0, components=FORCE[:3], pose_of_last=True)
        else:
            draft.read("rigid_contact", i, placed=draft.chance(0.5))


def redundant(draft: Draft) -> None:
    """Add accelerations and torques of the joints, and some wrenches and accelerometers: all with a sigma."""
    for i in range(draft.tree.n_links):
        for kind in ("joint_acceleration", "joint_torque"):
            if draft.chance(0.85):
                draft.read(kind, i, soft=True)
        if draft.chance(0.4):
            draft.read("external_wrench", i, soft=True, placed=draft.chance(0.3))
        else:
            draft.no_wrench(i)
        if draft.chance(0.4):
            draft.read("accelerometer", i, soft=True, placed=draft.chance(0.7))
        if draft.chance(0.15):
            draft.read("angular_accelerometer", i, soft=True)
        if draft.chance(0.25):
            draft.read("force_torque", i, soft=True, placed=draft.chance(0.5))


def mixed(draft: Draft) -> None:
    """Add sensors as `redundant` does, some of which hold exactly."""
    for i in range(draft.tree.n_links):
        if draft.chance(0.5):
            draft.read("joint_acceleration", i, soft=draft.chance(0.8))
        draft.read("joint_torque", i, soft=draft.chance(0.7))
        if draft.chance(0.3):
            draft.read("external_wrench", i, soft=True)
            draft.read("force_torque", i, soft=draft.chance(0.8), placed=draft.chance(0.5))
        else:
            draft.no_wrench(i)
        if draft.chance(0.4):
            draft.read("accelerometer", i, soft=True, placed=True)


def held(draft: Draft) -> None:
    """Add torques with a sigma, a link that the world holds, and load cells below it."""
    n = draft.tree.n_links
    foot = int(draft.rng.integers(n))
    for i in range(n):
        draft.read("joint_torque", i, soft=True)
        if draft.chance(0.3):
            draft.read("joint_acceleration", i, soft=True)
        if i == foot:
            draft.read("rigid_contact", i, soft=draft.chance(0.5), placed=draft.chance(0.5))
            draft.read("external_wrench", i, soft=True, placed=draft.chance(0.5))
        else:
            draft.no_wrench(i)


def vague(draft: Draft) -> None:
    """Add sensors as `redundant` does, and equations of motion that are not exact."""
    redundant(draft)
    laws = [law for law in ("3a", "3f", "3tau") if draft.chance(0.6)] or ["3tau"]
    draft.dynamics.update(dict.fromkeys(laws, 1.0))


FAMILIES: dict[str, Callable[[Draft], None]] = {
    "inverse": inverse,
    "forward": forward,
    "hybrid": hybrid,
    "standing": standing,
    "redundant": redundant,
    "mixed": mixed,
    "held": held,
    "vague": vague,
}
"""Every family by its name. The first four hold exactly, the others are weighed."""


@dataclass(frozen=True)
class Problem:
    """A robot with sensors, as the package takes it and as the oracle does."""

    family: str
    seed: int
    tree: KinematicTree
    sensors: SensorSet
    readings: tuple[Reading, ...]
    known: dict[int, float]
    noisy: tuple[str, ...]

    @property
    def is_weighted(self) -> bool:
        """Whether some rows are weighed."""
        return bool(self.noisy) or any(not reading.is_exact for reading in self.readings)

    def states(self, n: int, seed: int, n_weights: int, ny: int) -> States:
        """N states: poses at random and near singular ones, readings that fit or do not, any weights."""
        rng = np.random.default_rng([self.seed, seed])
        tree = self.tree
        q = np.array([_pose(tree, rng) for _ in range(n)])
        qd = rng.normal(size=(n, tree.nv)) * rng.choice([0.0, 1.0, 10.0], size=(n, 1))
        y = rng.normal(size=(n, ny)) * 10.0 ** rng.choice([-2, 0, 2], size=(n, 1))
        spread = rng.uniform(-DECADES, DECADES, size=(n, n_weights))
        steps = rng.choice([-DECADES, -DECADES / 2, 0.0, DECADES / 2, DECADES], size=(n, n_weights))
        narrow = spread / 8
        kind = rng.choice(3, size=(n, 1), p=[0.45, 0.45, 0.1])
        weights = 10.0 ** np.choose(np.broadcast_to(kind, spread.shape), [spread, steps, narrow])
        return States(q, qd, y, weights)


def _pose(tree: KinematicTree, rng: np.random.Generator) -> np.ndarray:
    """A random configuration, often near one where axes are parallel or arms are straight."""
    q = tree.random_configuration(rng)
    if rng.random() < 0.5:
        for joint, part in zip(tree.joints, tree.q_slices, strict=True):
            if joint.coordinates == ("angle",) and rng.random() < 0.8:
                near = 10.0 ** rng.uniform(-12, 0)
                q[part] = rng.integers(-2, 3) * np.pi / 2 + near * rng.choice([-1, 0, 1])
    return q


def draw(seed: int, family: str | None = None, decades: float = 0.0) -> Problem:
    """A random problem; it may be one that cannot be planned, whose error is then the answer.

    Args:
        seed: what it is drawn from.
        family: of which family.
        decades: over how many decades, to either side of 1, sigmas are: readings have as many units.
    """
    rng = np.random.default_rng(seed)
    family = family or str(rng.choice(list(FAMILIES)))
    tree = _tree(rng, int(rng.integers(1, 6)))
    draft = Draft(rng, tree)
    FAMILIES[family](draft)
    tree = draft.tree
    for entry in draft.entries if decades else ():
        if "sigma" in entry:
            entry["sigma"] = (np.array(entry["sigma"]) * 10.0 ** rng.uniform(-decades, decades)).tolist()
    config: dict[str, Any] = {"name": family, "measurements": draft.entries}
    if draft.dynamics:
        config["dynamics"] = {"sigma": draft.dynamics}
    sensors = SensorSet.from_dict(config)
    return Problem(family, seed, tree, sensors, tuple(draft.readings), draft.known, tuple(draft.dynamics))


def _tree(rng: np.random.Generator, n: int) -> KinematicTree:
    """A random tree: joints of every kind, masses over up to twelve decades, some links without any."""
    kinds = ("revolute",) if rng.random() < 0.5 else KINDS
    tree = random_tree(n, int(rng.integers(2**31)), kinds, aligned=0.7)
    I = tree.I.copy()
    style = rng.integers(4)
    if style == 1:
        I *= 10.0 ** rng.uniform(-6, 6, size=(n, 1, 1))
    elif style == 2:
        I *= 10.0 ** rng.uniform(-1.5, 1.5, size=(n, 1, 1))
    if rng.random() < 0.15:
        I[rng.integers(n)] = 0.0
    joints = list(tree.joints)
    if rng.random() < 0.3:
        joints[0] = Free()
    return tree.replace(I=I, joints=tuple(joints))
