"""Documents of all that is shown, by type: what `print`, notebooks, the command line and JSON have of it.

To show a class `OfThings`: make it `nori_dyn.tables.Shown`, write a function `of_things_document` in a module here that
makes its document, and name the class in `DOCUMENTS`: its module is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping

OF_LOGS = ("Consistency", "Delays", "History", "LogHistory", "Summary")
"""What trackers say of many ticks."""

DOCUMENTS: Mapping[str, tuple[str, ...]] = {
    "models": ("KinematicTree", "Preset", "Robots", "SensorSet"),
    "plans": ("System", "EliminationPlan", "Plan", "Solver", "SwitchingSolver"),
    "estimates": ("Diagnosis", "Estimate", "Status"),
    "trackers": ("LocalizedContact", "MemoryState", "Recognised", "Tracked", "Watched", "WatchedHistory", *OF_LOGS),
    "logs": ("LogReport",),
    "observability": ("Conditioning", "ObservabilityReport", "Redundancy", "TouchObservability"),
    "placement": ("Design", "ParetoFront", "Placement"),
    "exciting_motion": ("ExcitingMotion",),
    "identifiability": ("Identifiability",),
    "identification": ("Identification",),
}
"""By the module here that makes their documents, the names of the classes that are shown."""
