"""The outputs of a plan: names like "tau", "qdd:l_knee", "fx:l_sole", and the variables that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.algebra.ranges import numbers_in
from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import ModelError, PlanError, UnknownOutputError
from nori_dyn.system.builder import System
from nori_dyn.system.variables import KINDS, OF_JOINTS, SPATIAL, Kind, Variable
from nori_dyn.typing import Indices

SHOWN = 4
"""Names in a message, at most."""


ELSEWHERE = {
    ("com", "com_velocity", "momentum", "momentum_rate"): "Ask for 'centroidal:com', 'centroidal:com_velocity', "
    "'centroidal:momentum' or 'centroidal:momentum_rate'.",
    ("zmp", "cop"): "The zero-moment point is a quotient, and no variable: nd.recursions.zmp(tree, q, estimate.fx).",
}
"""What people ask for by other names, and where it is."""


@dataclass(frozen=True, slots=True)
class Output:
    """One requested output.

    Attributes:
        name: as it was asked for.
        kind: which kind of variables.
        body: the body; None for all, and for variables of components.
        X: for a frame on a link, the transform from the link's coordinates; None in link coordinates.
        owner: the link, joint, frame or component that was named; empty for all.
    """

    name: str
    kind: Kind
    body: int | None
    X: Transform | None = None
    owner: str = ""

    @property
    def is_spatial(self) -> bool:
        """Whether it consists of spatial vectors of links."""
        return self.kind in SPATIAL

    @property
    def is_of_joints(self) -> bool:
        """Whether it consists of numbers of joints."""
        return self.kind in OF_JOINTS

    @property
    def is_of_all_links(self) -> bool:
        """Whether it is a spatial vector of each link."""
        return self.body is None and self.is_spatial

    def covers(self, variable: Variable) -> bool:
        """Whether a variable is, or is part of, this output."""
        if variable.kind != self.kind:
            return False
        return (
            variable.owner == self.owner
            if variable.key.component and self.owner
            else self.body in (None, variable.body)
        )


def resolve_outputs(system: System, names: Sequence[str] | None) -> tuple[Output, ...]:
    """The outputs with some names; None stands for all kinds of bodies, and all variables of components by name.

    Raises:
        UnknownOutputError: a kind, link, joint or frame that does not exist.
    """
    if names is None:
        of_bodies = dict.fromkeys((*KINDS, *(v.kind for v in system.variables if not v.key.component)))
        added = [v for v in system.variables if v.key.component]
        return (*(Output(k, k, None) for k in of_bodies), *(Output(v.name, v.kind, None, None, v.owner) for v in added))
    if isinstance(names, str):
        names = (names,)
    if not names:
        raise PlanError("outputs is empty: name at least one, or leave it out for all.")
    return tuple(_resolve(system, name) for name in names)


def _resolve(system: System, name: str) -> Output:
    tree = system.tree
    kind, _, owner = name.partition(":")
    if kind not in system.kinds:
        unknown = UnknownOutputError("output", name, system.kinds)
        advice = f"Each may also be of one place, such as {system.variables[2].name} or {system.variables[3].name}."
        advice = next((hint for words, hint in ELSEWHERE.items() if kind in words), advice)
        unknown.args = (f"{unknown} {advice}",)
        raise unknown
    if not owner:
        return Output(name, kind, None)
    if kind not in SPATIAL:
        found = next((v for v in system.variables if v.kind == kind and v.owner == owner), None)
        if found is not None:
            return Output(name, kind, None if found.key.component else found.body, None, owner)
        if kind in KINDS and owner in tree.joint_names:
            raise PlanError(f"output '{name}': joint '{owner}' is fixed, it has no {kind}.")
        raise UnknownOutputError("output", name, [v.name for v in system.variables if v.kind == kind])
    try:
        frame = tree.frame(owner)
    except ModelError:
        known = [v.name for v in system.variables if v.kind == kind]
        known += [f"{kind}:{frame}" for frame, there in tree.frames.items() if not there.on_world]
        raise UnknownOutputError("output", name, known) from None
    if frame.on_world:
        raise PlanError(f"output '{name}': '{owner}' is fixed to the world, which has no {kind}.")
    return Output(name, kind, frame.link, None if owner in tree.names else frame.X, owner)


def determined_outputs(system: System, names: Sequence[str] | None, undetermined: Indices) -> tuple[Output, ...]:
    """The outputs with some names; None stands for all that are determined.

    A kind of which only some variables are determined then becomes these, one by one.

    Raises:
        UnknownOutputError: a kind, link, joint or frame that does not exist.
        PlanError: one that is not determined.
    """
    found = resolve_outputs(system, names)
    lost = [v for v in system.variables if np.isin(undetermined, numbers_in([v.slice])).any()]
    if not lost:
        return found
    determined: list[Output] = []
    for output in found:
        own = [v for v in lost if output.covers(v)]
        if own and names is not None:
            raise PlanError(
                f"output '{output.name}': the sensors do not determine {', '.join(v.name for v in own[:SHOWN])}"
                f"{', ...' if len(own) > SHOWN else ''}: rows of a loop repeat others wherever it is closed, so that "
                "forces in it may be anything. Leave the output out, constrain the loop in fewer directions, or add a "
                "load cell, a linear_relation on the loop's wrench."
            )
        if not own:
            determined.append(output)
        elif not output.owner:
            kept = [v for v in system.variables if output.covers(v) and v not in lost]
            determined.extend(Output(v.name, v.kind, v.body, None, v.owner) for v in kept)
    return tuple(determined)


def output_columns(system: System, outputs: Sequence[Output]) -> Indices:
    """The columns of d that make up some outputs, one output after the other."""
    return numbers_in(v.slice for output in outputs for v in system.variables if output.covers(v))
