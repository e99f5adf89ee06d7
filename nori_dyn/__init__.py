"""The dynamics of robots as one sparse linear system, planned once and solved every tick, for any set of sensors.

A robot and its sensors:

    tree = nd.load_urdf("robot.urdf", base="floating")      also load_mjcf, load_robot("panda"), autotree(7)
    nd.robots()                                             which robots load_robot knows by name
    sensors = nd.sensors("inverse_dynamics")                also sensors("mine.yaml"), sensors_from_model(...)
    system = nd.System(tree, sensors)                       D(q) d + b(q, qd) = 0, its rows and variables by name
    system = nd.System(tree, "inverse_dynamics")            the same

Do the sensors suffice, and which ones to buy:

    nd.observability(system)                                rank, what is not determined, the poses that lose it
    nd.conditioning(system, Q), nd.redundancy(system)       how precise, and which sensors may fail
    nd.place(tree, candidates), nd.best_sensors(...)        the cheapest sensors, or the most precise ones
    nd.save_html(found, "page.html")                        any of these as a page for the browser

How it moves, from its encoders alone:

    motion = nd.joint_motion(t, q)                          qd and qdd as well, each with its standard deviation

What the robot itself is like, from its logs:

    nd.identifiability(system, ["inertias"])                which parameters the sensors can tell, in which combinations
    nd.exciting_motion(tree)                                the motion that tells most of them
    found = nd.identify("log.csv", tree)                    inertias, friction, offsets, a load; found.robot
    nd.save_robot(found.robot, "arm.urdf", "found.urdf")    the file of the robot, corrected

Plan once, solve every tick:

    plan = nd.plan(system, outputs=("tau",))                or nd.plan(tree, sensors): has states where contacts change
    solver = plan.solver()                                  solver.solve(q, qd, y), .solve_batch(...), .tick()
    plan.monitor(), plan.export("folder"), plan.save(path)  sigmas and faults, C code, a file

The classical algorithms, and any function of a robot as a compiled program:

    nd.rnea, nd.aba, nd.crba, nd.minverse, nd.coriolis, nd.christoffel, nd.jacobian, nd.ltl, nd.ltdl
    nd.compile(nd.rnea, tree)

The rest is in rooms: nd.recursions (all algorithms), nd.observe (special poses, sweeps), nd.placement,
nd.measurements (sensors, and how to write one), nd.components (motors, friction, springs, couplings, loops, tendons),
nd.interop (Pinocchio, MuJoCo, Featherstone), nd.errors.

Each name is loaded when it is first used, so that importing the package is quick; `__init__.pyi` lists them.
Each has an example in its docstring, `help(nd.plan)`, where `nd` is this package and `np` is NumPy.
"""

from __future__ import annotations

import warnings
from typing import Any

import lazy_loader

__version__ = "0.1.0"

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    try:
        return _public(name)
    except AttributeError:
        for room in ("errors", "recursions", "interop", "measurements", "components", "observe", "placement"):
            found = None if name.startswith("_") else getattr(_public(room), name, None)
            if found is not None:
                warnings.warn(f"nori_dyn.{name} is now nori_dyn.{room}.{name}", DeprecationWarning, stacklevel=2)
                return found
        raise AttributeError(f"module 'nori_dyn' has no attribute '{name}'") from None
