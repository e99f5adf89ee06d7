# The public names; `__init__.py` loads each from here when it is first used.

from . import components, errors, interop, measurements, observe, placement, recursions
from .descriptions.component_files import load_components, save_components
from .descriptions.identified import save_robot
from .descriptions.mjcf import load_mjcf
from .descriptions.robot_names import robots
from .descriptions.robots import load_robot
from .descriptions.sensor_configs import load_sensors, sensors, sensors_from_model
from .descriptions.urdf import load_urdf
from .errors import InputError, NoriError, NoriWarning, SingularSystemError
from .estimation.log_estimate import LogEstimate, LogHistory, estimate, smooth
from .estimation.plan import Plan, PlanSet, plan, plan_set
from .estimation.system import System
from .estimation.tracker import ContactFilter, Filter, Tracker, Window
from .filtering.collisions import CollisionDetector
from .filtering.history import History
from .filtering.hypotheses import Hypotheses
from .filtering.tracked import Tracked
from .identification.exciting_motion import ExcitingMotion, exciting_motion
from .identification.findings import Identification
from .identification.identifiability import identifiability
from .identification.identify import identify
from .logs.log import Log, read_log
from .logs.mapping.log_mapping import LogMapping, load_mapping
from .logs.motion.joint_model import JointNoise
from .logs.motion.joint_motion import JointMotion, joint_motion
from .measurements.sensor_set import SensorSet
from .model.closure import closed
from .model.synthetic import autotree, random_tree
from .model.tree import KinematicTree
from .observe.conditioning import conditioning
from .observe.poses import configurations_where
from .observe.redundancy import redundancy
from .observe.report import observability
from .placement.candidates import load_candidates
from .placement.design import best_sensors
from .placement.selection import place
from .program.functions import CompiledFunction, compile
from .program.status import Status
from .recursions.aba import aba
from .recursions.christoffel import christoffel
from .recursions.coriolis import coriolis
from .recursions.crba import crba
from .recursions.derivatives import aba_derivatives, rnea_derivatives
from .recursions.factorisation import ltdl, ltl
from .recursions.jacobian import jacobian
from .recursions.minverse import minverse
from .recursions.rnea import rnea
from .report.html import save_html
from .report.view import view
from .solve.derivative import EstimateDerivative
from .solve.diagnosis import Diagnosis
from .solve.estimate import Estimate
from .solve.monitor import Monitor
from .solve.solver import Solver
from .solve.switching import SwitchingSolver

__version__: str

__all__ = [
    "CollisionDetector",
    "CompiledFunction",
    "ContactFilter",
    "Diagnosis",
    "Estimate",
    "EstimateDerivative",
    "ExcitingMotion",
    "Filter",
    "History",
    "Hypotheses",
    "Identification",
    "InputError",
    "JointMotion",
    "JointNoise",
    "KinematicTree",
    "Log",
    "LogEstimate",
    "LogHistory",
    "LogMapping",
    "Monitor",
    "NoriError",
    "NoriWarning",
    "Plan",
    "PlanSet",
    "SensorSet",
    "SingularSystemError",
    "Solver",
    "Status",
    "SwitchingSolver",
    "System",
    "Tracked",
    "Tracker",
    "Window",
    "__version__",
    "aba",
    "aba_derivatives",
    "autotree",
    "best_sensors",
    "christoffel",
    "closed",
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
    "joint_motion",
    "load_candidates",
    "load_components",
    "load_mapping",
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
    "plan_set",
    "random_tree",
    "read_log",
    "recursions",
    "redundancy",
    "rnea",
    "rnea_derivatives",
    "robots",
    "save_components",
    "save_html",
    "save_robot",
    "sensors",
    "sensors_from_model",
    "smooth",
    "view",
]
