"""Components of the numbers of another model, with errors for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from nori_dyn.components.base import Component
from nori_dyn.errors import ModelError

Made = TypeVar("Made", bound=Component)

JointTermData = tuple[str, type[Component], Mapping[str, float]]
"""The name of a joint, the type of its component, and its numbers."""


def joint_components(terms: Iterable[JointTermData]) -> Iterator[Component]:
    """Yield components of joints; joints with equal numbers share one, and zeros are left out.

    Raises:
        ModelError: a number that cannot be, such as a negative inertia: names the joints.
    """
    groups: dict[tuple[type[Component], tuple[tuple[str, float], ...]], list[str]] = {}
    for joint, kind, numbers in terms:
        given = tuple((name, float(value)) for name, value in numbers.items() if value)
        groups.setdefault((kind, given), []).append(joint)
    for (kind, given), joints in groups.items():
        if given:
            yield component(kind, {"joints": joints if len(joints) > 1 else joints[0], **dict(given)})


def component(kind: type[Made], fields: Mapping[str, Any]) -> Made:
    """A component of a type and its fields.

    Raises:
        ModelError: a number that cannot be.
    """
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        joints = fields.get("joints") or fields.get("name")
        on = joints[0] if isinstance(joints, list) else joints
        raise ModelError(
            f"the {kind.__name__.lower()} of '{on}': its {first['loc'][-1]} is {first['input']:g}, "
            "and it cannot be negative."
        ) from None
