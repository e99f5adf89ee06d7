"""Named contacts: the rows of a set of sensors while each is closed, and while it is open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from nori_dyn.errors import UnknownSensorNameError
from nori_dyn.measurements.base import Measurement
from nori_dyn.system.variables import TOUCH

CONTACT = "contact:"
"""How probabilities that a contact is closed are named, and columns that tell it: "contact:l_foot"."""

COLLISION = "collision:"
"""How probabilities that a reading is off by no chance are named: "collision:tau:elbow"."""

TOUCH_POINT = "touch.x", "touch.y", "touch.z", "touch.deviation"
"""How the point of a touch, in the frame of its link, and its deviation are named [m]."""

ContactState: TypeAlias = tuple[str, ...]
"""The names of the contacts that are closed, in the order of the config; all others are open."""


@dataclass(frozen=True, slots=True)
class Contact:
    """A part of a robot that touches the world at times, such as a foot.

    Attributes:
        name: its name.
        closed: the rows while it touches: `rigid_contact`, a measured wrench, none.
        open: the rows while it does not: an `external_wrench` of value 0.
    """

    name: str
    closed: tuple[Measurement, ...]
    open: tuple[Measurement, ...]

    @property
    def is_touch(self) -> bool:
        """Whether it stands for a link that may be touched, see `measurements.touch`."""
        return any(row.type == TOUCH for row in self.closed)

    def to_dict(self) -> dict[str, Any]:
        """The content of its config."""
        return {"closed": _dumped(self.closed), "open": _dumped(self.open)}


def contact_state(known: Sequence[str], closed: Iterable[str], where: str) -> ContactState:
    """The state in which some contacts are closed, whatever the order in which they are named.

    Args:
        known: names of all contacts.
        closed: names of those that are closed; one name stands for itself.
        where: the owner of the contacts, for messages.

    Raises:
        UnknownSensorNameError: there is no such contact.
    """
    chosen = {closed} if isinstance(closed, str) else set(closed)
    for name in chosen:
        if name not in known:
            raise UnknownSensorNameError("contact", name, known, where)
    return tuple(name for name in known if name in chosen)


def _dumped(measurements: Iterable[Measurement]) -> list[dict[str, Any]]:
    return [measurement.model_dump(by_alias=True, exclude_defaults=False) for measurement in measurements]
