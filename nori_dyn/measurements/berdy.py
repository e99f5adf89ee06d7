"""BERDY's maximum a posteriori estimate as a set of sensors: noisy dynamics, and a prior on all variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from nori_dyn.errors import UnknownSensorNameError
from nori_dyn.measurements.joint_torque import JointTorque
from nori_dyn.measurements.selectors import Except
from nori_dyn.measurements.sensor_set import SensorSet

Numbers: TypeAlias = float | Sequence[float]

VARIABLES = ("a", "f", "fx", "qdd")
"""The kinds of variables of BERDY with a floating base: it has no torques, which follow from f."""


def berdy_map(
    sensors: SensorSet,
    dynamics: float | Mapping[str, Numbers],
    prior: Numbers | Mapping[str, Numbers],
    mean: Numbers | Mapping[str, Numbers | None] | None = 0.0,
) -> SensorSet:
    """A set of sensors whose estimate is that of iDynTree's BERDY with a floating base, its MAP mode.

        minimise |D d + b_D|^2 / dynamics^2  +  |d - mean|^2 / prior^2  +  |Y d + b_Y|^2 / sigma^2

    d are the accelerations a of the links, the wrenches f through the joints, the external wrenches fx and the joint
    accelerations qdd; the base has no joint: no wrench from the world, and no prior on its qdd. As there, D are (3a) of
    the joints and (3f), and the prior on a is on conventional accelerations, gravity included. Torques follow exactly,
    tau = S^T f. All standard deviations, squared in BERDY's covariances, are inputs as weights: "3a:l_foot",
    "prior:fx:l_foot".

    Args:
        sensors: the sensors, each with its sigma; none of them on the free joint of the base.
        dynamics: standard deviation of the equations: one number, or by equation, "3a" and "3f"; one that is left out
            is exact.
        prior: standard deviation of the prior: one number, or by kind, "a", "f", "fx", "qdd", one or one a component;
            a kind that is left out has no prior.
        mean: its mean, likewise, with 0 where it is left out; None makes it an input, as a reading, of the name
            "prior:fx:l_foot".

    Raises:
        InvalidConfigError: a sigma that is not positive.
        UnknownSensorNameError: an equation or a kind of variables that BERDY has not.

    Source: iDynTree 15, BerdySparseMAPSolver with BERDY_FLOATING_BASE (tests/agreement/test_map.py).
    """
    by_equation = dynamics if isinstance(dynamics, Mapping) else dict.fromkeys(("3a", "3f"), dynamics)
    by_kind = prior if isinstance(prior, Mapping) else dict.fromkeys(VARIABLES, prior)
    means = mean if isinstance(mean, Mapping) else dict.fromkeys(VARIABLES, mean)
    for name in by_equation:
        if name not in ("3a", "3f"):
            raise UnknownSensorNameError("equation of BERDY's", name, ("3a", "3f"))
    for name in (*by_kind, *means):
        if name not in VARIABLES:
            raise UnknownSensorNameError("kind of BERDY's variables", name, VARIABLES)
    priors: list[dict[str, Any]] = [
        {
            "type": "prior",
            "variables": [kind],
            "joints": "actuated",
            "mean": means.get(kind, 0.0),
            "sigma": sigma,
            "conventional": True,
        }
        for kind, sigma in by_kind.items()
    ]
    added = SensorSet.from_dict(
        {"name": sensors.name, "dynamics": {"sigma": dict(by_equation)}, "measurements": priors}
    )
    base = JointTorque(type="joint_torque", joints=Except(**{"except": "actuated"}), value=0.0)
    measurements = (base, *sensors.measurements, *added.measurements)
    return replace(sensors, measurements=measurements, dynamics=added.dynamics)
