"""The motion of `nori-dyn identify --excite`, which identifies a robot's parameters best, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from nori_dyn.cli.common import named_contacts, print_json
from nori_dyn.report.terminal import show
from nori_dyn.tables import unbroken
from nori_dyn.tables.progress import progress_bar

if TYPE_CHECKING:
    from nori_dyn.estimation.system import System
    from nori_dyn.model.tree import KinematicTree
    from nori_dyn.typing import Floats


EACH = "NUMBER|JOINT=NUMBER"
"""How a limit is written: for all joints, or for one."""

Limit = list[str] | None


def find_motion(
    system: KinematicTree | System,
    parameters: Sequence[str],
    limits: Mapping[str, Any],
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Find a motion, write it, and show it.

    Args:
        system: the robot, or the robot with the sensors of the log that is to be.
        parameters: the parameters to identify.
        limits: as for `exciting_motion`.
        out: the table to write.
        as_json: whether figures are printed as JSON.
        **options: as for `exciting_motion`.
    """
    from nori_dyn.identification.exciting_motion import exciting_motion

    with progress_bar("excite") as stage:
        motion = exciting_motion(system, parameters, progress=stage, **limits, **options)
    samples = None if out is None else motion.to_csv(out)
    if as_json:
        print_json({**motion.to_dict(), "samples": samples})
    elif out is None:
        show(motion.shown(), "To have it as a table: --out MOTION.csv")
    else:
        show(motion.shown(), f"{samples:,} samples written to {unbroken(str(out))}.")


def standing_contacts(given: str | None) -> dict[str, str]:
    """Frames that stand, and how: "l_sole,LF_FOOT:point"."""
    parts = (name.partition(":") for name in named_contacts(given or ""))
    return {name: how or "pose" for name, _, how in parts}


def configuration(tree: KinematicTree, given: Sequence[str] | None) -> Floats | None:
    """The neutral configuration but for joints that are given, each "JOINT=NUMBER"; None where none are."""
    if not given:
        return None
    q = tree.neutral_configuration()
    for text in given:
        joint, _, number = text.rpartition("=")
        try:
            position = float(number)
        except ValueError:
            raise typer.BadParameter(f"'{text}' is not a position: write elbow=1.5.", param_hint="--at") from None
        i = tree.joint(joint)
        if tree.joints[i].nq != 1:
            raise typer.BadParameter(f"'{joint}' has no position of one number.", param_hint="--at")
        q[tree.q_slices[i]] = position
    return q


def limits_of(given: Mapping[str, Limit]) -> dict[str, Any]:
    """Limits as `exciting_motion` takes them: a number for all joints, or by name."""
    return {name: _limits(f"--{name}", texts) for name, texts in given.items()}


def _limits(option: str, given: Sequence[str] | None) -> Any:
    found: dict[str, Any] = {}
    for text in given or ():
        joint, is_of_one, number = text.rpartition("=")
        ends = number.split(":")
        try:
            numbers = [float(end) for end in ends]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= (2 if option == "--position" else 1):
            raise typer.BadParameter(f"'{text}' is not a limit: write 1.5, or elbow=1.5.", param_hint=option)
        if not is_of_one and len(given or ()) > 1:
            raise typer.BadParameter(
                f"'{text}' is for all joints, and others are given: name joints.", param_hint=option
            )
        value = numbers[0] if len(numbers) == 1 else tuple(numbers)
        if not is_of_one:
            return value
        found[joint] = value
    return found or None
