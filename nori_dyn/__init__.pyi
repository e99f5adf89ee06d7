# The public names; `__init__.py` loads each from here when it is first used.

from . import components, errors, interop, measurements, observe, placement, recursions, results, tools
from .descriptions.mjcf import load_mjcf
from .descriptions.robots import load_robot
from .descriptions.sensor_configs import load_sensors, sensors
from .descriptions.urdf import load_urdf
from .estimation.log_estimate import estimate, smooth
from .estimation.plan import Plan, plan
from .estimation.presets import preset
from .estimation.system import System
from .estimation.tracker import Tracker
from .filtering.hypotheses import Hypotheses
from .identification.exciting_motion import exciting_motion
from .identification.identifiability import identifiability
from .identification.identify import identify
from .logs.log import read_log
from .measurements.sensor_set import SensorSet
from .model.synthetic import autotree
from .model.tree import KinematicTree
from .observe.conditioning import conditioning
from .observe.poses import configurations_where
from .observe.redundancy import redundancy
from .observe.report import observability
from .placement.selection import place
from .program.functions import compile
from .recursions.aba import aba
from .recursions.christoffel import christoffel
from .recursions.coriolis import coriolis
from .recursions.crba import crba
from .recursions.factorisation import ltdl, ltl
from .recursions.jacobian import jacobian
from .recursions.minverse import minverse
from .recursions.rnea import rnea
from .report.view import view

__version__: str

__all__ = [
    "Hypotheses",
    "KinematicTree",
    "Plan",
    "SensorSet",
    "System",
    "Tracker",
    "aba",
    "autotree",
    "christoffel",
    "compile",
    "components",
    "conditioning",
    "configurations_where",
    "coriolis",
    "crba",
    "errors",
    "estimate",
    "exciting_motion",
    "identifiability",
    "identify",
    "interop",
    "jacobian",
    "load_mjcf",
    "load_robot",
    "load_sensors",
    "load_urdf",
    "ltdl",
    "ltl",
    "measurements",
    "minverse",
    "observability",
    "observe",
    "place",
    "placement",
    "plan",
    "preset",
    "read_log",
    "recursions",
    "redundancy",
    "results",
    "rnea",
    "sensors",
    "smooth",
    "tools",
    "view",
]
