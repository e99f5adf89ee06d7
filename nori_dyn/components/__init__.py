"""Components of robots beside rigid bodies on joints: motors, friction, springs, couplings, loops, tendons.

    tree = tree.replace(components=(nd.components.Rotor(joints="all", inertia=1e-4, gear=100),))

Each is data, as in a YAML file; its share in the equations are its parts, see `Part`. A package offers
components of its own under the entry-point group `nori_dyn.components`.

Example:
    >>> motors = nd.components.Rotor(joints="all", inertia=2e-4, gear=100)
    >>> arm = nd.autotree(2).replace(components=(motors,))
    >>> solver = nd.plan(nd.System(arm, "inverse_dynamics"), outputs=["tau", "tau_J"]).solver("numpy")
    >>> found = solver.solve(np.zeros(2), np.zeros(2), np.array([1.0, 0.0]))
    >>> print(np.round(found.tau - found["tau_J"], 2))  # gear^2 inertia qdd: what the rotors take
    [2. 0.]
"""

from __future__ import annotations

from nori_dyn.components.base import Component, JointTerm
from nori_dyn.components.coupling import Coupling
from nori_dyn.components.friction import Friction
from nori_dyn.components.harmonics import Harmonics
from nori_dyn.components.loop import Loop
from nori_dyn.components.rotor import Rotor
from nori_dyn.components.spring import Spring
from nori_dyn.components.tendon import Tendon
from nori_dyn.components.unknown_payload import UnknownPayload
from nori_dyn.system.parts import Part
from nori_dyn.system.variables import Unknown

__all__ = [
    "Component",
    "Coupling",
    "Friction",
    "Harmonics",
    "JointTerm",
    "Loop",
    "Part",
    "Rotor",
    "Spring",
    "Tendon",
    "Unknown",
    "UnknownPayload",
]
