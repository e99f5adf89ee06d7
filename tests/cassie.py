"""Cassie, from the MJCF of others: four loops, springs and rotors by hand, after what the file says.

Its loops have independent rows: the hinges around a foot are parallel, so that its rod holds two directions.
"""

import warnings
from functools import lru_cache
from pathlib import Path

import pytest

from nori_dyn.algebra.spatial import Transform
from nori_dyn.components import Loop, Rotor, Spring
from nori_dyn.errors import NoriWarning
from nori_dyn.io.mjcf import load_mjcf
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import WORLD, Frame, KinematicTree
from tests.mechanisms import at_rest, shift
from tests.oracles import poses

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
    """Return the path of a model of others; the test skips where it is not."""
    path = MJCF_MODELS / name
    if not path.is_file():
        pytest.skip(f"{name} is not beside the repository")
    return path


@lru_cache
def cassie() -> KinematicTree:
    """Return Cassie on a floating base: four loops, springs and rotors; see `at_rest`."""
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


@lru_cache
def cassie_leg() -> KinematicTree:
    """Return the left leg of Cassie on a pelvis that is fixed to the world."""
    whole = cassie()
    own = whole.subtree(whole.link("left-hip-roll"))
    new = {i: k for k, i in enumerate(own)}
    components = []
    for component in whole.components:
        if not isinstance(component, Loop):
            component = component.model_copy(update={"joints": [n for n in component.joints if n.startswith("left")]})
        elif not component.name.startswith("left"):
            continue
        components.append(component)
    return KinematicTree(
        "cassie_leg",
        tuple(whole.names[i] for i in own),
        tuple(whole.joint_names[i] for i in own),
        tuple(new.get(whole.parents[i], WORLD) for i in own),
        tuple(whole.joints[i] for i in own),
        tuple(whole.X_tree[i] for i in own),
        whole.I[list(own)],
        {name: Frame(new[frame.link], frame.X) for name, frame in whole.frames.items() if frame.link in new},
        components=tuple(components),
    )


@lru_cache
def cassie_on_one_foot() -> KinematicTree:
    """Return Cassie with its left foot welded to the ground, where it is at rest."""
    tree = cassie()
    R, o = poses(tree, at_rest(tree))
    foot = tree.link("left-foot")
    frames = dict(tree.frames) | {"ground": Frame(WORLD, Transform(R[foot].T, o[foot]))}
    weld = Loop(name="stance", frames=["left-foot", "ground"], constrains="pose")
    return tree.replace(frames=frames, components=(*tree.components, weld))
