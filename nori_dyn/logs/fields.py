"""Fields of files of estimates, or of a motion: names, units, owners and uncertainty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nori_dyn.filtering.history import History
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.logs.formats.writer import SIGMA, Field, FileSchema
from nori_dyn.logs.mapping.record import COORDINATE_UNITS
from nori_dyn.measurements.contacts import TOUCH_POINT
from nori_dyn.measurements.floating_base import BASE, COMPONENTS, UNITS
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.outputs import Output
from nori_dyn.program.layout import OutputSlice, output_parts
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.estimate import Estimate
from nori_dyn.system.builder import System
from nori_dyn.system.variables import Variable, component_names, numbered, tree_variables
from nori_dyn.typing import Floats

RESIDUAL, FELL_BACK, P_VALUE = "residual", "fell_back", "p_value"
EXTRAS = (RESIDUAL, FELL_BACK, P_VALUE)
"""Columns of a file of estimates that are no estimates."""


BASE_POSE: dict[str, tuple[tuple[str, ...], str]] = {
    "base_position": (("x", "y", "z"), "m"),
    "base_rotation": (("x", "y", "z", "w"), ""),
}
"""Pose of a floating base that is state: components and unit."""

BASE_STATE = {f"base_{name}": (COMPONENTS[name], unit) for name, unit in UNITS.items()}
"""Its state, along base axes: components and unit."""


def schema_of(
    system: System,
    outputs: Sequence[Output],
    has_time: bool,
    has_residual: bool,
    is_monitored: bool,
    metadata: Mapping[str, str],
    memory: Sequence[Variable] = (),
    recognised: Iterable[str] = (),
) -> FileSchema:
    """Schema of a file of estimates.

    Args:
        system: what is solved.
        outputs: the outputs of the plan.
        has_time: whether the times of samples are known.
        has_residual: whether the residual is computed.
        is_monitored: whether a monitor judges the estimates: then `sigma:` and an output's name stand for its standard
            deviation, and `p_value` for how likely it is that sound sensors fit together as badly.
        metadata: see `FileSchema`.
        memory: variables that persist, and are no outputs: they are written as well, and for the state of a floating
            base its pose, velocity, gravity and angular velocity.
        recognised: the names of probabilities that are written: "contact:l_foot", "collision:tau:elbow".
    """
    parts = list(output_parts(system, outputs))
    fields = []
    for before in ("", *([SIGMA] if is_monitored else [])):
        fields += [_field(system, part, before) for part in parts]
        fields += [
            _rows(f"{before}{v.name}", [before + label for label in v.component_names], v.units, v.kind, v.owner)
            for v in memory
            if v.kind != BASE
        ]
        link = next((system.tree.names[v.body] for v in memory if v.kind == BASE), None)
        if link is not None:
            own = BASE_STATE if before else BASE_POSE | BASE_STATE
            for name, (components, unit) in own.items():
                labels = [f"{before}{name}.{component}" for component in components]
                fields.append(_rows(before + name, labels, [unit] * len(labels), BASE, link))
    flags = [*([RESIDUAL] if has_residual else []), FELL_BACK, *([P_VALUE] if is_monitored else [])]
    flags += recognised
    fields += [Field(name, (), (name,), ("m" if name in TOUCH_POINT else "",)) for name in flags]
    return FileSchema(tuple(fields), has_time, metadata)


def motion_schema(tree: KinematicTree, metadata: Mapping[str, str]) -> FileSchema:
    """Schema of a file of a motion: q, qd, qdd and tau of all joints, named as their readings."""
    joints = tuple(zip(tree.joint_names, tree.joints, strict=True))
    found: dict[str, list[tuple[Sequence[str], Sequence[str]]]] = {}
    found["q"] = [
        (numbered(f"q:{name}", j.nq), [COORDINATE_UNITS[kind] for kind in j.coordinates]) for name, j in joints
    ]
    found["qd"] = [(numbered(f"qd:{name}", j.nv), j.units("rad/s", "m/s")) for name, j in joints]
    for kind in ("qdd", "tau"):
        found[kind] = [(v.component_names, v.units) for v in tree_variables(tree) if v.kind == kind]
    fields = []
    for kind, parts in found.items():
        labels = tuple(label for names, _ in parts for label in names)
        units = tuple(unit for _, units in parts for unit in units)
        fields.append(Field(kind, (len(labels),), labels, units, kind))
    return FileSchema(tuple(fields), has_time=True, metadata=metadata)


def not_estimated(memory: Sequence[Variable], outputs: Sequence[Output]) -> tuple[Variable, ...]:
    """States over time that are no outputs."""
    return tuple(v for v in memory if not any(output.covers(v) for output in outputs))


def remembered(memory: Sequence[Variable], of: Tracked | History) -> dict[str, Floats]:
    """States over time and their standard deviations, by name."""
    states = of.memory
    places = {v.name: states.places(v.name) for v in memory if v.kind != BASE}
    found = {name: states.mean[..., own] for name, own in places.items()}
    found |= {f"{SIGMA}{name}": states.deviations[..., own] for name, own in places.items()}
    if len(places) < len(memory) and of.base is not None:
        found |= {"base_position": of.base.position, "base_rotation": of.base.rotation}
        for before, values in (("", of.base.mean), (SIGMA, of.base.deviations)):
            found |= {before + name: part for name, part in zip(BASE_STATE, np.split(values, 3, axis=-1), strict=True)}
    return found


def written(
    schema: FileSchema,
    estimate: Estimate,
    diagnosis: Diagnosis | Tracked | History | None,
    more: Mapping[str, Floats] | None = None,
) -> dict[str, Floats]:
    """Fields (n, *shape) of the estimates of n samples, by name.

    Args:
        schema: what is written.
        estimate: the estimates.
        diagnosis: how sure they are, where that is known.
        more: what else is written, by name.
    """
    found = {**estimate.values, RESIDUAL: np.asarray(estimate.residual)}
    found |= {FELL_BACK: np.asarray(estimate.fell_back, dtype=float)} | dict(more or {})
    if diagnosis is not None:
        found |= {f"{SIGMA}{key}": values for key, values in diagnosis.deviations.items()}
        found[P_VALUE] = np.asarray(diagnosis.p_value)
    return {each.name: found[each.name] for each in schema.fields}


def _rows(name: str, labels: Sequence[str], units: Sequence[str], kind: str, owner: str) -> Field:
    """A field of numbers of one owner."""
    return Field(name, (len(labels),), tuple(labels), tuple(units), kind, (owner,) * len(labels))


def _field(system: System, part: OutputSlice, before: str) -> Field:
    output = part.output
    own = [v for v in system.variables if output.covers(v)]
    units = tuple(unit for v in own for unit in v.units)
    if output.body is None:
        labels = tuple(label for v in own for label in v.component_names)
        owners = tuple(v.owner for v in own for _ in range(1 if output.is_of_all_links else len(v.components)))
    else:
        labels = component_names(output.name, own[0].components)
        owners = (output.owner or own[0].owner,) * (1 if output.is_spatial else len(labels))
    return Field(
        f"{before}{output.name}", part.shape, tuple(before + label for label in labels), units, output.kind, owners
    )
