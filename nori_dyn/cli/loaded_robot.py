"""A robot that is to be identified: what is read of its logs, and what estimates its base where these lack it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import nori_dyn as nd
from nori_dyn.cli.options import RobotOptions
from nori_dyn.errors import MappingError
from nori_dyn.tables import listed

if TYPE_CHECKING:
    from nori_dyn.estimation.preset_logs import PresetLog, TiedLog
    from nori_dyn.estimation.presets import Preset
    from nori_dyn.logs.log import Log
    from nori_dyn.logs.mapping.record import SampleRecord

FIXED = "Is its base fixed to the world? Of one that stands on them: --base floating"
"""What is asked of robots that have feet and a fixed base."""


@dataclass(frozen=True, eq=False)
class LoadedRobot:
    """A robot that is to be identified.

    Attributes:
        name: its preset, its file or name.
        options: how it is loaded.
        model: the file or name of its model, in place of the preset's.
        sensors_named: a shipped set of sensors, or a YAML file; None for the usual ones.
    """

    name: str
    options: RobotOptions
    model: str | None = None
    sensors_named: str | None = None

    def words(self) -> tuple[str, ...]:
        """Options by which another command loads the same robot, beside its name."""
        return (*(() if self.model is None else ("--model", self.model)), *self.options.words())

    def with_locked(self, joints: Sequence[str]) -> LoadedRobot:
        """The robot, of which more joints stand still."""
        return replace(self, options=replace(self.options, lock=[*(self.options.lock or ()), *joints]))

    @cached_property
    def has_preset(self) -> bool:
        """Whether more is known of it than its model."""
        from nori_dyn.estimation.presets import is_preset

        return is_preset(self.name)

    @cached_property
    def preset(self) -> Preset:
        """Its preset, or that of a robot of which the model is all that is known."""
        return self.options.preset(self.name, self.model)

    @property
    def source(self) -> str:
        """The file or name of its model."""
        return self.preset.source if self.has_preset else self.model or self.name

    @cached_property
    def tree(self) -> nd.KinematicTree:
        """The robot."""
        return self.preset.tree if self.has_preset else self.options.load(self.source)

    @cached_property
    def sensors(self) -> nd.SensorSet | None:
        """Its sensors; None for the usual ones."""
        return None if self.sensors_named is None else nd.load_sensors(self.sensors_named, self.source, self.tree)

    @cached_property
    def record(self) -> SampleRecord:
        """What is read of a log."""
        return self._record()

    @cached_property
    def record_but_base(self) -> SampleRecord:
        """The same of a log that holds nothing of the base, which is estimated."""
        return self._record({"base": {"of": "base"}})

    def _record(self, memory: Mapping[str, Any] | None = None) -> SampleRecord:
        from nori_dyn.identification.identify import usual_sensors
        from nori_dyn.logs.mapping.record import SampleRecord

        sensors = self.sensors or usual_sensors(self.tree)
        if memory is not None:
            sensors = nd.SensorSet.from_dict({**sensors.to_dict(), "memory": memory})
        return SampleRecord.of_sensors(self.tree, sensors)

    @property
    def root(self) -> str:
        """The joint of the base."""
        return self.tree.joint_names[0]

    @property
    def has_base(self) -> bool:
        """Whether the base floats, and is not estimated by the sensors."""
        return self.tree.joints[0].nq == 7 and not self.record.estimated

    @property
    def doubts(self) -> Mapping[str, str]:
        """What is asked of logs whose columns are drafted, of a robot with feet also whether its base is fixed."""
        from nori_dyn.descriptions.legs import legs_of

        if self.has_preset:
            return self.preset.data.doubts
        legs = None if self.tree.joints[0].nq == 7 else legs_of(self.tree)
        return {} if legs is None else {"": f"the robot has feet, {', '.join(legs.feet)}. {FIXED}"}

    def tied(self, log: Log, record: SampleRecord, still: Sequence[str] = ()) -> TiedLog:
        """A log tied to what is read of it."""
        from nori_dyn.estimation.preset_logs import tied_log

        return tied_log(log, record, self.preset.data if self.has_preset else None, self.doubts, still)

    def still_in(self, log: Log) -> tuple[str, ...]:
        """The joints that a log says nothing of, where a draft is to say what it holds."""
        made = self.tied(log, self.record).made
        return () if made is None else made.still

    def estimator(self, log: Log) -> tuple[PresetLog | None, str]:
        """What estimates the base of a log; or None, of a robot without feet and of a log that lacks what is named."""
        from nori_dyn.estimation.preset_logs import preset_log

        if not self.preset.walks:
            return None, ""
        made = self.tied(log, self.preset.record()).made
        numbers = () if made is None else made.lacking
        lacking = [what for kind, what in BY.items() if any(name.startswith(kind) for name in numbers)]
        try:
            ready = preset_log(self.preset, log)
        except MappingError:
            return None, listed(lacking)
        return (None, listed(lacking)) if lacking and ready.kind is None else (ready, "")


BY = {"q:": "positions of joints", "tau": "torques of joints", "gyro:": "a gyroscope", "acc:": "an accelerometer"}
"""By what the base is estimated, and how the names begin of what logs have of it."""


def lacks_position(log: Log, record: SampleRecord, joint: str) -> bool:
    """Whether a log lacks some of the position of a joint."""
    with log.opened(record.systems, record.contacts) as (_, binding):
        return bool({*record.groups[f"q:{joint}"]} & {*binding.lacking})
