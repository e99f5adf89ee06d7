"""nori-dyn identify --excite: the motion to record, from which a robot's parameters are identified best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import nori_dyn as nd
from nori_dyn.cli.common import named_contacts, show_found
from nori_dyn.cli.loaded_robot import LoadedRobot
from nori_dyn.cli.options import Criterion
from nori_dyn.tables import unbroken
from nori_dyn.tables.progress import progress_bar

if TYPE_CHECKING:
    from nori_dyn.typing import Floats

EXCITED = "inertias,friction"
"""Parameters that a motion is to tell unless others are named."""

OF_MOTION = ("duration", "harmonics", "criterion", "speed", "acceleration", "torque", "rate", "starts", "seed")
"""The options that `nd.exciting_motion` takes as they are."""


@dataclass(frozen=True)
class MotionOptions:
    """What a motion that excites a robot is to be; limits of single joints, and what else there is, take Python.

    Attributes:
        duration: With --excite: of the motion [s].
        harmonics: With --excite: of the Fourier series; 5 in 10 s is up to 0.5 Hz.
        criterion: With --excite: D for the determinant of the information, A for the sum of variances.
        speed: With --excite: largest speed of any joint [rad/s or m/s].
        acceleration: With --excite: largest acceleration of any joint [rad/s^2 or m/s^2].
        torque: With --excite: largest torque of any joint [N m or N].
        at: With --excite: where a joint stands still, or near which it moves [rad or m]; repeatable.
        shapes: With --excite: whether collision shapes of the robot's file stay apart.
        rate: With --excite: samples a second of the table, and of the log that is to be.
        periodic: With --excite: not at rest at both ends.
        starts: With --excite: random motions that are improved.
        seed: With --excite: seed of everything random.
    """

    duration: float = 10.0
    harmonics: int = 5
    criterion: Criterion = "D"
    speed: float | None = None
    acceleration: float | None = None
    torque: float | None = None
    at: Annotated[list[str] | None, typer.Option(metavar="JOINT=NUMBER")] = None
    shapes: bool = True
    rate: float = 100.0
    periodic: bool = False
    starts: Annotated[int, typer.Option(min=1)] = 3
    seed: Annotated[int, typer.Option(min=0)] = 0

    def find(
        self,
        of: LoadedRobot,
        parameters: Sequence[str],
        contacts: str | None,
        out: Path | None,
        as_json: bool,
    ) -> None:
        """Find the motion that identifies parameters best, write it, and show it.

        Args:
            of: the robot, and the sensors of the log that is to be, joint torques where none are named.
            parameters: the parameters to identify.
            contacts: frames that stand, and how: "l_sole,LF_FOOT:point".
            out: the table to write.
            as_json: whether figures are printed as JSON.
        """
        from nori_dyn.identification.exciting_motion import check_table

        if out is not None:
            check_table(out)
        tree = of.tree
        parts = (name.partition(":") for name in named_contacts(contacts or ""))
        standing: dict[str, Any] = {name: how or "pose" for name, _, how in parts}
        chosen = of.sensors
        if chosen is not None and chosen.contact_names:
            chosen = chosen.in_contact(*standing)
        with progress_bar("excite") as stage:
            motion = nd.exciting_motion(
                tree if chosen is None else nd.System(tree, chosen),
                parameters,
                progress=stage,
                **{name: getattr(self, name) for name in OF_MOTION},
                at=configuration(tree, self.at),
                contacts=standing,
                shapes=of.source if self.shapes else None,
                at_rest=not self.periodic,
            )
        samples = None if out is None else motion.to_csv(out)
        written = "To have it as a table: --out MOTION.csv"
        if out is not None:
            written = f"{samples:,} samples written to {unbroken(str(out))}."
        show_found(motion, as_json, written, samples=samples)


def configuration(tree: nd.KinematicTree, given: Sequence[str] | None) -> Floats | None:
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
