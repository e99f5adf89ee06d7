"""What estimates on the command line: a plan, the file of a tracker, or the preset of a robot, and what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import nori_dyn as nd
from nori_dyn.cli.common import named_contacts, refuse_given
from nori_dyn.cli.options import Components, Gravity, Model, components_named, vector

if TYPE_CHECKING:
    from nori_dyn.estimation.presets import Preset
    from nori_dyn.filtering.false_alarms import Alarms
    from nori_dyn.logs.log import Log
    from nori_dyn.model.surface import Surface


@dataclass(frozen=True)
class EstimatorOptions:
    """What estimates a log or a stream; what is left out is as the preset, or the file of a tracker, says.

    Attributes:
        plan: The file of a plan, or of a plan set.
        robot: In place of a plan, a robot: the command robots lists those that have a preset, and all that are known by
            name; or the file of a preset, a URDF or an MJCF. A log, or a stream, is tied to it; what is doubtful about
            a log is asked.
        model: A model of your own, in place of that of the preset: a URDF or MJCF file.
        components: With --robot, motors and friction of a YAML file in place of those of the preset; 'own' for those of
            the model's file alone, 'none' for bare rigid bodies. Without it, what `identify` wrote into the model goes
            before what the preset says.
        gravity: With --robot, gravity in the axes of the base [m/s^2]: 9.81,0,0 of a robot on a wall.
        what: With --robot, what to estimate, with commas: contacts,torques. The preset's first when left out.
        alarms: Watch for collisions, with so many false alarms an hour: by sensors with memory, without contacts.
        untouched: Logs in which nothing touches the robot, in quotes: false alarms are as rare as asked in these.
            Without, as rare as the sigmas say.
        backend: numpy, umfpack, or auto for the fastest that runs here.
    """

    plan: Path | None = None
    robot: Annotated[str | None, typer.Option(metavar="ROBOT")] = None
    model: Model = None
    components: Components = None
    gravity: Gravity = None
    what: str | None = None
    alarms: Annotated[float | None, typer.Option(metavar="N")] = None
    untouched: Annotated[str | None, typer.Option(metavar="PATTERN")] = None
    backend: str = "auto"

    def check(self, ctx: typer.Context) -> None:
        """Refuse a plan beside a preset, and neither.

        Raises:
            BadParameter: it is so, or an option needs a preset.
        """
        if (self.plan is None) == (self.named is None):
            raise typer.BadParameter("name a plan, or a robot: --robot.", param_hint="--plan")
        if self.named is None:
            refuse_given(ctx, ("what", "yes", "gravity", "components"), "needs --robot.")

    @property
    def named(self) -> str | None:
        """The robot; None of a plan."""
        return self.model if self.robot is None else self.robot

    @cached_property
    def preset(self) -> Preset | None:
        """The preset; None of a plan."""
        gravity = None if self.gravity is None else vector(self.gravity)
        own = components_named(self.components)
        return None if self.named is None else nd.preset(self.named, self.model, gravity, own)

    @cached_property
    def _known(self) -> tuple[nd.Hypotheses | None, Alarms | None, int]:
        """How the preset, or the file of a tracker, says that contacts are recognised; when collisions count; a lag."""
        from nori_dyn.estimation.tracker import tracking

        if self.preset is not None:
            wanted = self.preset.estimand(self.what)
            return nd.Hypotheses() if wanted.contacts else None, wanted.alarms, 0
        tracked = None if self.plan is None else tracking(self.plan)
        return (tracked.hypotheses, tracked.alarms, tracked.lag) if tracked else (None, None, 0)

    def contacts(self, asked: str | None) -> tuple[str, ...] | nd.Hypotheses | None:
        """Contacts that are closed throughout, or how they are recognised; None where readings tell them."""
        from nori_dyn.estimation.run_options import RECOGNISE

        hypotheses, *_ = self._known
        if asked is None:
            return hypotheses
        return (hypotheses or nd.Hypotheses()) if asked == RECOGNISE else named_contacts(asked)

    def watching(self) -> Alarms | None:
        """When collisions count as seen; None where nothing is watched."""
        from nori_dyn.filtering.false_alarms import Alarms

        _, known, _ = self._known
        return known if self.alarms is None else replace(known or Alarms(), per_hour=self.alarms)

    def touched(self, tree: nd.KinematicTree, shapes: str | None) -> Mapping[str, Surface] | None:
        """Surfaces of links that may be touched: of a robot's shapes, or of the preset's model; None where none is."""
        if shapes is not None:
            return nd.tools.surfaces(shapes, tree)
        return None if self.preset is None else self.preset.surfaces(self.what)

    def free_logs(self, mapping: Path | None) -> list[Log]:
        """Logs in which nothing touches the robot."""
        from nori_dyn.estimation.preset_logs import preset_log
        from nori_dyn.logs.log import logs_called

        logs = [] if self.untouched is None else [nd.read_log(path, mapping) for path in logs_called(self.untouched)]
        return logs if self.preset is None else [preset_log(self.preset, log, self.what).log for log in logs]

    def late(self, lag: int | None) -> int:
        """How many samples late estimates of a stream are."""
        return self._known[-1] if lag is None else lag
