"""A robot that is to be identified: what is read of its logs, and what estimates its base where these lack it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import nori_dyn as nd
from nori_dyn.cli.options import RobotOptions, vector
from nori_dyn.errors import MappingError
from nori_dyn.tables import listed

if TYPE_CHECKING:
    from nori_dyn.estimation.preset_logs import PresetLog
    from nori_dyn.logs.log import Log
    from nori_dyn.logs.mapping.record import SampleRecord

FIXED = "Is its base fixed to the world? Of one that stands on them: --base floating"
"""What is asked of robots that have feet and a fixed base."""


@dataclass(frozen=True, eq=False)
class LoadedRobot:
    """A robot that is to be identified.

    Attributes:
        name: its file or name.
        model: how it is loaded.
        tree: the robot.
        sensors: its sensors; None for the usual ones.
    """

    name: str
    model: RobotOptions
    tree: nd.KinematicTree
    sensors: nd.SensorSet | None

    @staticmethod
    def of(model: RobotOptions, name: str, sensors: str | None) -> LoadedRobot:
        """A robot, and its sensors by their name."""
        tree = model.load(name)
        return LoadedRobot(name, model, tree, None if sensors is None else nd.load_sensors(sensors, name, tree))

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
    def doubts(self) -> dict[str, str]:
        """What is asked of a robot with feet whose base is fixed."""
        from nori_dyn.descriptions.legs import legs_of

        legs = None if self.tree.joints[0].nq == 7 else legs_of(self.tree)
        return {} if legs is None else {"": f"the robot has feet, {', '.join(legs.feet)}. {FIXED}"}

    def still_in(self, log: Log) -> tuple[str, ...]:
        """The joints that a log says nothing of, where a draft is to say what it holds."""
        from nori_dyn.estimation.preset_logs import drafted

        _, made = drafted(log, self.record)
        return () if made is None else made.still

    def estimator(self, log: Log) -> tuple[PresetLog | None, str]:
        """What estimates the base of a log; or None, of a robot without feet and of a log that lacks what is named."""
        from nori_dyn.estimation.preset_logs import drafted, preset_log

        preset = nd.preset(self.name, gravity=None if self.model.gravity is None else vector(self.model.gravity))
        if not preset.walks:
            return None, ""
        _, made = drafted(log, preset.record())
        numbers = () if made is None else made.lacking
        lacking = [what for kind, what in BY.items() if any(name.startswith(kind) for name in numbers)]
        try:
            ready = preset_log(preset, log)
        except MappingError:
            return None, listed(lacking)
        return (None, listed(lacking)) if lacking and ready.kind is None else (ready, "")


BY = {"q:": "positions of joints", "tau": "torques of joints", "gyro:": "a gyroscope", "acc:": "an accelerometer"}
"""By what the base is estimated, and how the names begin of what logs have of it."""


def lacks(log: Log, record: SampleRecord, kind: str, joint: str | None = None) -> bool:
    """Whether a log lacks some of q, or qd, of a robot, or of a joint."""
    with log.opened(record.systems, record.contacts) as (_, binding):
        names = (
            record.names[record.q if kind == "q" else record.qd] if joint is None else record.groups[f"{kind}:{joint}"]
        )
        return bool({*names} & {*binding.lacking})
