"""The motion of `nori-dyn identify --excite`, which identifies a robot's parameters best, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import nori_dyn as nd
from nori_dyn.cli.common import named_contacts, show_found
from nori_dyn.cli.options import Criterion, RobotOptions
from nori_dyn.tables import unbroken
from nori_dyn.tables.progress import progress_bar

if TYPE_CHECKING:
    from nori_dyn.typing import Floats

EACH = "NUMBER|JOINT=NUMBER"
"""How a limit is written: for all joints, or for one."""

Limit = list[str] | None

LIMITS = ("position", "speed", "acceleration", "torque")
"""The options that are limits."""

AS_THEY_ARE = ("duration", "harmonics", "criterion", "floor", "apart", "rate", "starts", "seed")
"""The options that `nd.exciting_motion` takes as they are."""


@dataclass(frozen=True)
class MotionOptions:
    """What a motion that excites a robot is to be.

    Attributes:
        duration: With --excite: of the motion [s].
        harmonics: With --excite: of the Fourier series; 5 in 10 s is up to 0.5 Hz.
        criterion: With --excite: D for the determinant of the information, A for the sum of variances.
        joint: With --excite: a joint that moves; repeatable. All when left out.
        position: With --excite: how far joints go [rad or m].
        speed: With --excite: largest speeds [rad/s or m/s]; repeatable.
        acceleration: With --excite: largest accelerations [rad/s^2 or m/s^2]; repeatable.
        torque: With --excite: largest torques [N m or N]; repeatable.
        at: With --excite: where a joint stands still, or near which it moves [rad or m]; repeatable.
        shapes: With --excite: whether collision shapes of the robot's file stay apart.
        floor: With --excite: of a floor [m]; that of contacts when left out.
        apart: With --excite: how far shapes stay apart [m].
        ground_friction: With --excite: under contacts, which keep balance; 0 leaves that open.
        rate: With --excite: samples a second of the table, and of the log that is to be.
        periodic: With --excite: not at rest at both ends.
        starts: With --excite: random motions that are improved.
        seed: With --excite: seed of everything random.
    """

    duration: float = 10.0
    harmonics: int = 5
    criterion: Criterion = "D"
    joint: Annotated[list[str] | None, typer.Option(metavar="JOINT")] = None
    position: Annotated[Limit, typer.Option(metavar="NUMBER|JOINT=NUMBER|JOINT=LOW:HIGH")] = None
    speed: Annotated[Limit, typer.Option(metavar=EACH)] = None
    acceleration: Annotated[Limit, typer.Option(metavar=EACH)] = None
    torque: Annotated[Limit, typer.Option(metavar=EACH)] = None
    at: Annotated[list[str] | None, typer.Option(metavar="JOINT=NUMBER")] = None
    shapes: bool = True
    floor: Annotated[float | None, typer.Option(metavar="HEIGHT")] = None
    apart: float = 0.01
    ground_friction: Annotated[float, typer.Option(min=0.0)] = 0.5
    rate: float = 100.0
    periodic: bool = False
    starts: Annotated[int, typer.Option(min=1)] = 3
    seed: Annotated[int, typer.Option(min=0)] = 0

    def find(
        self,
        model: RobotOptions,
        robot: str,
        sensors: str | None,
        parameters: Sequence[str],
        contacts: str | None,
        out: Path | None,
        as_json: bool,
    ) -> None:
        """Find the motion that identifies parameters best, write it, and show it.

        Args:
            model: how the robot is loaded.
            robot: its file or name.
            sensors: those of the log that is to be; joint torques when None.
            parameters: the parameters to identify.
            contacts: frames that stand, and how: "l_sole,LF_FOOT:point".
            out: the table to write.
            as_json: whether figures are printed as JSON.
        """
        from nori_dyn.identification.exciting_motion import check_table

        if out is not None:
            check_table(out)
        tree = model.load(robot)
        parts = (name.partition(":") for name in named_contacts(contacts or ""))
        standing: dict[str, Any] = {name: how or "pose" for name, _, how in parts}
        chosen = None if sensors is None else nd.load_sensors(sensors, robot, tree)
        if chosen is not None and chosen.contact_names:
            chosen = chosen.in_contact(*standing)
        with progress_bar("excite") as stage:
            motion = nd.exciting_motion(
                tree if chosen is None else nd.System(tree, chosen),
                parameters,
                progress=stage,
                joints=self.joint or None,
                **{name: getattr(self, name) for name in AS_THEY_ARE},
                **{name: _limits(f"--{name}", getattr(self, name)) for name in LIMITS},
                at=configuration(tree, self.at),
                contacts=standing,
                shapes=robot if self.shapes else None,
                ground_friction=self.ground_friction or None,
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
