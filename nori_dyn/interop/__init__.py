"""States, forces and robots as Pinocchio, MuJoCo and Featherstone write them. It opens no file.

tree = nd.interop.from_pinocchio(model)                 a robot that Pinocchio has loaded
nd.interop.to_pinocchio_order(tree, model, q, qd)       numbers of this tree as Pinocchio orders them, and back
state = nd.interop.to_convention(tree, "mujoco", q, qd)   and from_convention

Example:
    >>> drone = nd.tools.random_tree(1, seed=0, kinds=["free"])
    >>> print(nd.interop.to_convention(drone, "mujoco", drone.neutral_configuration()).q)  # quaternion w, x, y, z
    [0. 0. 0. 1. 0. 0. 0.]
"""

from __future__ import annotations

from nori_dyn.interop.peer_states import PeerState, from_convention, to_convention
from nori_dyn.interop.pinocchio_model import from_pinocchio, from_pinocchio_order, to_pinocchio_order

__all__ = [
    "PeerState",
    "from_convention",
    "from_pinocchio",
    "from_pinocchio_order",
    "to_convention",
    "to_pinocchio_order",
]
