"""The components of a pinocchio.Model: rotors of its armature, friction, couplings of mimic joints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nori_dyn.components import Coupling, Friction, Rotor
from nori_dyn.components.base import Component
from nori_dyn.components.building import JointTermData, component, joint_components
from nori_dyn.typing import Floats

MIMIC = "Mimic"
"""Pinocchio's kind of a joint that follows another one, and has no freedom of its own."""


@dataclass
class PinocchioComponents:
    """What a model has beside rigid bodies on joints.

    Attributes:
        components: what is stated exactly.
        notes: what was left out as was asked for, for people.
        ignored: what no component says, for people.
    """

    components: list[Component] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


def kind_of(joint: Any) -> str:
    """Return Pinocchio's name for the kind of a joint."""
    return str(joint.shortname()).removeprefix("JointModel")


def pinocchio_components(model: Any, components: bool, friction: bool) -> PinocchioComponents:
    """Return the components of a model: see `from_pinocchio`.

    Raises:
        ModelError: a negative number.
    """
    found = PinocchioComponents()
    armature, damping = _of(model, "armature"), _of(model, "damping")
    dry = _of(model, "upperDryFrictionLimit", "friction")
    if np.any(armature) and not components:
        found.notes.append("armature left out")
    if (np.any(damping) or np.any(dry)) and not friction:
        found.notes.append("damping and dry friction left out: friction=True takes them in")
    one_way = friction and np.any(_of(model, "lowerDryFrictionLimit") + dry) and hasattr(model, "lowerDryFrictionLimit")
    if one_way:
        found.ignored.append("dry friction that is not the same both ways")
        dry = np.zeros(model.nv)
    terms = [*_terms(model, found, "armature", Rotor, {"inertia": armature})] if components else []
    if friction:
        terms += _terms(model, found, "friction", Friction, {"viscous": damping, "coulomb": dry})
    found.components += joint_components(terms)
    if components:
        found.components += _couplings(model)
    return found


def _of(model: Any, *names: str) -> Floats:
    """Return the first of some arrays (nv,) of a model that it has; zeros without one."""
    return next((np.array(getattr(model, name)) for name in names if hasattr(model, name)), np.zeros(model.nv))


def _terms(
    model: Any, found: PinocchioComponents, what: str, kind: type[Component], numbers: dict[str, Floats]
) -> Iterator[JointTermData]:
    """Yield what acts on joints; a joint whose freedoms differ is ignored by name."""
    for j in range(1, model.njoints):
        peer = model.joints[j]
        own = {name: values[peer.idx_v : peer.idx_v + peer.nv] for name, values in numbers.items()}
        if any(np.ptp(values) for values in own.values() if len(values)):
            found.ignored.append(f"{what} of joint '{model.names[j]}', whose freedoms have different ones")
        elif peer.nv:
            yield model.names[j], kind, {name: float(values[0]) for name, values in own.items()}


def _couplings(model: Any) -> Iterator[Coupling]:
    """Yield what mimic joints follow."""
    for j, leader in zip(getattr(model, "mimicking_joints", ()), getattr(model, "mimicked_joints", ()), strict=True):
        mimic = model.joints[j].extract()
        of = {model.names[leader]: float(mimic.scaling)}
        yield component(Coupling, {"joint": model.names[j], "of": of, "offset": float(mimic.offset)})
