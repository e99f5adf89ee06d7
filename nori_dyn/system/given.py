"""Checks of the arguments by kind where a robot, sensors or a system are expected."""

from __future__ import annotations

import os

from nori_dyn.errors import WrongKindError
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System


def check_tree(given: object, call: str, then: str) -> None:
    """Check that an argument is a robot.

    Args:
        given: the argument.
        call: the function: "nd.plan".
        then: its next arguments: "sensors".

    Raises:
        WrongKindError: it is something else; its message shows how to get one.
    """
    if isinstance(given, KinematicTree):
        return
    if isinstance(given, str | os.PathLike):
        advice = f"load it first, {call}(nd.load_robot({os.fspath(given)!r}), {then})"
    else:
        advice = f"the robot comes first, as nd.load_robot returns it, {call}(tree, {then})"
    raise WrongKindError(call, "a robot (KinematicTree)", given, advice)


def check_sensors(given: object, call: str) -> None:
    """Check that an argument is a set of sensors.

    Args:
        given: the argument.
        call: the function: "nd.System".

    Raises:
        WrongKindError: it is something else; its message shows how to get one.
    """
    if not hasattr(given, "equations"):
        expected = "sensors (a set, the name of a shipped one, or a YAML file)"
        raise WrongKindError(call, expected, given, f"for one, {call}(tree, nd.sensors('inverse_dynamics'))")


def check_system(given: object, call: str) -> None:
    """Check that an argument is a system.

    Args:
        given: the argument.
        call: the function: "nd.plan".

    Raises:
        WrongKindError: it is something else; its message shows how to make one.
    """
    if isinstance(given, System):
        return
    if isinstance(given, str | os.PathLike):
        robot = f"nd.load_robot({os.fspath(given)!r})"
        advice = f"load the robot and say what its sensors are, {call}(nd.System({robot}, 'inverse_dynamics'))"
    elif isinstance(given, KinematicTree):
        advice = f"say what the robot's sensors are, {call}(nd.System(tree, 'inverse_dynamics'))"
    else:
        advice = f"make one of a robot and its sensors, {call}(nd.System(tree, sensors))"
    raise WrongKindError(call, "a system (System)", given, advice)
