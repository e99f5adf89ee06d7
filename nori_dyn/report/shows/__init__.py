"""Documents of all that is shown, by type: what `print`, notebooks, the command line and JSON have of it.

To show a class: make it `nori_dyn.tables.Shown`, write a function here that makes its document, registered by
`@shows(TheClass)`, and name the function's module in `MODULES`, so that it is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping

MODULES: Mapping[str, str] = {
    "KinematicTree": "models",
    "Preset": "models",
    "Robots": "models",
    "SensorSet": "models",
    "System": "systems",
    "EliminationPlan": "plans",
    "Plan": "plans",
    "Solver": "plans",
    "SwitchingSolver": "plans",
    "Diagnosis": "estimates",
    "Estimate": "estimates",
    "Status": "estimates",
    "Consistency": "trackers",
    "Delays": "trackers",
    "History": "trackers",
    "LogHistory": "trackers",
    "LogReport": "logs",
    "LocalizedContact": "touches",
    "MemoryState": "trackers",
    "Recognised": "trackers",
    "Summary": "trackers",
    "Tracked": "trackers",
    "Watched": "trackers",
    "WatchedHistory": "trackers",
    "Conditioning": "observability",
    "ObservabilityReport": "observability",
    "Redundancy": "observability",
    "TouchObservability": "touches",
    "Design": "placement",
    "ParetoFront": "placement",
    "Placement": "placement",
    "ExcitingMotion": "exciting_motion",
    "Identifiability": "identifiability",
    "Identification": "identification",
}
"""By the name of each class that is shown, the module here that shows it."""
