"""Robots with sensors and memory, one of each sort, small enough for ten thousand ticks."""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

from nori_dyn.estimation.plan import Plan, plan, plan_set
from nori_dyn.estimation.tracker import Filter
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.side_by_side import SideBySide
from tests.robots import load
from tests.systems import TORQUES, UNLOADED

FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
LEG_SENSORS = ("l_leg_ft_sensor", "l_foot_ft_sensor", "r_leg_ft_sensor", "r_foot_ft_sensor")
UPPER = r"(neck|torso|[lr]_(shoulder|elbow|wrist)).*"


@dataclass(frozen=True)
class Observer:
    """A robot whose plans remember.

    Attributes:
        plans: a plan, or those of all contact states.
        states: the contact states that tests go through in turn; one, of no contacts, where there are none.
        dt: usual time between ticks [s].
        outputs: of the plans.
    """

    plans: Plan
    states: tuple[tuple[str, ...], ...]
    dt: float
    outputs: tuple[str, ...]

    @property
    def systems(self) -> list[System]:
        """The systems of the states."""
        return [self.plans.states[state].system for state in self.states]

    @cached_property
    def measurement_names(self) -> tuple[str, ...]:
        """The names of the readings of all states."""
        return SideBySide([one.system for one in self.plans.states.values()], "all").measurement_names

    def filter(self, backend: str) -> Filter:
        """A filter at its beginning; the same one each time."""
        if backend not in self._filters:
            self._filters[backend] = Filter(self.plans, self.dt, backend)
        self._filters[backend].reset()
        return self._filters[backend]

    @cached_property
    def _filters(self) -> dict[str, Filter]:
        """Those that are made."""
        return {}


def arm(sigma: float | None = 10.0) -> tuple[KinematicTree, dict[str, Any]]:
    """A momentum observer that an accelerometer helps: speeds persist, and torques that decay."""
    known = {} if sigma is None else {"sigma": sigma}
    return load("ur5"), {
        "name": "arm",
        "measurements": [
            TORQUES | {"sigma": 0.1, "offset": {"sigma": 10}},
            {"type": "accelerometer", "links": "tool0", "sigma": 0.05},
            UNLOADED,
        ],
        "memory": {
            "speed": {"of": "qd", "rate": "qdd", "noise": 1e-3, **known},
            "push": {"of": "offset", "walk": 5.0, "time_constant": 2.0},
        },
    }


def quadruped() -> tuple[KinematicTree, dict[str, Any]]:
    """A quadruped that reads the forces on its feet, torques and base with offsets, and is pushed."""
    tree = load("solo12", "floating")
    offsets = [f"offset:tau:{name}" for name in tree.joint_names[1:]]
    point = [
        {"type": "external_wrench", "components": ["mx", "my", "mz"], "value": 0},
        {"type": "external_wrench", "components": ["fx", "fy", "fz"], "sigma": 1.0},
    ]
    return tree, {
        "name": "quadruped",
        "measurements": [
            {"type": "joint_torque", "joints": "actuated", "sigma": 0.2, "offset": {"sigma": 2}},
            {"type": "joint_torque", "joints": {"except": "actuated"}, "value": 0},
            {"type": "accelerometer", "links": "base_link", "sigma": 0.05, "offset": {"sigma": 0.5}},
            {"type": "angular_accelerometer", "links": "base_link", "sigma": 0.1},
            {"type": "external_wrench", "links": {"except": ["base_link", *FEET]}, "value": 0},
        ],
        "contacts": {
            foot: {
                "closed": [{**one, "links": foot} for one in point],
                "open": [{"type": "external_wrench", "links": foot, "value": 0}],
            }
            for foot in FEET
        },
        "memory": {
            "speed": {"of": "qd", "rate": "qdd", "noise": 0.01, "sigma": 10},
            "torques": {"of": offsets, "walk": 0.1},
            "accelerometer": {"of": "offset:acc:base_link"},
            "push": {"of": "fx:base_link", "walk": 5.0, "time_constant": 0.5, "sigma": 20},
        },
    }


def humanoid() -> tuple[KinematicTree, dict[str, Any]]:
    """Legs with four force-torque sensors whose offsets walk or stay, and a push on the root that lasts."""
    tree = load("icub", "floating", kept=LEG_SENSORS, locked=_upper())
    hips = [f"offset:ft:{name}" for name in LEG_SENSORS if "leg" in name]
    ankles = [f"offset:ft:{name}" for name in LEG_SENSORS if "foot" in name]
    return tree, {
        "name": "humanoid",
        "measurements": [
            {"type": "joint_acceleration", "joints": "actuated", "sigma": 0.1},
            {"type": "joint_torque", "joints": {"except": "actuated"}, "value": 0},
            {"type": "accelerometer", "links": "root_link", "sigma": 0.05, "offset": {"sigma": 0.5}},
            {"type": "angular_accelerometer", "links": "root_link", "sigma": 0.1},
            {"type": "force_torque", "joints": list(LEG_SENSORS), "sigma": 0.5, "offset": {"sigma": 100}},
            {"type": "external_wrench", "links": {"except": ["l_sole", "r_sole", tree.names[0]]}, "value": 0},
        ],
        "memory": {
            "hips": {"of": hips, "walk": [0.05, 0.05, 0.05, 0.5, 0.5, 0.5]},
            "ankles": {"of": ankles},
            "accelerometer": {"of": "offset:acc:root_link", "walk": 0.01},
            "push": {"of": f"fx:{tree.names[0]}", "walk": 5.0, "time_constant": 1.0, "sigma": 20},
        },
    }


ROBOTS = {"arm": arm, "arm_anywhere": partial(arm, None), "quadruped": quadruped, "humanoid": humanoid}
STATES: dict[str, tuple[tuple[str, ...], ...]] = {"quadruped": (FEET, FEET[1:])}
PERIODS = {"arm": 1e-3, "arm_anywhere": 1e-3, "quadruped": 2e-3, "humanoid": 1e-2}
OUTPUTS = {"quadruped": ("qdd", "fx"), "humanoid": ("tau", "fx")}


@lru_cache(maxsize=8)
def observer(name: str) -> Observer:
    """One of `ROBOTS`, planned once."""
    tree, config = ROBOTS[name]()
    sensors, states, outputs = SensorSet.from_dict(config), STATES.get(name, ((),)), OUTPUTS.get(name, ("qdd", "tau"))
    plans: Plan
    if name in STATES:
        plans = plan_set(tree, sensors, states=states, outputs=outputs)
    else:
        plans = plan(System(tree, sensors), outputs=outputs)
    return Observer(plans, states, PERIODS[name], outputs)


def _upper() -> list[str]:
    return [name for name in load("icub", "floating").joint_names if re.fullmatch(UPPER, name)]
