"""Families of columns: one quantity of several joints, recognised by the words of its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

WORDS: Mapping[str, frozenset[str]] = {
    "qdd": frozenset(
        {"qdd", "ddq", "acc", "accel", "acceleration", "accelerations", "qddot", "ddot", "dotdot", "qacc", "ddtheta"}
    ),
    "qd": frozenset(
        {"qd", "dq", "vel", "velocity", "velocities", "velo", "speed", "speeds", "qdot", "dot", "qvel", "gv", "dtheta"}
    ),
    "tau": frozenset({"tau", "torque", "torques", "effort", "efforts", "eff", "trq"}),
    "current": frozenset({"current", "currents", "curr", "cur", "amps", "i"}),
    "q": frozenset(
        {"q", "pos", "position", "positions", "ang", "angle", "angles", "theta", "encoder", "encoders", "qpos", "gc"}
    ),
}
"""What names of columns say of what they hold, the clearest first."""

GYROSCOPE = frozenset({"gyro", "gyros", "gyr", "gyroscope", "omega", "angvel"})
ACCELEROMETER = frozenset({"acc", "accel", "accelerometer", "acceleration", "accelerations"})
ANGULAR = frozenset({"ang", "angular", "rotational"})
INERTIAL = frozenset({"imu", "ins", "inertial", "accelerometer", *GYROSCOPE})
"""Words of columns of inertial units."""

OF_BASE = INERTIAL | {
    "base",
    "root",
    "pelvis",
    "odom",
    "pose",
    "orientation",
    "ori",
    "quat",
    "quaternion",
    "rpy",
    "euler",
}
"""Words of columns that say of a floating base where it is or how it moves, or of an inertial unit on it."""

LETTERS = {"a": "accelerometer", "w": "gyroscope", "g": "gyroscope"}
"""What single letters call the vectors of inertial units: ax, imu_wy, BaseAz."""

BARE = {"{joint}": "q", "d_{joint}": "qd", "dd_{joint}": "qdd"}
"""What columns hold whose names are those of joints and say no more."""

MOTORS = frozenset({"theta", "dtheta", "ddtheta"})
"""Words of angles of joints, and of those of their motors where beside q."""

NUMBERED = frozenset({"joint", "joints", "axis", "j"})
"""Words of numbered columns that say of which joint they are, and no more."""

SAYS_NO_MORE = "named as the joints, which does not say of what they are: taken for positions"
"""Why columns that say of which joints they are, and no more, are doubtful."""

LOADS = frozenset({"force", "forces", "moment", "moments"})
"""What torques of joints are called as well."""

NOT_MEASURED = frozenset(
    {"d", "des", "desired", "cmd", "command", "target", "ref", "reference", "goal", "error", "ext"}
    | {"con", "ctrl", "control", "fric", "friction", "pert", "perturbation"}
)
"""Words of columns that hold what was wanted, or computed, and not what was measured."""

MEASURED = frozenset({"mes", "meas", "measured", "msr", "act", "actual", "real"})
"""Words of columns that say that they hold what was measured."""

LIMBS: Mapping[str, frozenset[str]] = {
    "left": frozenset({"left", "l"}),
    "right": frozenset({"right", "r"}),
    "leg": frozenset({"leg", "hip", "knee", "ankle"}),
    "arm": frozenset({"arm", "shoulder", "elbow", "wrist"}),
    "torso": frozenset({"torso", "waist", "trunk"}),
    "head": frozenset({"head", "neck", "eyes"}),
}
"""What logs and models call the limbs of humanoids."""

UNITREE_LEGS = ("FR", "FL", "RR", "RL")
"""The order of the legs of Unitree's quadrupeds in their messages."""

LETTERS_OF_A_WORD = 5
"""Letters from which on a word is seen at the end of another: jointacttorque."""

STATE = "observation.state"
"""What LeRobot calls the positions of joints, mostly; and sometimes the pose of a hand, or all of a robot's state."""

UNIT_IN_NAME = re.compile(r"[\[(]([a-zA-Z°/^0-9·* ]+)[\])]\s*$")


class JointNaming(Enum):
    """What ties columns to joints, and the sentence that says it."""

    NAMES = "named after the joints"
    ALIKE = "named after joints, whose names in the robot differ a little"
    ORDER = "in the order in which the robot's messages number the joints"
    NUMBERS = "numbered as the joints, of which some are lacking: check that both begin at the same number"


@dataclass(frozen=True, slots=True)
class Family:
    """Columns with one quantity of several joints or axes.

    Attributes:
        pattern: their names, with {joint}, {name} (of a joint, in part) or {k} for what differs.
        columns: the columns, by joint, or in the order of their numbers.
        joints: the joints, where the names, or what is known of the robot's messages, tell them.
        words: the words of the pattern.
        why: on what the words rest, where it is not the pattern.
        tie: what ties the columns to the joints, where there are any.
    """

    pattern: str
    columns: tuple[str, ...]
    joints: tuple[str, ...] | None
    words: tuple[str, ...] = field(default=())
    why: str = ""
    tie: JointNaming | None = None


def words_of(name: str) -> tuple[str, ...]:
    """Words of a name in lower case: "estimatorJointsPos" is estimator, joints, pos."""
    name = re.sub(r"\{[a-z]+\}", " ", UNIT_IN_NAME.sub("", name)).replace("DDot", "Ddot")
    return tuple(word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name))


def families_of(
    names: Sequence[str],
    joints: Sequence[str],
    order: Sequence[str] = (),
    called: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[Family]:
    """Families of columns, those that are named after joints first.

    Args:
        names: the columns.
        joints: the joints of one number.
        order: the joints in the order in which the robot's messages number them, where that is known.
        called: what joints are called besides.
    """
    by_joint = list(_by_joint(names, joints, called))
    named = {name for family in by_joint for name in family.columns}
    numbered = _by_number([name for name in names if name not in named], joints)
    return [*by_joint, *(_in_order(family, order) for family in numbered)]


def _in_order(family: Family, order: Sequence[str]) -> Family:
    """The family by joints, where it has as many columns as are numbered, or more motors than the robot has."""
    size, n = len(family.columns), len(order)
    if family.joints is not None or not n or not (size == n or (size > n and "motor" in family.words)):
        return family
    return replace(family, columns=family.columns[:n], joints=tuple(order), tie=JointNaming.ORDER)


def _by_joint(names: Iterable[str], joints: Sequence[str], more: Mapping[str, Sequence[str]]) -> Iterator[Family]:
    """Yield the families of columns that have the name of a joint in theirs."""
    found: dict[str, dict[str, str]] = {}
    short = {joint.removesuffix("_joint"): joint for joint in joints}  # FR_hip of FR_hip_joint
    others = {other: joint for joint in joints for other in more.get(joint, ())}
    called = {**short, **others, **{joint: joint for joint in joints}}
    longest = sorted(called, key=len, reverse=True)
    for name in names:
        own = next((each for each in longest if re.search(_as_word(each), name)), None)
        if own is not None:
            found.setdefault(name.replace(own, "{joint}" if own in joints else "{name}"), {})[called[own]] = name
    for pattern, of in found.items():
        ordered = tuple(joint for joint in joints if joint in of)
        yield Family(pattern, tuple(of[joint] for joint in ordered), ordered, words_of(pattern), tie=JointNaming.NAMES)
    yield from _by_other_names(
        [name for name in names if not any(name in of.values() for of in found.values())], joints
    )


def _as_word(joint: str) -> str:
    """Expression for the name of a joint as a word of its own: in "q:FR_hip", and in "JointPosFR_hip"."""
    return rf"(?:(?<![A-Za-z0-9])|(?<=[a-z])(?=[A-Z])){re.escape(joint)}(?![A-Za-z0-9])"


def _by_other_names(names: Iterable[str], joints: Sequence[str]) -> Iterator[Family]:
    """Yield the families of columns, such as position:fer_joint1, whose names end as those of joints, panda_joint1."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        stem, colon, called = name.rpartition(":")
        if colon:
            found.setdefault(f"{stem}:", {})[called] = name
    for stem, of in found.items():
        likely: dict[str, str] = {}
        for called, name in of.items():
            n = called.count("_")
            alike = [joint for joint in joints if joint.rpartition("_")[2] == called.rpartition("_")[2]]
            if alike:
                likely.setdefault(sorted((abs(joint.count("_") - n), joint) for joint in alike)[0][1], name)
        if len(likely) == len(of):
            ordered = tuple(joint for joint in joints if joint in likely)
            yield Family(
                stem, tuple(likely[joint] for joint in ordered), ordered, words_of(stem), tie=JointNaming.ALIKE
            )


def _by_number(names: Iterable[str], joints: Sequence[str]) -> Iterator[Family]:
    """Yield the families of columns that differ by a number: q[0] to q[6], pos1 and pos2, motors[0].q and so on.

    Where some are lacking, q4 and q6, they are of the joints whose names end in these numbers.
    """
    ends = {int(match[1]): joint for joint in joints if (match := re.search(r"(\d+)$", joint))}
    found: dict[str, dict[int, str]] = {}
    for name in names:
        match = re.fullmatch(
            r"(.*?)(\d+)([\])]?(?:[._ ][A-Za-z_ ]*[A-Za-z_])?(?:\s*[\[(](?!\d+[\])])[^\])]*[\])])?)", name
        )
        if match:
            found.setdefault(f"{match[1]}{{k}}{match[3]}", {})[int(match[2])] = name
    for pattern, of in found.items():
        numbers = sorted(of)
        if numbers == list(range(numbers[0], numbers[0] + len(numbers))) and numbers[0] in (0, 1):
            yield Family(pattern, tuple(of[k] for k in numbers), None, words_of(pattern))
        elif of.keys() <= ends.keys() and len(ends) == len(joints):
            own = tuple(ends[k] for k in numbers)
            yield Family(pattern, tuple(of[k] for k in numbers), own, words_of(pattern), tie=JointNaming.NUMBERS)


def inertial_kind(words: Sequence[str]) -> str | None:
    """Whether words are those of a gyroscope or of an accelerometer; None if they do not tell."""
    own = set(words)
    if NOT_MEASURED & own:
        return None
    if own & GYROSCOPE or (own & ANGULAR and own & (WORDS["qd"] | {"rate", "rates"})):
        return "gyroscope"
    if own & ACCELEROMETER:
        return None if own & ANGULAR else "accelerometer"
    return LETTERS.get(words[-1]) if words else None


def kind_of(family: Family) -> str | None:
    """Quantity of joints that a family is by its words; None if they do not tell, or if it is not measured."""
    if (bare := family.pattern.replace("{name}", "{joint}")) in BARE:
        return BARE[bare]
    of_data = {"control"} if "data" in family.words else set()  # leg_control_data of MIT's Cheetah is measured
    if (NOT_MEASURED - of_data | INERTIAL) & set(family.words):
        return None
    own = set(family.words)
    spoken = next((kind for kind, words in WORDS.items() if words & own), None)
    if spoken == "qd" and family.words.count("dot") == 2:
        return "qdd"
    if spoken is None and own & NUMBERED:
        spoken = "q" if own <= NUMBERED else "tau" if own & LOADS else None
    ends = ((kind, word) for kind, words in WORDS.items() for word in words if len(word) > LETTERS_OF_A_WORD)
    spoken = spoken or next((kind for kind, word in ends if any(own.endswith(word) for own in family.words)), None)
    return spoken or ("q" if family.pattern.startswith(STATE) else None)


def joints_of(family: Family, joints: Sequence[str], n: int) -> tuple[list[str], str, bool]:
    """Joints of a family, among some of a robot's n, the reason, and whether it is to be checked; empty if unknown."""
    size = len(family.columns)
    if family.joints is not None and family.tie is not None:
        own, why = [joint for joint in family.joints if joint in joints], family.tie.value
        if family.tie is JointNaming.NUMBERS:
            return own, why, True
        is_doubtful = family.tie is JointNaming.ALIKE and size < n
        if set(family.words) <= NUMBERED:
            why, is_doubtful = SAYS_NO_MORE, True
        if family.pattern == f"{STATE}[{{k}}]":
            why, is_doubtful = f"{why}, if it holds their positions: its numbers have no names", True
        return own, why, is_doubtful
    limbs = [limb for limb, words in LIMBS.items() if words & set(family.words)]
    if limbs:
        own = [joint for joint in joints if all(LIMBS[limb] & set(words_of(joint)) for limb in limbs)]
        if len(own) >= size:
            return own[:size], f"{size} numbers of {' '.join(limbs)}: check that they are in the robot's order", True
    if {"motor", "state"} <= set(family.words) and size >= n == len(joints):
        legs = [joint[:2] for joint in joints]
        if set(legs) == set(UNITREE_LEGS):
            ordered = [joint for leg in UNITREE_LEGS for joint, of in zip(joints, legs, strict=True) if of == leg]
            return ordered, "in the order of Unitree's motors, leg by leg", False
        return list(joints), "motors, taken to be in the order of the robot's joints: check it", True
    if size == n == len(joints) and set(family.words) <= NUMBERED and family.words:
        return list(joints), SAYS_NO_MORE, True
    if size == n == len(joints):
        return list(joints), f"{size} numbers, as many as the robot has joints: check that they are in its order", True
    if 3 < size <= len(joints) == n:  # three are those of a vector
        return list(joints[:size]), f"{size} numbers, and the robot has {n} joints: taken for the first, check it", True
    return [], "", False


def source_of(family: Family, columns: tuple[str, ...]) -> object:
    """The `from` of an entry for these columns."""
    is_counted = columns[0] == family.pattern.replace("{k}", "0") and columns == family.columns[: len(columns)]
    if "{joint}" in family.pattern or is_counted:
        return family.pattern
    return list(columns)
