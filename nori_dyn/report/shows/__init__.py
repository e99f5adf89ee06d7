"""Documents of all that is shown, by type: what `print`, notebooks, the command line and JSON have of it.

To show a class: make it `nori_dyn.tables.Shown`, write a function here that makes its document, and name that in
`DOCUMENTS`: its module is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping

DOCUMENTS: Mapping[str, str] = {
    "KinematicTree": "models.tree_document",
    "Preset": "models.preset_document",
    "Robots": "models.robots_document",
    "SensorSet": "models.sensors_document",
    "System": "systems.system_document",
    "EliminationPlan": "plans.state_document",
    "Plan": "plans.plan_document",
    "Solver": "plans.solver_document",
    "SwitchingSolver": "plans.switching_document",
    "Diagnosis": "estimates.diagnosis_document",
    "Estimate": "estimates.estimate_document",
    "Status": "estimates.status_document",
    "Consistency": "trackers.consistency_document",
    "Delays": "trackers.delays_document",
    "History": "trackers.history_document",
    "LogHistory": "trackers.log_history_document",
    "LogReport": "logs.log_document",
    "LocalizedContact": "touches.localized_document",
    "MemoryState": "trackers.memory_document",
    "Recognised": "trackers.recognised_document",
    "Summary": "trackers.summary_document",
    "Tracked": "trackers.tracked_document",
    "Watched": "trackers.watched_document",
    "WatchedHistory": "trackers.watched_history_document",
    "Conditioning": "observability.conditioning_document",
    "ObservabilityReport": "observability.report_document",
    "Redundancy": "observability.redundancy_document",
    "TouchObservability": "touches.touch_observability_document",
    "Design": "placement.design_document",
    "ParetoFront": "placement.front_document",
    "Placement": "placement.placement_document",
    "ExcitingMotion": "exciting_motion.motion_document",
    "Identifiability": "identifiability.identifiability_document",
    "Identification": "identification.identification_document",
}
"""By the name of each class that is shown, the module here and the function in it that makes its document."""
