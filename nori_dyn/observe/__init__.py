"""Do these sensors suffice? Rank and null space of a system, exactly for almost all q and numerically at special ones.

    report = nd.observability(system)                       rank, what is not determined, the poses that lose rank
    report.additions                                        what to add, where they do not
    report.over_time                                        what is learned over several poses of what persists
    nd.conditioning(system, Q).worst_sigma                  what the noise of the sensors does to the outputs
    nd.redundancy(system).critical                          the sensors that may not fail
    nd.configurations_where(tree, "parallel", frames=("l_sole", "r_sole"))

It reads the same system as planner and solver, and assembles nothing of its own. To add a special pose: one function in
`poses.py`, registered by name.

Example:
    >>> system = nd.System(nd.autotree(2), "inverse_dynamics")
    >>> nd.observe.observability(system).is_observable, nd.observe.redundancy(system, outputs=["tau"]).critical
    (True, ('qdd:joint1', 'qdd:joint2'))
"""

from __future__ import annotations

from nori_dyn.observe.additions import Addable, Addition
from nori_dyn.observe.conditioning import Conditioning, conditioning
from nori_dyn.observe.learned import Learned, Sum
from nori_dyn.observe.learned_exact import MotionRequirement, MotionRequirements
from nori_dyn.observe.null_space import NullVector, UnobservableSubspace
from nori_dyn.observe.poses import configurations_where
from nori_dyn.observe.redundancy import Redundancy, redundancy
from nori_dyn.observe.report import ObservabilityReport, RankWhere, observability
from nori_dyn.renamed import former_names

__all__ = [
    "Addable",
    "Addition",
    "Conditioning",
    "Learned",
    "MotionRequirement",
    "MotionRequirements",
    "NullVector",
    "ObservabilityReport",
    "RankWhere",
    "Redundancy",
    "Sum",
    "UnobservableSubspace",
    "conditioning",
    "configurations_where",
    "observability",
    "redundancy",
]

__getattr__ = former_names(
    __name__, {"Need": MotionRequirement, "Needs": MotionRequirements, "Unseen": UnobservableSubspace}
)
