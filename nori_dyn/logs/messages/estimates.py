"""Estimates as messages of ROS, for MCAP, bags and live streams alike.

    tau                  sensor_msgs/JointState         /nori_dyn/joint_states          effort, by joint
    fx                   geometry_msgs/WrenchStamped    /nori_dyn/wrench/LINK           in the link's frame
    f                    geometry_msgs/WrenchStamped    /nori_dyn/joint_wrench/LINK     in the link's frame
    a                    geometry_msgs/AccelStamped     /nori_dyn/accel/LINK            spatial, in the link's frame
    one other number     std_msgs/Float64               /nori_dyn/residual
    several              std_msgs/Float64MultiArray     /nori_dyn/qdd                   named by the dimension's label
    what all of it is    std_msgs/String                /nori_dyn/about                 JSON, once

Times are whole nanoseconds in messages; what has no header has its time from the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nori_dyn.logs.formats.writer import SIGMA, TIME, Field, FileSchema, flat
from nori_dyn.logs.messages.kinds import Encoding, standard_types, typestore_of
from nori_dyn.logs.messages.layout import MessageLayout, layout_of
from nori_dyn.logs.messages.topic import LOG_TIME, STAMP
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


@dataclass(frozen=True, slots=True, eq=False)
class EstimateTopic:
    """A topic of estimates.

    Attributes:
        topic: its name.
        kind: of its messages.
        layout: of its messages, of which all numbers are 0.
        paths: of the numbers in a message that are estimates.
        columns: which columns of the table of estimates they are.
    """

    topic: str
    kind: str
    layout: MessageLayout
    paths: tuple[str, ...]
    columns: Indices

    @property
    def is_stamped(self) -> bool:
        """Whether its messages say when they were made."""
        return STAMP in self.layout.places

    def encode(self, t: Floats | None, table: Floats) -> list[bytes]:
        """Encode a message a sample.

        Args:
            t: times (n,) [s], where they are known.
            table: the estimates (n, columns), as `flat` has them, without their times.
        """
        size = len(self.layout.data)
        content = np.tile(np.frombuffer(self.layout.data, np.uint8), (len(table), 1))
        self.layout.put(content, self.paths, table[:, self.columns].T)
        if t is not None and self.is_stamped:
            self.layout.put(content, [STAMP], t[None])
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
        first, published = 0, []
        for each in schema.fields:
            for topic, kind, frame, names, paths, own in _messages_of(each):
                layout = _layout(kind, encoding, frame, names, paths)
                columns = np.array(own, dtype=np.intp) + first
                published.append(EstimateTopic(_free(topic, taken), kind, layout, tuple(paths), columns))
            first += len(each.labels)
        self.published = tuple(published)
        self.about = encode_text(json.dumps(self._told(), ensure_ascii=False), encoding)

    def encode(self, t: Floats | None, values: Mapping[str, Floats]) -> Iterator[tuple[EstimateTopic, list[bytes]]]:
        """Yield each topic, and its messages, one a sample.

        Args:
            t: times (n,) [s], where they are known.
            values: each field (n, *shape), by name.
        """
        table = flat(self.schema, None, values)
        for each in self.published:
            yield each, each.encode(t, table)

    def _told(self) -> dict[str, Any]:
        labels = [label for each in self.schema.fields for label in each.labels]
        columns = {
            p.topic + path: labels[k] for p in self.published for path, k in zip(p.paths, p.columns, strict=True)
        }
        if self.schema.has_time and self.published:
            clock = next((p for p in self.published if p.is_stamped), self.published[0])
            columns[clock.topic + (STAMP if clock.is_stamped else LOG_TIME)] = TIME
        units = {label: unit for label, unit in zip(self.schema.labels, self.schema.units, strict=True) if unit}
        return {"metadata": dict(self.schema.metadata), "columns": columns, "units": units}


@dataclass(frozen=True, slots=True)
class EstimateMetadata:
    """Content of the message on `ABOUT`.

    Attributes:
        metadata: of the estimates.
        labels: the name of each column of messages, "/nori_dyn/joint_states.effort:l_knee", as "tau:l_knee".
        units: of these.
    """

    metadata: Mapping[str, str]
    labels: Mapping[str, str]
    units: Mapping[str, str]


def read_about(data: bytes, encoding: Encoding) -> EstimateMetadata:
    """Parse a message on `ABOUT`; empty if another program wrote it."""
    begin = 8 if encoding == "cdr" else 4
    try:
        told = json.loads(data[begin:].rstrip(b"\0"))
        parts = [
            {str(key): str(value) for key, value in told[part].items()} for part in ("metadata", "columns", "units")
        ]
        return EstimateMetadata(*parts)
    except (ValueError, TypeError, KeyError, AttributeError):
        return EstimateMetadata({}, {}, {})


def times_of(t: Floats | None, first: int, n: int) -> list[int]:
    """Times of n samples in whole nanoseconds; the sample number where times are not known."""
    if t is None:
        return list(range(first, first + n))
    whole = np.floor(t)
    ns = whole.astype(np.int64) * 10**9 + np.rint((t - whole) * 1e9).astype(np.int64)
    return np.maximum(ns, 0).tolist()  # type: ignore[no-any-return]


def encode_text(text: str, encoding: Encoding) -> bytes:
    """A message of the kind std_msgs/String."""
    store = typestore_of(encoding)
    message = store.types[ABOUT_KIND](data=text)
    return bytes((store.serialize_cdr if encoding == "cdr" else store.serialize_ros1)(message, ABOUT_KIND))


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


def _layout(kind: str, encoding: Encoding, frame: str, names: Sequence[str], paths: Sequence[str]) -> MessageLayout:
    """Layout of messages whose numbers are 0."""
    store = typestore_of(encoding)
    types = standard_types(encoding)

    def empty(kind: str) -> Any:
        content = {name: blank(told) for name, told in types[kind][1]}
        if kind == "std_msgs/msg/Header":
            content["frame_id"] = frame
        if kind == JOINT_STATE:
            content |= {"name": list(names), "effort": np.zeros(len(names))}
        if kind == "std_msgs/msg/MultiArrayLayout":
            of_array = store.types["std_msgs/msg/MultiArrayDimension"]
            content["dim"] = [of_array(label=",".join(names), size=len(names), stride=len(names))]
        if kind == NUMBERS:
            content["data"] = np.zeros(len(names))
        return store.types[kind](**content)

    def blank(told: tuple[int, Any]) -> Any:
        node, inner = told
        if node == 2:
            return empty(inner)
        if node == 1:
            return "" if inner[0] == "string" else 0
        return np.zeros(0) if inner[0][0] == 1 and inner[0][1][0] == "float64" else []

    serialize = store.serialize_cdr if encoding == "cdr" else store.serialize_ros1
    layout = layout_of(bytes(serialize(empty(kind), kind)), kind, types, encoding)
    lacking = [path for path in paths if path not in layout.places]
    assert not lacking, lacking
    return layout


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
