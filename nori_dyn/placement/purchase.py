"""A robot with the sensors that were chosen for it: what they were chosen among, and how exact outputs then are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nori_dyn.observe.conditioning import Conditioning, conditioning, together
from nori_dyn.placement.candidates import Choices
from nori_dyn.system.builder import System


@dataclass(frozen=True, slots=True, eq=False)
class Purchase:
    """A robot with the sensors that were chosen for it.

    Attributes:
        name: of the candidates.
        system: the robot with them, and with what is there anyway, in the first contact state.
        readings: names of the equations of those that were chosen.
        offered: what there was to choose from, and what each costs.
        expected: margins, and expected standard deviations of the outputs, at some configurations, those of one
            contact state after the other.
    """

    name: str
    system: System
    readings: frozenset[str]
    offered: Mapping[str, float]
    expected: Conditioning

    @staticmethod
    def of(
        choices: Choices, chosen: Sequence[str], outputs: Sequence[str], configurations: Any, n: int, seed: int
    ) -> Purchase:
        """The purchase of some choices, judged at configurations (N, nq), or n random ones within limits when None."""
        tree, sensors = choices.system.tree, choices.sensor_set(chosen)
        systems = [System(tree, sensors.in_contact(*offered.state)) for offered in choices.offered]
        parts = [conditioning(s, configurations, outputs, n, seed, workers=1, progress=False) for s in systems]
        expected, *others = parts
        if others:
            expected = together(parts, f"{expected.poses}, in {len(parts)} contact states")
        return Purchase(
            name=choices.candidates.name,
            system=systems[0],
            readings=frozenset(e.name for c in chosen for sensor in choices.sensors[c] for e in sensor.on(tree)),
            offered=dict(choices.costs),
            expected=expected,
        )
