"""Which variables a plan is asked for: names like "tau", "qdd:l_knee", "fx:l_sole", and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nori_dyn.algebra.ranges import numbers_in
from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import ModelError, PlanError, UnknownOutputError
from nori_dyn.system.builder import System
from nori_dyn.system.variables import KINDS, Kind
from nori_dyn.typing import Indices


@dataclass(frozen=True, slots=True)
class Output:
    """One requested output.

    Attributes:
        name: as it was asked for.
        kind: which of the five kinds of variables.
        body: the body; None for all.
        X: for a frame on a link, the transform from the link's coordinates; None in link coordinates.
        owner: the link, joint or frame that was named; empty for all.
    """

    name: str
    kind: Kind
    body: int | None
    X: Transform | None = None
    owner: str = ""


def resolve_outputs(system: System, names: Sequence[str] | None) -> tuple[Output, ...]:
    """Return what the names stand for; None stands for all five kinds.

    Raises:
        UnknownOutputError: a kind, link, joint or frame that does not exist.
    """
    if names is None:
        return tuple(Output(kind, kind, None) for kind in KINDS)
    if isinstance(names, str):
        names = (names,)
    if not names:
        raise PlanError("outputs is empty: name at least one, or leave it out for all.")
    return tuple(_resolve(system, name) for name in names)


def _resolve(system: System, name: str) -> Output:
    tree = system.tree
    head, _, owner = name.partition(":")
    kind = next((k for k in KINDS if k == head), None)
    if kind is None:
        unknown = UnknownOutputError("output", name, KINDS)
        advice = f"Each may also be of one place, such as {system.variables[2].name} or {system.variables[3].name}."
        unknown.args = (f"{unknown} {advice}",)
        raise unknown
    if not owner:
        return Output(name, kind, None)
    try:
        if kind in ("tau", "qdd"):
            joint = tree.joint(owner)
            if not tree.joints[joint].nv:
                raise PlanError(f"output '{name}': joint '{owner}' is fixed, it has no {kind}.")
            return Output(name, kind, joint, None, owner)
        frame = tree.frame(owner)
    except ModelError:
        known = [v.name for v in system.variables if v.kind == kind]
        if kind not in ("tau", "qdd"):
            known += [f"{kind}:{frame}" for frame, there in tree.frames.items() if not there.on_world]
        raise UnknownOutputError("output", name, known) from None
    if frame.on_world:
        raise PlanError(f"output '{name}': '{owner}' is fixed to the world, which has no {kind}.")
    return Output(name, kind, frame.link, None if owner in tree.names else frame.X, owner)


def output_columns(system: System, outputs: Sequence[Output]) -> Indices:
    """Return the columns of d that make up some outputs, one output after the other."""
    return numbers_in(
        system.column(output.kind, body)
        for output in outputs
        for body in (range(system.tree.n_links) if output.body is None else (output.body,))
    )
