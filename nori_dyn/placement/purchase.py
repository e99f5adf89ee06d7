"""A robot with the sensors that were chosen for it: what they were chosen among, and how exact outputs then are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nori_dyn.observe.conditioning import Conditioning, conditioning
from nori_dyn.placement.candidates import Choices
from nori_dyn.system.builder import System


@dataclass(frozen=True, slots=True, eq=False)
class Purchase:
    """A robot with the sensors that were chosen for it.

    Attributes:
        name: of the candidates.
        system: the robot with them, and with what is there anyway.
        readings: names of the equations of those that were chosen.
        offered: what there was to choose from, and what each costs.
        expected: margins, and expected standard deviations of the outputs, at some configurations.
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
        tree = choices.system.tree
        system = System(tree, choices.sensor_set(chosen))
        return Purchase(
            name=choices.candidates.name,
            system=system,
            readings=frozenset(e.name for c in chosen for sensor in choices.sensors[c] for e in sensor.on(tree)),
            offered=dict(choices.costs),
            expected=conditioning(system, configurations, outputs, n, seed, workers=1, progress=False),
        )
