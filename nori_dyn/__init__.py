"""The dynamics of robots as one sparse linear system, planned once and solved every tick, for any set of sensors.

A robot and its sensors:

    tree = nd.load_urdf("robot.urdf", base="floating")      also load_mjcf, load_robot("panda"), autotree(7)
    sensors = nd.sensors("inverse_dynamics")                also sensors("mine.yaml"); those of a file: nd.tools
    system = nd.System(tree, sensors)                       D(q) d + b(q, qd) = 0, its rows and variables by name
    system = nd.System(tree, "inverse_dynamics")            the same

Do the sensors suffice, and which ones to buy:

    nd.observability(system)                                rank, what is not determined, the poses that lose it
    nd.conditioning(system, Q), nd.redundancy(system)       how precise, and which sensors may fail
    nd.place(tree, candidates), nd.placement.best_sensors(...)        the cheapest sensors, or the most precise ones
    nd.tools.save_html(found, "page.html")                  any of these as a page for the browser

How it moves, from its encoders alone:

    motion = nd.tools.joint_motion(t, q)                    qd and qdd as well, each with its standard deviation

What the robot itself is like, from its logs:

    nd.identifiability(system, ["inertias"])                which parameters the sensors can tell, in which combinations
    nd.exciting_motion(tree)                                the motion that tells most of them
    found = nd.identify("log.csv", tree)                    inertias, friction, offsets, a load; found.robot
    nd.tools.save_robot(found.robot, "arm.urdf", "new.urdf")   the file of the robot, corrected

Plan once, solve every tick:

    plan = nd.plan(system, outputs=("tau",))                or nd.plan(tree, sensors): has states where contacts change
    solver = plan.solver()                                  solver.solve(q, qd, y), .solve_batch(...), .tick()
    plan.monitor(), plan.export("folder"), plan.save(path)  sigmas and faults, C code, a file

The classical algorithms, and any function of a robot as a compiled program:

    nd.rnea, nd.aba, nd.crba, nd.minverse, nd.coriolis, nd.christoffel, nd.jacobian, nd.ltl, nd.ltdl
    nd.compile(nd.rnea, tree)

Over time, by the memory of the sensors:

    tracker = nd.Tracker(plan, dt=0.001)                    a Kalman filter; with lag=8 a smoother with a fixed lag
    nd.Tracker(plan, 0.001, hypotheses=nd.Hypotheses())     which recognises contacts
    nd.estimate("log.csv", plan), nd.smooth("log.csv", plan)   a whole log; nd.view(found, "log.html") to look at it

The rest is in modules: nd.recursions (all algorithms), nd.observe (special poses, sweeps), nd.placement,
nd.measurements (sensors, and how to write one), nd.components (motors, friction, springs, couplings, loops, tendons),
nd.interop (Pinocchio, MuJoCo, Featherstone), nd.results (classes of what functions return), nd.tools, nd.errors.

Each name is loaded when it is first used, so that importing the package is quick; `__init__.pyi` lists them.
Each has an example in its docstring, `help(nd.plan)`, where `nd` is this package and `np` is NumPy.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import warnings
from typing import Any

__version__ = "0.1.0"


def _stubbed() -> dict[str, str | None]:
    """Where each public name is: the module that the stub imports it from, or None for a module itself."""
    stub = ast.parse(pkgutil.get_data(__name__, "__init__.pyi") or b"")
    imports = (line for line in stub.body if isinstance(line, ast.ImportFrom))
    return {alias.name: line.module for line in imports for alias in line.names}


_HOME = _stubbed()
_MODULES = [name for name, home in _HOME.items() if home is None]
__all__ = sorted(_HOME)

_FORMER = {
    "ContactFilter": ("estimation.tracker", "Tracker(plan, dt, hypotheses=nori_dyn.Hypotheses())"),
    "Filter": ("estimation.tracker", "Tracker(plan, dt)"),
    "PlanSet": ("estimation.plan", "Plan"),
    "Window": ("estimation.tracker", "Tracker(plan, dt, lag)"),
    "plan_set": ("estimation.plan", "plan(tree, sensors)"),
}
"""Where what former names stand for is, and what to write instead."""


def __getattr__(name: str) -> Any:
    if name in _HOME:
        home = _HOME[name]
        value = importlib.import_module(f"nori_dyn.{home or name}")
        globals()[name] = value if home is None else getattr(value, name)
        return globals()[name]
    home, new = _FORMER.get(name, ("", ""))
    if not home and not name.startswith("_"):
        home = next((module for module in _MODULES if hasattr(__getattr__(module), name)), "")
        new = f"{home}.{name}"
    if not home:
        raise AttributeError(f"module 'nori_dyn' has no attribute '{name}'")
    warnings.warn(f"nori_dyn.{name} is now nori_dyn.{new}", DeprecationWarning, stacklevel=2)
    return getattr(importlib.import_module(f"nori_dyn.{home}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
