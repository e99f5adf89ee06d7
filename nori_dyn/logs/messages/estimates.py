"""Estimates as messages of ROS, for MCAP, bags and live streams alike.

    tau                  sensor_msgs/JointState         /nori_dyn/joint_states          effort, by joint
    fx                   geometry_msgs/WrenchStamped    /nori_dyn/wrench/LINK           in the link's frame
    f                    geometry_msgs/WrenchStamped    /nori_dyn/joint_wrench/LINK     in the link's frame
    a                    geometry_msgs/AccelStamped     /nori_dyn/accel/LINK            spatial, in the link's frame
    base_rotation, ...   nav_msgs/Odometry              /nori_dyn/odometry              of a base that is state
                         sensor_msgs/Imu                /nori_dyn/imu                   the same, and `a` of its link
    one other number     std_msgs/Float64               /nori_dyn/residual
    several              std_msgs/Float64MultiArray     /nori_dyn/qdd                   named by the dimension's label
    what all of it is    std_msgs/String                /nori_dyn/about                 JSON, once

Times are whole nanoseconds in messages; what has no header has its time from the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nori_dyn.logs.formats.writer import SIGMA, TIME, Field, FileSchema, flat
from nori_dyn.logs.messages.kinds import Encoding, standard_types, typestore_of
from nori_dyn.logs.messages.topic import LOG_TIME, STAMP, MessageLayout, layout_of
from nori_dyn.model.joints import FORCE, MOTION
from nori_dyn.typing import Floats, Indices

PREFIX = "/nori_dyn"
"""How the names of topics of estimates begin."""

ABOUT = f"{PREFIX}/about"
"""The topic that says what the others are."""

ABOUT_KIND = "std_msgs/msg/String"

JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH = "geometry_msgs/msg/WrenchStamped"
ACCEL = "geometry_msgs/msg/AccelStamped"
NUMBER = "std_msgs/msg/Float64"
NUMBERS = "std_msgs/msg/Float64MultiArray"
ODOMETRY = "nav_msgs/msg/Odometry"
IMU = "sensor_msgs/msg/Imu"

FORCE_PATHS = {
    component: f".wrench.{'torque' if component[0] == 'm' else 'force'}.{component[1]}" for component in FORCE
}
MOTION_PATHS = {
    component: f".accel.{'angular' if k < 3 else 'linear'}.{component[1]}" for k, component in enumerate(MOTION)
}
"""Where each number of ours, angular first, stands in a message of ROS, linear first."""

OF_LINKS = {
    "fx": (WRENCH, "wrench", FORCE_PATHS),
    "f": (WRENCH, "joint_wrench", FORCE_PATHS),
    "a": (ACCEL, "accel", MOTION_PATHS),
}


OF_BASE = ("base_position", "base_rotation", "base_velocity", "base_angular_velocity")
"""The fields of a floating base that is state which have messages of their own."""

WORLD = "odom"
"""The frame that its pose is in: it begins at the first tick, where the base is, and its z is vertical."""

GRAVITY = 9.81
NEVER_READ = 1e6
"""Variance of yaw [rad^2] and of position [m^2], which are integrated, as no sensor reads them."""


@dataclass(frozen=True, slots=True)
class BaseMessage:
    """The content of a message of a floating base.

    Attributes:
        numbers: the path of each number, by the label of the estimate.
        variances: the path of each variance, by the labels of standard deviations: the sum of their squares.
        constants: numbers that are always the same, by their paths.
    """

    numbers: dict[str, str]
    variances: dict[str, tuple[str, ...]]
    constants: dict[str, float]


def base_messages(link: str) -> dict[str, BaseMessage]:
    """The messages of a floating base, by their kinds; variances of tilt are those of both its directions together.

    Args:
        link: the link that is the base, whose `a` is the acceleration of its origin: all moves along with that.
    """
    axes = tuple(enumerate("xyz"))
    tilt = tuple(f"{SIGMA}base_gravity.{axis}" for _, axis in axes)
    odometry, imu = BaseMessage({}, {}, {}), BaseMessage({}, {}, {".orientation_covariance[8]": NEVER_READ})
    for k, axis in axes:
        turn, velocity, acceleration = f"base_angular_velocity.w{axis}", f"base_velocity.{axis}", f"a:{link}.a{axis}"
        odometry.numbers[f"base_position.{axis}"] = f".pose.pose.position.{axis}"
        odometry.numbers[velocity] = f".twist.twist.linear.{axis}"
        odometry.numbers[turn] = f".twist.twist.angular.{axis}"
        odometry.variances[f".twist.covariance[{7 * k}]"] = (SIGMA + velocity,)
        odometry.variances[f".twist.covariance[{7 * k + 21}]"] = (SIGMA + turn,)
        odometry.constants[f".pose.covariance[{7 * k}]"] = NEVER_READ
        imu.numbers[turn], imu.numbers[acceleration] = f".angular_velocity.{axis}", f".linear_acceleration.{axis}"
        imu.variances[f".angular_velocity_covariance[{4 * k}]"] = (SIGMA + turn,)
        imu.variances[f".linear_acceleration_covariance[{4 * k}]"] = (SIGMA + acceleration,)
    for axis in "xyzw":
        odometry.numbers[f"base_rotation.{axis}"] = f".pose.pose.orientation.{axis}"
        imu.numbers[f"base_rotation.{axis}"] = f".orientation.{axis}"
    odometry.variances.update({f".pose.covariance[{k}]": tilt for k in (21, 28)})
    odometry.constants[".pose.covariance[35]"] = NEVER_READ
    imu.variances.update({f".orientation_covariance[{k}]": tilt for k in (0, 4)})
    return {ODOMETRY: odometry, IMU: imu}


NOT_THERE = ".linear_acceleration_covariance[0]"
"""What is -1 where an Imu has no acceleration."""


@dataclass(frozen=True, slots=True, eq=False)
class EstimateTopic:
    """A topic of estimates.

    Attributes:
        topic: its name.
        kind: of its messages.
        layout: of its messages, of which all numbers are 0.
        paths: of the numbers in a message that are estimates.
        columns: which columns of the table of estimates they are.
        variances: the paths of numbers that are sums of squares of estimates.
        squares: the factor of the square of each column in each of them (columns, variances).
    """

    topic: str
    kind: str
    layout: MessageLayout
    paths: tuple[str, ...]
    columns: Indices
    variances: tuple[str, ...] = ()
    squares: Floats | None = None

    @property
    def is_stamped(self) -> bool:
        """Whether its messages say when they were made."""
        return STAMP in self.layout.places

    def numbers(self, table: Floats) -> Floats:
        """The numbers of messages (..., paths and variances), from the estimates (..., columns)."""
        own = table[..., self.columns]
        return own if self.squares is None else np.concatenate([own, table**2 @ self.squares], axis=-1)

    def encode(self, t: Floats | None, table: Floats) -> list[bytes]:
        """Encode a message a sample.

        Args:
            t: times (n,) [s], where they are known.
            table: the estimates (n, columns), as `flat` has them, without their times.
        """
        size = len(self.layout.data)
        content = np.tile(np.frombuffer(self.layout.data, np.uint8), (len(table), 1))
        self.layout.put(content, (*self.paths, *self.variances), self.numbers(table).T)
        if t is not None and self.is_stamped:
            self.layout.put(content, (STAMP,), t[None])
        joined = content.tobytes()
        return [joined[k * size : (k + 1) * size] for k in range(len(table))]


class EstimateMessages:
    """The topics that estimates are published on.

    Args:
        schema: what is estimated.
        encoding: how messages stand in bytes.

    Attributes:
        published: the topics, beside `ABOUT`.
        about: the message on `ABOUT`.
    """

    def __init__(self, schema: FileSchema, encoding: Encoding = "cdr") -> None:
        self.schema = schema
        self.encoding: Encoding = encoding
        taken: dict[str, None] = {ABOUT: None}
        first, published = 0, list(self._of_base(taken))
        for each in schema.fields:
            for topic, kind, frame, names, paths, own in () if each.name in OF_BASE else _messages_of(each):
                layout = _layout(kind, encoding, frame, names, paths)
                columns = np.array(own, dtype=np.intp) + first
                published.append(EstimateTopic(_free(topic, taken), kind, layout, tuple(paths), columns))
            first += len(each.labels)
        self.published = tuple(published)
        store = typestore_of(encoding)
        serialize = store.serialize_cdr if encoding == "cdr" else store.serialize_ros1
        told = store.types[ABOUT_KIND](data=json.dumps(self._told(), ensure_ascii=False))
        self.about = bytes(serialize(told, ABOUT_KIND))

    def encode(self, t: Floats | None, values: Mapping[str, Floats]) -> Iterator[tuple[EstimateTopic, list[bytes]]]:
        """Yield each topic, and its messages, one a sample.

        Args:
            t: times (n,) [s], where they are known.
            values: each field (n, *shape), by name.
        """
        table = flat(self.schema, None, values)
        for each in self.published:
            yield each, each.encode(t, table)

    def _of_base(self, taken: dict[str, None]) -> Iterator[EstimateTopic]:
        """Yield the topics of a floating base, where it is state."""
        fields = self.schema.fields
        link = next((each.owners[0] for each in fields if each.name == OF_BASE[0]), None)
        if link is None:
            return
        labels = [label for each in fields for label in each.labels]
        for kind, message in base_messages(link).items():
            numbers = {labels.index(label): path for label, path in message.numbers.items() if label in labels}
            variances = {
                p: own for p, own in message.variances.items() if own[0] in labels and p not in message.constants
            }
            squares = np.zeros((len(labels), len(variances)))
            for k, own in enumerate(variances.values()):
                for label in own:
                    squares[labels.index(label), k] = GRAVITY**-2 if "gravity" in label else 1.0
            lacks = kind == IMU and f"a:{link}.ax" not in labels
            constants = message.constants | ({NOT_THERE: -1.0} if lacks else {})
            frame = link if kind == IMU else WORLD
            layout = _layout(kind, self.encoding, frame, [link], [*numbers.values(), *variances], constants)
            topic = _free(kind.rpartition("/")[2].lower(), taken)
            columns = np.array([*numbers], dtype=np.intp)
            yield EstimateTopic(topic, kind, layout, tuple(numbers.values()), columns, tuple(variances), squares)

    def _told(self) -> dict[str, Any]:
        labels = [label for each in self.schema.fields for label in each.labels]
        pairs = [
            (p.topic + path, k) for p in self.published for path, k in zip(p.paths, p.columns.tolist(), strict=True)
        ]
        first = {k: path for path, k in reversed(pairs)}  # some numbers stand in two messages
        columns = {path: labels[k] for path, k in pairs if first[k] == path}
        if self.schema.has_time and self.published:
            clock = next((p for p in self.published if p.is_stamped), self.published[0])
            columns[clock.topic + (STAMP if clock.is_stamped else LOG_TIME)] = TIME
        units = {label: unit for label, unit in zip(self.schema.labels, self.schema.units, strict=True) if unit}
        return {"metadata": dict(self.schema.metadata), "columns": columns, "units": units}


def read_about(data: bytes, encoding: Encoding) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Parse a message on `ABOUT`; empty if another program wrote it.

    Returns:
        Metadata of the estimates; the name of each column of messages, "/nori_dyn/joint_states.effort:l_knee", as
        "tau:l_knee"; and the units of these.
    """
    begin = 8 if encoding == "cdr" else 4
    try:
        content = json.loads(data[begin:].rstrip(b"\0"))
        parts = (content[part].items() for part in ("metadata", "columns", "units"))
        metadata, labels, units = ({str(key): str(value) for key, value in part} for part in parts)
        return metadata, labels, units
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}, {}, {}


def times_of(t: Floats | None, first: int, n: int) -> list[int]:
    """Times of n samples in whole nanoseconds; the sample number where times are not known."""
    if t is None:
        return list(range(first, first + n))
    whole = np.floor(t)
    ns = whole.astype(np.int64) * 10**9 + np.rint((t - whole) * 1e9).astype(np.int64)
    return np.maximum(ns, 0).tolist()  # type: ignore[no-any-return]


def _messages_of(each: Field) -> Iterator[tuple[str, str, str, list[str], list[str], range | list[int]]]:
    """Yield the messages that a field is sent in.

    Yields:
        The topic, the kind, the frame, names of elements, paths of numbers, and which numbers of the field these are.
    """
    n = len(each.labels)
    is_value = not each.name.startswith(SIGMA)
    if is_value and each.kind == "tau":
        names = [label.partition(":")[2] or label for label in each.labels]
        names = names if len(set(names)) == n else list(each.labels)
        rest = each.name.partition(":")[2]
        topic = "joint_states" + (f"/{_token(rest)}" if rest else "")
        yield topic, JOINT_STATE, "", names, [f".effort:{name}" for name in names], range(n)
    elif is_value and each.kind in OF_LINKS and _is_spatial(each, OF_LINKS[each.kind][2]):
        kind, folder, paths = OF_LINKS[each.kind]
        for first in range(0, n, 6):
            labels = each.labels[first : first + 6]
            link = labels[0].partition(":")[2].rpartition(".")[0]
            own = [paths[label.rpartition(".")[2]] for label in labels]
            yield f"{folder}/{_token(link)}", kind, link, [], own, range(first, first + 6)
    elif n == 1 and not each.shape:
        yield "/".join(map(_token, each.name.split(":"))), NUMBER, "", [], [".data"], range(1)
    else:
        topic = "/".join(map(_token, each.name.split(":")))
        names = [re.sub(r"[,\n]", "_", label) for label in each.labels]
        yield topic, NUMBERS, "", names, [f".data:{name}" for name in names], range(n)


def _is_spatial(each: Field, paths: Mapping[str, str]) -> bool:
    """Whether the numbers of a field are those of links, six each."""
    rows = [each.labels[k : k + 6] for k in range(0, len(each.labels), 6)]
    return all([label.rpartition(".")[2] for label in row] == list(paths) for row in rows)


def _layout(
    kind: str,
    encoding: Encoding,
    frame: str,
    names: Sequence[str],
    paths: Sequence[str],
    constants: Mapping[str, float] | None = None,
) -> MessageLayout:
    """Layout of messages whose numbers are 0, but for some constants."""
    store = typestore_of(encoding)
    types = standard_types(encoding)

    def empty(kind: str) -> Any:
        content = {name: blank(form) for name, form in types[kind][1]}
        if kind == "std_msgs/msg/Header":
            content["frame_id"] = frame
        if kind == ODOMETRY:
            content["child_frame_id"] = names[0]
        if kind == JOINT_STATE:
            content |= {"name": list(names), "effort": np.zeros(len(names))}
        if kind == "std_msgs/msg/MultiArrayLayout":
            of_array = store.types["std_msgs/msg/MultiArrayDimension"]
            content["dim"] = [of_array(label=",".join(names), size=len(names), stride=len(names))]
        if kind == NUMBERS:
            content["data"] = np.zeros(len(names))
        return store.types[kind](**content)

    def blank(form: tuple[int, Any]) -> Any:
        node, inner = form
        if node == 2:
            return empty(inner)
        if node == 1:
            return "" if inner[0] == "string" else 0
        return np.zeros(inner[1]) if inner[0][0] == 1 and inner[0][1][0] == "float64" else []

    serialize = store.serialize_cdr if encoding == "cdr" else store.serialize_ros1
    layout = layout_of(bytes(serialize(empty(kind), kind)), kind, types, encoding)
    lacking = [path for path in (*paths, *(constants or ())) if path not in layout.places]
    assert not lacking, lacking
    content = np.frombuffer(bytearray(layout.data), np.uint8)[None]
    layout.put(content, tuple(constants or ()), np.array([[value] for value in (constants or {}).values()]))
    return replace(layout, data=content.tobytes())


def _token(name: str) -> str:
    """A name as a token of the name of a topic."""
    token = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
    return f"_{token}" if token[0].isdigit() else token


def _free(topic: str, taken: dict[str, None]) -> str:
    """Reserve a name of a topic that is not taken."""
    topic, k = f"{PREFIX}/{topic}", 1
    name = topic
    while name in taken:
        k += 1
        name = f"{topic}_{k}"
    taken[name] = None
    return name
