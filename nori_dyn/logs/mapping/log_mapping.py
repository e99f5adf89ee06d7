"""Schema of mappings, YAML files that tie the columns of a log to a robot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import yaml
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from nori_dyn.errors import InvalidMappingError, MappingError
from nori_dyn.io.files import write_bytes
from nori_dyn.io.yaml_file import read_yaml
from nori_dyn.measurements.config_errors import ConfigSchema, config_error

Positive = Annotated[FiniteFloat, Field(gt=0)]
Numbers = FiniteFloat | Annotated[list[FiniteFloat], Field(min_length=1)]
Names = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
Three = Annotated[list[FiniteFloat], Field(min_length=3, max_length=3)]

Resample: TypeAlias = Literal["linear", "hold"]
Stamps: TypeAlias = Literal["header", "log"]
Orientation: TypeAlias = Literal["xyzw", "wxyz", "rpy", "cos_sin", "modulo"]
Axes: TypeAlias = Literal["body", "world", "mujoco"]
Without: TypeAlias = Literal["gravity"]


class Strict(BaseModel):
    """A part of a mapping: immutable, without other fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class ClockSettings(Strict):
    """Clock of the samples, for a log with several streams, or without times.

    Attributes:
        stream: at the times of this stream.
        rate: so many times a second [Hz], from the first sample of that stream on; of a log without times, how far its
            samples are apart.
    """

    stream: str | None = None
    rate: Positive | None = None


class StreamSettings(Strict):
    """Settings of a stream.

    Attributes:
        clock: the column with its times; found by itself when left out.
        unit: the unit of these times.
        stamps: of messages, whether their header or the log says when they are of.
        step: time between its samples [s], where its times but the first are those of arrival: they are replaced.
        delay: how much later a reading is stamped than it is of [s]; it is taken to be that much older.
        resample: how readings between two samples are found: on the line between them, or the last one before.
        gap: longest time between two samples [s] that is bridged; five times the usual one when left out.
        type: that of the messages of a live topic, where its columns do not tell: unitree_go/msg/LowState.
    """

    clock: str | None = None
    unit: str = "s"
    stamps: Stamps = "header"
    step: Positive | None = None
    delay: FiniteFloat = 0.0
    resample: Resample | None = None
    gap: Positive | None = None
    type: str = ""


class FrameSettings(Strict):
    """Frame in which numbers of a log are given.

    Attributes:
        rpy: their orientation in the axes of the sensor: roll, pitch, yaw [rad], as in a URDF.
        xyz: their origin in the axes of the sensor [m]; counts for wrenches.
    """

    rpy: Three = [0.0, 0.0, 0.0]
    xyz: Three = [0.0, 0.0, 0.0]


class MappingEntry(Strict):
    """One quantity, or several of a kind, in a log: (number * unit) * scale + offset, in SI.

    Attributes:
        of: what it is: "q:l_knee", "qd:{joint}", a measurement by its name, "contact:l_foot".
        source: the column: "position[{k}]", "/joint_states.position:{joint}", without its topic where only one has it;
            or a list of columns.
        value: a constant instead.
        joints: the joints that {joint} stands for, {k} counting them from 0, "" for none; all that it fits if left out.
        components: the components of a reading in the order of the columns; that of the system when left out.
        unit: the unit of the column; that of SI when left out.
        scale: what it is to be taken times: a gain, a sign; one number, or one a column.
        offset: what is to be added then; one number, or one a column.
        above: of a contact: it is closed where the number is above this; otherwise 1 is closed and 0 open.
        frame: where the axes of a force, couple, acceleration, or the like are.
        orientation: of q of a free joint (its position first, which is zero if it is left out) or a spherical one: how
            its orientation is given; cos_sin of an angle that is given by its cosine and its sine, modulo of one that
            may be whole turns off, which is brought within half a turn of zero.
        axes: of qd of a free joint, six numbers, angular first: in which axes its velocity is given: its own, those of
            the world, or as MuJoCo has them (angular in its own, linear in the world's).
        without: of torques of joints: what the driver took away, which is added again as the model has it.
    """

    of: Annotated[str, Field(min_length=1)]
    source: Annotated[str | Names | None, Field(alias="from")] = None
    value: Numbers | None = None
    joints: Annotated[list[str], Field(min_length=1)] | None = None
    components: Names | None = None
    unit: str | None = None
    scale: Numbers = 1.0
    offset: Numbers = 0.0
    above: FiniteFloat | None = None
    frame: FrameSettings | None = None
    orientation: Orientation = "xyzw"
    axes: Axes = "body"
    without: Without | None = None

    @model_validator(mode="after")
    def _says_where_from(self) -> MappingEntry:
        if (self.source is None) == (self.value is None):
            raise ValueError("needs `from: COLUMN` or `value: NUMBER`, one of the two")
        if self.value is not None and (self.unit or self.scale != 1.0 or self.offset != 0.0 or self.above is not None):
            raise ValueError("a `value` is in SI and taken as it is: leave out unit, scale, offset and above")
        return self


class Calibration(Strict):
    """Calibration of a reading: its true value is its gain times what is read, less its offset.

    Attributes:
        gain: of the reading.
        offset: in its unit behind the gain.
    """

    gain: FiniteFloat = 1.0
    offset: FiniteFloat = 0.0

    def after(self, first: Calibration) -> Calibration:
        """The calibration of what another one has made of a reading."""
        return Calibration(gain=self.gain * first.gain, offset=self.gain * first.offset + self.offset)


class LogMapping(Strict):
    """A mapping of the columns of a log to a robot.

    Attributes:
        robot: the robot that it is for.
        clock: when samples are taken, where streams differ.
        streams: what is to be known of streams, by their names.
        columns: what quantities are in the log.
        calibration: of readings, by their names, each of one number: what comes last.

    Example:
        >>> entry = {"of": "q:{joint}", "from": "angle[{k}]", "joints": ["joint1", "joint2"], "unit": "deg"}
        >>> nd.tools.LogMapping.from_dict({"columns": [entry]}).columns[0].unit
        'deg'
    """

    robot: str | None = None
    clock: ClockSettings = ClockSettings()
    streams: dict[str, StreamSettings] = {}
    columns: list[MappingEntry] = []
    calibration: dict[str, Calibration] = {}

    @staticmethod
    def from_dict(data: Any) -> LogMapping:
        """Validate the content of a YAML file.

        Raises:
            InvalidMappingError: it does not follow the schema; says where.
        """
        try:
            return LogMapping.model_validate(data)
        except ValidationError as error:
            found = config_error(error, data, SCHEMA)
            raise InvalidMappingError(str(found), found.path) from None


def save_mapping(mapping: LogMapping, path: str | Path, about: Sequence[str] = ()) -> None:
    """Write a mapping as a YAML file, such as `found.calibrated()` of `nd.identify`.

    Args:
        mapping: the mapping.
        path: where to write.
        about: lines to begin the file with, as comments.

    Raises:
        FileFormatError: it cannot be written.

    Example:
        >>> drives = nd.tools.LogMapping.from_dict({"calibration": {"tau:joint1": {"gain": 11.5}}})
        >>> nd.tools.save_mapping(drives, "drives.yaml")
        >>> nd.tools.load_mapping("drives.yaml").calibration["tau:joint1"].gain
        11.5
    """
    write_bytes(path, mapping_yaml(mapping, about).encode())


def mapping_yaml(mapping: LogMapping, about: Sequence[str] = ()) -> str:
    """The YAML that `save_mapping` writes."""
    content = mapping.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    text = yaml.safe_dump(content, sort_keys=False, width=float("inf"), allow_unicode=True, default_flow_style=None)
    return "".join([*(f"# {line}\n" for line in about), text])


SCHEMA = ConfigSchema(
    LogMapping,
    "a mapping",
    "what a quantity is",
    "It says `columns:`, a list such as - {of: 'q:{joint}', from: 'position[{k}]'}.",
)


def load_mapping(path: str | Path) -> LogMapping:
    """Load a mapping from a YAML file.

    Raises:
        FileFormatError: the file cannot be read.
        MappingError: it is not YAML, or does not follow the schema; says where.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("arm.yaml").write_text("columns: [{of: 'q:{joint}', from: 'angle[{k}]', unit: deg}]")
        >>> nd.tools.load_mapping("arm.yaml").columns[0].unit
        'deg'
    """
    file = read_yaml(path, MappingError)
    try:
        return LogMapping.from_dict(file.data)
    except InvalidMappingError as error:
        raise MappingError(f"{file.path}:{file.line(error.path)}: {error}") from None
