"""What exported code returns: the same numbers in every export."""

from __future__ import annotations

from dataclasses import dataclass

from nori_dyn.model.tree import QUATERNION_TOLERANCE
from nori_dyn.program.limits import WEIGHT_SPREAD


@dataclass(frozen=True, slots=True)
class Status:
    """An outcome.

    Attributes:
        name: the enumerator, after the name of the code.
        about: what it means, for a comment.
        text: what it means, for a message.
    """

    name: str
    about: str
    text: str


STATUSES = (
    Status("OK", "the outputs hold the solution", "solved"),
    Status(
        "INPUT_NOT_FINITE",
        "a number of the inputs is infinite or not a number",
        "a number of the inputs is infinite or not a number",
    ),
    Status(
        "QUATERNION_NOT_UNIT",
        f"a quaternion of q is further than {QUATERNION_TOLERANCE:g} from unit length",
        "a quaternion of q is not of unit length",
    ),
    Status(
        "SMALL_PIVOT",
        "the system is singular at this q, or so near to it that digits are lost",
        "the system is singular at this configuration, or nearly",
    ),
    Status(
        "OUTPUT_NOT_FINITE",
        "the inputs are so large that the arithmetic overflows",
        "the arithmetic overflows",
    ),
    Status(
        "INACCURATE",
        "refinement does not settle: weights differ too much, or nearly singular",
        "digits are lost: the weights differ too much, or the system is nearly singular",
    ),
    Status("NEGATIVE_WEIGHT", "a weight is below zero", "a weight is below zero"),
    Status(
        "WEIGHT_SPREAD",
        f"weights of sensors, those of 0 left out, span a ratio of more than {WEIGHT_SPREAD:g}",
        "the weights of the sensors differ by more than digits can hold",
    ),
    Status(
        "ZERO_WEIGHT",
        "no solution in the planned order while these weights are 0",
        "there is no solution in the planned order while these weights are zero",
    ),
    Status(
        "UNPLANNED_CONTACTS",
        "the contact state has no plan; of sets of contacts only",
        "the contact state is not planned",
    ),
)
"""By their number."""

FILTER_STATUSES = (
    *STATUSES,
    Status(
        "UNDETERMINED",
        "no reading up to now tells something, and nothing is known of it at first",
        "something is not determined by the readings up to now",
    ),
    Status(
        "TIME_NOT_POSITIVE",
        "the time since the last tick is no positive number; nothing was done",
        "the time since the last tick is not a positive number",
    ),
)
"""Those of filters."""
