"""What a robot carries at a frame, as the software of its vendor takes it. To add a format: one function, and its row.

Source: Franka, `endeffector-config.json` of the documentation of End effector commissioning, and `Robot::setLoad` of
libfranka; Universal Robots, `set_target_payload` of the script manual; ROS, the parameters of control_toolbox's
GravityCompensation filter and of the admittance_controller.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from nori_dyn.descriptions.corrections import can_be, link_of
from nori_dyn.errors import FileFormatError, InputError
from nori_dyn.io.files import check_writable, write_bytes
from nori_dyn.model.inertia import inertia_of_ten, nearest_physical
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Payload:
    """A body that a robot carries, in coordinates of a frame.

    Attributes:
        frame: the frame, which a vendor calls the flange.
        mass: [kg].
        com: centre of mass (3,) [m].
        I_com: rotational inertia (3, 3) about the centre of mass [kg m^2].
        base: a frame that does not move.
        weight: the force of gravity on it (3,) [N], in the axes of the latter.

    Example:
        >>> arm = nd.autotree(2)
        >>> print(nd.results.Payload.of(arm, 0.5 * arm.I[1], "link2", "link2").com)
        [0.5 0.  0. ]
    """

    frame: str
    mass: float
    com: Floats
    I_com: Floats
    base: str
    weight: Floats

    @staticmethod
    def of_ten(tree: KinematicTree, ten: Floats, at: str) -> Payload:
        """The payload of ten parameters that a tracker found, "payload:tool0", at a link or frame: "tool0".

        Raises:
            InputError: there is no mass.
            UnknownModelNameError: there is no such link or frame.
        """
        frame = tree.frame(at)
        X = frame.X.motion_matrix()
        return Payload.of(tree, X.T @ inertia_of_ten(ten) @ X, tree.names[frame.link], at)

    @staticmethod
    def of(tree: KinematicTree, I: Floats, link: str, frame: str) -> Payload:
        """The payload of a spatial inertia (6, 6) in link coordinates; its rotational inertia is one that bodies have.

        Raises:
            InputError: the frame is not on the link, or there is no mass.
            UnknownModelNameError: there is no such frame.
        """
        at = tree.frame(frame)
        if at.on_world or tree.names[at.link] != link:
            where = "the world" if at.on_world else f"'{tree.names[at.link]}'"
            raise InputError(f"the payload is on link '{link}', and frame '{frame}' on {where}: name one of its link.")
        if not I[5, 5] > 0:
            raise InputError(
                f"what '{link}' carries beyond its model weighs {I[5, 5]:.3g} kg: no payload. Where it is part of the "
                "model, load the robot without it."
            )
        body = link_of(frame, I, at.X)
        I_com = body.I_com if can_be(body) else nearest_physical(body.I_com)
        fixed = {name: frame.X.E for name, frame in tree.frames.items() if frame.on_world}
        base, E = next(iter(fixed.items()), ("world", np.eye(3)))
        return Payload(frame, body.mass, body.com, I_com, base, body.mass * E @ np.array(tree.gravity))


def save_payload(payload: Payload, out: str | os.PathLike[str]) -> None:
    """Write a payload as the software of a vendor takes it, by how the file ends.

    - `.json`: Franka's end effector, for Desk: mass, centre of mass and inertia are the arguments of `setLoad` as well.
      An archive of newer systems holds it as `endeffector-config.json`, with an id, a name and a colour besides.
    - `.script`: `set_target_payload` of Universal Robots.
    - `.yaml`: parameters of ros2_control, for the gravity compensation of a force-torque sensor.

    Args:
        payload: the payload, in coordinates of the flange: see `Identification.payload`.
        out: where to write.

    Raises:
        FileFormatError: it ends otherwise, or cannot be written.

    Example:
        >>> from pathlib import Path
        >>> arm, t, w = nd.autotree(4, skew=0.5), np.arange(0.0, 5.0, 0.01)[:, None], np.arange(2.0, 6.0)
        >>> motion = {"q": np.sin(w * t), "qd": w * np.cos(w * t), "qdd": -(w**2) * np.sin(w * t)}
        >>> for name, robot in (("free", arm), ("loaded", arm.replace(I=[*arm.I[:3], 1.5 * arm.I[3]]))):
        ...     np.savez(f"{name}.npz", t=t[:, 0], **motion, tau=nd.compile(nd.rnea, robot).batch(*motion.values()))
        >>> found = nd.identify("free.npz", arm, loaded="loaded.npz", load_on="link4", physical=False)
        >>> nd.tools.save_payload(found.payload("link4"), "tool.script")
        >>> print(Path("tool.script").read_text(), end="")
        set_target_payload(0.5, [0.5, 0.0, 0.0], [0.00125, 0.042291667, 0.042291667, 0.0, 0.0, 0.0])
    """
    check_payload(out)
    write_bytes(Path(out), FORMATS[Path(out).suffix.lower()](payload).encode())


def check_payload(out: str | os.PathLike[str]) -> None:
    """Check, before the work, that a payload can be written to a file.

    Raises:
        FileFormatError: see `save_payload`.
    """
    if Path(out).suffix.lower() not in FORMATS:
        raise FileFormatError(f"{out}: a payload is written to a file that ends in {', '.join(FORMATS)}.")
    check_writable(Path(out))


def _franka(payload: Payload) -> str:
    matrices = {"inertia": payload.I_com, "transformation": np.eye(4)}  # in columns
    columns = {name: _numbers(matrix.T.ravel()) for name, matrix in matrices.items()}
    return json.dumps({"mass": _number(payload.mass), "centerOfMass": _numbers(payload.com), **columns}) + "\n"


def _universal_robots(payload: Payload) -> str:
    numbers = np.concatenate([[payload.mass], payload.com, payload.I_com[(0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]])
    m, *others = (np.format_float_positional(x, trim="0") for x in _numbers(numbers))
    return f"set_target_payload({m}, [{', '.join(others[:3])}], [{', '.join(others[3:])}])\n"


def _ros2_control(payload: Payload) -> str:
    com, weight = _numbers(payload.com), _numbers(payload.weight)
    params = {"world_frame": payload.base, "sensor_frame": payload.frame, "CoG": {"pos": com, "force": weight}}
    of_filter = {"type": "control_filters/GravityCompensationWrench", "name": "payload", "params": params}
    strength = _number(np.linalg.norm(payload.weight))
    parameters: dict[str, Any] = {
        "force_torque_sensor_broadcaster": {"sensor_filter_chain": {"filter1": of_filter}},
        "admittance_controller": {
            "gravity_compensation": {"frame": {"id": payload.frame}, "CoG": {"pos": com, "force": strength}}
        },
    }
    nodes = {node: {"ros__parameters": own} for node, own in parameters.items()}
    return yaml.safe_dump(nodes, sort_keys=False, default_flow_style=None)


def _number(x: Any) -> float:
    return round(float(x), 9) + 0.0  # which is not -0


def _numbers(x: Floats) -> list[float]:
    return [_number(each) for each in x]


FORMATS: Mapping[str, Callable[[Payload], str]] = {
    ".json": _franka,
    ".script": _universal_robots,
    ".yaml": _ros2_control,
}
"""What writes a payload, by the ending of the file."""
