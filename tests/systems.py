"""Systems for tests: the dynamic problems with every external wrench measured, their readings, and their plans."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from nori_dyn.measurements.base import VariableReading
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.joints import FORCE
from nori_dyn.model.synthetic import autotree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.lifting import lifted_classes
from nori_dyn.planning.orderings.greedy import greedy
from nori_dyn.planning.orderings.problem import Ordering, ordering_problem
from nori_dyn.planning.orderings.recursive import recursive
from nori_dyn.system.builder import System
from nori_dyn.system.refined import RefinedSystem, refine
from nori_dyn.system.trace import SymbolicSystem
from nori_dyn.system.variables import VariableKey
from tests.oracles import evaluate

Floats = NDArray[np.float64]

WRENCHES = {"type": "external_wrench", "links": "all"}
ACCELERATIONS = {"type": "joint_acceleration", "joints": "all"}
TORQUES = {"type": "joint_torque", "joints": "all"}
UNLOADED = WRENCHES | {"value": 0}
SPEED = {"of": "qd", "rate": "qdd", "noise": 0.001}


def sensor_set(*entries: dict[str, Any], name: str = "test", **more: Any) -> SensorSet:
    """A set of sensors from the entries of its config, and what else that has: `contacts`, `memory`."""
    return SensorSet.from_dict({"name": name, "measurements": list(entries), **more})


INVERSE = sensor_set(ACCELERATIONS, WRENCHES, name="inverse")
FORWARD = sensor_set(TORQUES, WRENCHES, name="forward")
PROBLEMS = {"inverse": INVERSE, "forward": FORWARD}


def hybrid(tree: KinematicTree, seed: int) -> SensorSet:
    """Sensors by which a random half of the joints follows accelerations and the others torques."""
    names = list(np.random.default_rng(seed).permutation(tree.joint_names).tolist())
    half = (len(names) + 1) // 2
    entries = [
        {"type": "joint_acceleration", "joints": names[:half]},
        {"type": "joint_torque", "joints": names[half:]},
        WRENCHES,
    ]
    return sensor_set(*(entry for entry in entries if entry.get("joints") != []), name=f"hybrid-{seed}")


def braked(tau: float, qdd: float, qd: float, **torque: Any) -> SensorSet:
    """Sensors of a wheel that a brake may hold, with their sigmas and the noise of its speed, which is state.

    Args:
        tau, qdd, qd: the sigmas, and that noise.
        torque: what else the torque sensor has.
    """
    brake = WRENCHES | {"components": ["mx", "my", "fx", "fy", "fz"], "value": 0}
    memory = {"speed": {"of": "qd", "rate": "qdd", "noise": qd}} | ({"offset": {"of": "offset"}} if torque else {})
    contacts = {"brake": {"closed": [brake], "open": [UNLOADED]}}
    rows = TORQUES | {"sigma": tau} | torque, ACCELERATIONS | {"sigma": qdd}
    return sensor_set(*rows, name="wheel", contacts=contacts, memory=memory)


class Figure2(NamedTuple):
    """The exact set of sensors of fig. 2 of Nori's paper: a robot on two load cells, at its first and last link."""

    name: str = "figure 2"
    fingerprint: str = "figure 2"

    def equations(self, tree: KinematicTree) -> list[VariableReading]:
        """Yield fx_1..fx_{N-1}, qdd_3..qdd_{N-2}, and f_1 and fx_N without mz: 7N rows."""
        n = tree.n_links
        loadcell = [FORCE.index(c) for c in ("mx", "my", "fx", "fy", "fz")]
        readings = [_reading(VariableKey("fx", i), range(6)) for i in range(n - 1)]
        readings += [_reading(VariableKey("qdd", i), range(1)) for i in range(2, n - 2)]
        return [*readings, _reading(VariableKey("f", 0), loadcell), _reading(VariableKey("fx", n - 1), loadcell)]


def _reading(key: VariableKey, components: Sequence[int]) -> VariableReading:
    names = ("",) if key.kind == "qdd" else tuple(FORCE[k] for k in components)
    matrix = np.eye(1 if key.kind == "qdd" else 6)[list(components)]
    return VariableReading(f"{key.kind}:{key.body}", "Nori (23)", "test", names, key, matrix, None, None)


def paper_chain(n: int, taper: float) -> KinematicTree:
    """The chain of the paper's figures, in the vertical plane of x and y."""
    return autotree(n, 1, 1.5, taper).replace(gravity=(0.0, -9.81, 0.0))


def lifted(system: System, regroup: bool = False) -> tuple[RefinedSystem, NDArray[np.intp], Ordering]:
    """A refined system, the classes of its columns in the order of the recursions, and an order of it."""
    refined = refine(system, regroup=regroup)
    problem = ordering_problem(system, refined.symbolic, 0, definitions=refined.definitions)
    classes = lifted_classes(recursive(ordering_problem(system, refined.original, 0)), system, refined)
    return refined, classes, Ordering.of(greedy(problem, classes))


def values_at(symbolic: SymbolicSystem, q: Floats, qd: Floats, y: Floats) -> tuple[sp.csc_matrix, Floats]:
    """D and b of a system over expressions at a state."""
    inputs = (*symbolic.q, *symbolic.qd, *symbolic.y)
    found = evaluate(symbolic.graph, {x.index: v for x, v in zip(inputs, (*q, *qd, *y), strict=True)})
    entries = np.array([found[entry.index] for entry in symbolic.entries], dtype=float)
    D = sp.csc_matrix((entries, (symbolic.rows, symbolic.columns)), shape=symbolic.shape)
    return D, np.array([found[b.index] for b in symbolic.b], dtype=float)


class Truth(NamedTuple):
    """States and what happens at them, with a leading N: every variable that a sensor may read."""

    q: Floats
    qd: Floats
    qdd: Floats
    tau: Floats
    fx: Floats


def random_states(tree: KinematicTree, n: int, seed: int, wrench: float = 10.0) -> Truth:
    """n random states; tau is zero, to be filled in."""
    rng = np.random.default_rng(seed)
    q = np.array([tree.random_configuration(rng) for _ in range(n)])
    qd, qdd = rng.normal(size=(2, n, tree.nv))
    fx = wrench * rng.normal(size=(n, tree.n_links, 6))
    return Truth(q, qd, qdd, np.zeros((n, tree.nv)), fx)


def readings(system: System, truth: Truth) -> Floats:
    """Y (N, ny): what the sensors of `joint_*` and `external_wrench` in link coordinates read."""
    Y = np.empty((len(truth.q), system.ny))
    for row in system.measurements:
        kind, body, _ = row.equation.key  # type: ignore[attr-defined]
        values = getattr(truth, kind)
        part = values[:, body] if kind == "fx" else values[:, system.tree.v_slices[body]]
        Y[:, row.y] = part @ np.asarray(row.equation.matrix).T  # type: ignore[attr-defined]
    return Y
