"""Cassie, from the MJCF of others: four loops, springs and rotors by hand, after what the file says.

Its loops have independent rows: the hinges around a foot are parallel, so that its rod holds two directions.
"""

import warnings
from functools import lru_cache
from pathlib import Path

import pytest

from nori_dyn.components import Loop, Rotor, Spring
from nori_dyn.descriptions.mjcf import load_mjcf
from nori_dyn.errors import NoriWarning
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import Frame, KinematicTree
from tests.mechanisms import at_rest, shift

MJCF_MODELS = Path(__file__).resolve().parents[2] / "shared" / "data" / "mjcf"
"""Models of others, beside the repository: tests that read them skip where they are not."""

CASSIE_LOOPS = {
    f"{side}-{rod}": (f"{side}-{rod}", f"{side}-{other}", reach)
    for side in ("left", "right")
    for rod, other, reach in (("plantar-rod", "foot", 0.35012), ("achilles-rod", "heel-spring", 0.5012))
}
"""What `equality` says: the rod, the link that it ends on, and how far along the rod [m]."""

CASSIE_ROTORS = {"hip-roll": 0.038125, "hip-yaw": 0.038125, "hip-pitch": 0.09344, "knee": 0.09344, "foot": 0.01225}
CASSIE_SPRINGS = {"shin": 1500.0, "heel-spring": 1250.0}


def mjcf_model(name: str) -> Path:
    """The path of a model of others; the test skips where it is not."""
    path = MJCF_MODELS / name
    if not path.is_file():
        pytest.skip(f"{name} is not beside the repository")
    return path


@lru_cache
def cassie() -> KinematicTree:
    """Cassie on a floating base: four loops, springs and rotors; see `at_rest`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoriWarning)
        bare = load_mjcf(mjcf_model("cassie.xml")).replace(components=())
    at, X = positions(bare, at_rest(bare)), []
    for i in range(bare.n_links):
        X.append(at.X_up[i] if bare.is_root(i) else at.X_up[i] @ X[bare.parents[i]])
    frames, components = dict(bare.frames), []
    for name, (rod, other, reach) in CASSIE_LOOPS.items():
        first, second = bare.link(rod), bare.link(other)
        end = shift((reach, 0, 0))
        frames |= {f"{name}:1": Frame(first, end), f"{name}:2": Frame(second, end @ X[first] @ X[second].inverse())}
        held = ["fx", "fy"] if "plantar" in name else "point"
        components.append(Loop(name=name, frames=[f"{name}:1", f"{name}:2"], constrains=held))
    sides = ("left", "right")
    components += [
        Rotor(joints=[f"{side}-{joint}" for side in sides], inertia=inertia) for joint, inertia in CASSIE_ROTORS.items()
    ]
    components += [
        Spring(joints=[f"{side}-{joint}" for side in sides], stiffness=k) for joint, k in CASSIE_SPRINGS.items()
    ]
    return bare.replace(frames=frames, components=tuple(components))
