"""States, forces and robots as Pinocchio, MuJoCo and Featherstone write them. It opens no file.

tree = nd.interop.from_pinocchio(model)                 a robot that Pinocchio has loaded
state = nd.interop.to_convention(tree, "mujoco", q, qd)   and from_convention; a model of Pinocchio's for its own order

Example:
    >>> drone = nd.tools.random_tree(1, seed=0, kinds=["free"])
    >>> print(nd.interop.to_convention(drone, "mujoco", drone.neutral_configuration()).q)  # quaternion w, x, y, z
    [0. 0. 0. 1. 0. 0. 0.]
"""

from __future__ import annotations

from nori_dyn.interop.peer_states import PeerState, from_convention, to_convention
from nori_dyn.interop.pinocchio_model import from_pinocchio
from nori_dyn.renamed import former_names

__all__ = [
    "PeerState",
    "from_convention",
    "from_pinocchio",
    "to_convention",
]

__getattr__ = former_names(__name__, {"to_pinocchio_order": to_convention, "from_pinocchio_order": from_convention})
