"""Classes of what functions return, for annotations and `isinstance`: solvers, estimates, logs, findings.

    plan.solver()                                           Solver; of a plan with contact states SwitchingSolver
    solver.solve(q, qd, y), solver.tick()                   Estimate, Status
    plan.monitor(), plan.derivative("q"), nd.compile(f, tree)   Monitor, EstimateDerivative, CompiledFunction
    tracker.step(q, qd, y), tracker.over(t, q, qd, y)       Tracked, History
    nd.tools.ContactLocalizer(...).step(q, qd, y)           LocalizedContact
    nd.read_log("log.csv"), nd.estimate(log, plan)          Log, LogEstimate; of a plan with memory LogHistory

Example:
    >>> solver = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics")).solver()
    >>> isinstance(solver.solve(np.zeros(2), np.zeros(2), np.ones(2)), nd.results.Estimate)
    True
"""

from __future__ import annotations

from nori_dyn.descriptions.payloads import Payload
from nori_dyn.estimation.log_estimate import LogEstimate, LogHistory
from nori_dyn.filtering.history import History
from nori_dyn.filtering.localization import LocalizedContact
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.identification.exciting_motion import ExcitingMotion
from nori_dyn.identification.findings import Identification
from nori_dyn.logs.log import Log
from nori_dyn.logs.motion.joint_motion import JointMotion
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.program.status import Status
from nori_dyn.solve.derivative import EstimateDerivative
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.estimate import Estimate
from nori_dyn.solve.monitor import Monitor
from nori_dyn.solve.solver import Solver
from nori_dyn.solve.switching import SwitchingSolver

__all__ = [
    "CompiledFunction",
    "Diagnosis",
    "Estimate",
    "EstimateDerivative",
    "ExcitingMotion",
    "History",
    "Identification",
    "JointMotion",
    "LocalizedContact",
    "Log",
    "LogEstimate",
    "LogHistory",
    "Monitor",
    "Payload",
    "Solver",
    "Status",
    "SwitchingSolver",
    "Tracked",
]
