"""Trackers that recognise contacts, of states that need no plans."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from nori_dyn.filtering.hypotheses import Hypotheses
from nori_dyn.filtering.hypothesis_steps import HypothesisSteps
from nori_dyn.filtering.tracked import Recognised
from nori_dyn.filtering.tracker import TrackerBase
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree

Recogniser: TypeAlias = TrackerBase[Recognised]


def recogniser_of(
    tree: KinematicTree,
    sensors: SensorSet,
    states: Sequence[ContactState],
    dt: float,
    outputs: Sequence[str],
    backend: str = "auto",
    **options: Any,
) -> Recogniser:
    steps = HypothesisSteps.of(tree, sensors, states, dt, Hypotheses(**options), outputs, backend)
    return TrackerBase(steps, sensors.contact_names, states, dt)


def steps_of(of: Recogniser) -> HypothesisSteps:
    assert isinstance(of.steps, HypothesisSteps)
    return of.steps
