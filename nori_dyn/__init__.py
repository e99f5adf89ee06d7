"""nori_dyn: the dynamics of robots as one sparse linear system, planned once and solved every tick.

The public names; each is loaded when it is first used, so that importing the package is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nori_dyn.errors import (
        BackendError,
        FileFormatError,
        InputError,
        MissingExtraError,
        ModelError,
        NoriError,
        NoriWarning,
        PlanError,
        SensorConfigError,
        SingularSystemError,
        SystemShapeError,
    )
    from nori_dyn.io.functions import compile
    from nori_dyn.io.mjcf import load_mjcf
    from nori_dyn.io.peer_states import from_convention, to_convention
    from nori_dyn.io.pinocchio_model import from_pinocchio, from_pinocchio_order, to_pinocchio_order
    from nori_dyn.io.plan_sets import PlanSet, plan_set
    from nori_dyn.io.plans import Plan, plan
    from nori_dyn.io.robots import load_robot
    from nori_dyn.io.sensor_configs import load_candidates, load_sensors, sensors, sensors_from_model
    from nori_dyn.io.urdf import load_urdf
    from nori_dyn.measurements.berdy import berdy_map
    from nori_dyn.measurements.sensor_set import SensorSet
    from nori_dyn.model.synthetic import autotree, random_tree
    from nori_dyn.model.tree import KinematicTree
    from nori_dyn.observability.candidates import Candidates
    from nori_dyn.observability.conditioning import Conditioning, conditioning
    from nori_dyn.observability.cover import NoPlacementError
    from nori_dyn.observability.design import Design, best_sensors
    from nori_dyn.observability.placement import Placement, place
    from nori_dyn.observability.poses import NoConfigurationError, configurations_where
    from nori_dyn.observability.redundancy import Redundancy, redundancy
    from nori_dyn.observability.report import ObservabilityReport, observability
    from nori_dyn.program.functions import CompiledFunction
    from nori_dyn.recursions.aba import aba, hybrid_dynamics
    from nori_dyn.recursions.christoffel import christoffel
    from nori_dyn.recursions.coordinates import com_coordinates, coordinate_change
    from nori_dyn.recursions.coriolis import coriolis
    from nori_dyn.recursions.crba import crba, inertia_forward_dynamics
    from nori_dyn.recursions.factorisation import ltdl, ltl
    from nori_dyn.recursions.minverse import minverse
    from nori_dyn.recursions.rnea import bias_force, coriolis_force, gravity_force, inertial_force, rnea
    from nori_dyn.recursions.sparsity import expanded_parents
    from nori_dyn.solve.estimate import Estimate
    from nori_dyn.solve.solver import Solver
    from nori_dyn.solve.switching import SwitchingSolver
    from nori_dyn.system.builder import System

__version__ = "0.1.0"

_HOMES = {
    "errors": (
        "BackendError",
        "FileFormatError",
        "InputError",
        "MissingExtraError",
        "ModelError",
        "NoriError",
        "NoriWarning",
        "PlanError",
        "SensorConfigError",
        "SingularSystemError",
        "SystemShapeError",
    ),
    "io.functions": ("compile",),
    "io.mjcf": ("load_mjcf",),
    "io.peer_states": ("from_convention", "to_convention"),
    "io.pinocchio_model": ("from_pinocchio", "from_pinocchio_order", "to_pinocchio_order"),
    "io.plan_sets": ("PlanSet", "plan_set"),
    "io.plans": ("Plan", "plan"),
    "io.robots": ("load_robot",),
    "io.sensor_configs": ("load_candidates", "load_sensors", "sensors", "sensors_from_model"),
    "io.urdf": ("load_urdf",),
    "measurements.berdy": ("berdy_map",),
    "measurements.sensor_set": ("SensorSet",),
    "model.synthetic": ("autotree", "random_tree"),
    "model.tree": ("KinematicTree",),
    "observability.conditioning": ("Conditioning", "conditioning"),
    "observability.candidates": ("Candidates",),
    "observability.design": ("Design", "best_sensors"),
    "observability.cover": ("NoPlacementError",),
    "observability.placement": ("Placement", "place"),
    "observability.poses": ("NoConfigurationError", "configurations_where"),
    "observability.redundancy": ("Redundancy", "redundancy"),
    "observability.report": ("ObservabilityReport", "observability"),
    "program.functions": ("CompiledFunction",),
    "recursions.aba": ("aba", "hybrid_dynamics"),
    "recursions.christoffel": ("christoffel",),
    "recursions.coordinates": ("com_coordinates", "coordinate_change"),
    "recursions.coriolis": ("coriolis",),
    "recursions.crba": ("crba", "inertia_forward_dynamics"),
    "recursions.factorisation": ("ltdl", "ltl"),
    "recursions.minverse": ("minverse",),
    "recursions.rnea": ("bias_force", "coriolis_force", "gravity_force", "inertial_force", "rnea"),
    "recursions.sparsity": ("expanded_parents",),
    "solve.estimate": ("Estimate",),
    "solve.solver": ("Solver",),
    "solve.switching": ("SwitchingSolver",),
    "system.builder": ("System",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "BackendError",
    "Candidates",
    "CompiledFunction",
    "Design",
    "Conditioning",
    "Estimate",
    "FileFormatError",
    "InputError",
    "KinematicTree",
    "MissingExtraError",
    "NoConfigurationError",
    "NoPlacementError",
    "ModelError",
    "NoriError",
    "NoriWarning",
    "ObservabilityReport",
    "Plan",
    "Placement",
    "PlanError",
    "PlanSet",
    "Redundancy",
    "SensorConfigError",
    "SensorSet",
    "SingularSystemError",
    "Solver",
    "SwitchingSolver",
    "System",
    "SystemShapeError",
    "__version__",
    "aba",
    "autotree",
    "berdy_map",
    "best_sensors",
    "bias_force",
    "christoffel",
    "com_coordinates",
    "compile",
    "conditioning",
    "configurations_where",
    "coordinate_change",
    "coriolis",
    "coriolis_force",
    "crba",
    "expanded_parents",
    "from_convention",
    "from_pinocchio",
    "from_pinocchio_order",
    "gravity_force",
    "hybrid_dynamics",
    "inertia_forward_dynamics",
    "inertial_force",
    "load_candidates",
    "load_mjcf",
    "load_robot",
    "load_sensors",
    "load_urdf",
    "ltdl",
    "ltl",
    "minverse",
    "observability",
    "place",
    "plan",
    "plan_set",
    "random_tree",
    "redundancy",
    "rnea",
    "sensors",
    "sensors_from_model",
    "to_convention",
    "to_pinocchio_order",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'nori_dyn' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"nori_dyn.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
