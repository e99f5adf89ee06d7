"""Derivatives of estimates by differences, in extended precision: of the definition, dense, and slow.

D and b are evaluated at extended numbers; what holds exactly is solved by LU in doubles, refined with extended
residuals, and what is weighed by `least_squares`. Nothing of the planned elimination is used.
"""

import numpy as np
import scipy.linalg as la

from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.trace import trace
from tests import oracles
from tests.least_squares import Extended, constrained_least_squares

WEIGHTS = np.round(840 * oracles.WEIGHTS).astype(np.longdouble) / 840
"""Those of `oracles.WEIGHTS`, extended."""

STEP = np.longdouble(1e-3)

STEPS = 8
"""Steps of refinement."""


class ExtendedEstimate:
    """d as a function of q, qd, y and weights."""

    def __init__(self, system: System) -> None:
        self.system, self._symbolic = system, trace(system)
        self._exact = np.concatenate([np.full(len(row.equation.components), row.is_exact) for row in system.rows])
        self._weight_of = [k for row in system.rows if not row.is_exact for k in row.weight_of_rows]

    def at(self, q: Extended, qd: Extended, y: Extended, weights: Extended | None = None) -> Extended:
        """Return d (n,)."""
        symbolic = self._symbolic
        given = zip((*symbolic.q, *symbolic.qd, *symbolic.y), (*q, *qd, *y), strict=True)
        inputs = {x.index: np.array([value], dtype=np.longdouble) for x, value in given}
        entries, b = np.split(
            symbolic.graph.evaluate([*symbolic.entries, *symbolic.b], inputs)[:, 0], [len(symbolic.entries)]
        )
        D = np.zeros(symbolic.shape, dtype=np.longdouble)
        D[symbolic.rows, symbolic.columns] = entries
        if self._exact.all():
            return refined_solution(D, -b)
        exact, w = self._exact, weights[self._weight_of]
        return constrained_least_squares(D[exact], b[exact], D[~exact], b[~exact], w).d

    def derivative(self, name: str, k: int, *state: np.ndarray) -> Extended:
        """Return the derivative of d (n,) by number k of an input; of q along freedom k."""
        q, qd, y, *weights = (np.asarray(x, dtype=np.longdouble) for x in state)
        given = {"q": q, "qd": qd, "y": y, **({"weights": weights[0]} if weights else {})}
        size = given["weights"][k] if name == "weights" else np.longdouble(1)

        def moved(t: Extended) -> Extended:
            now = dict(given)
            if name == "q":
                now["q"] = along_freedom(self.system.tree, q, k, t)
            else:
                now[name] = given[name] + t * size * (np.arange(len(given[name])) == k)
            return self.at(*now.values())

        return sum(w * moved(s * STEP) for s, w in zip(oracles.STENCIL, WEIGHTS, strict=True)) / (STEP * size)


def along_freedom(tree: KinematicTree, q: Extended, k: int, t: Extended) -> Extended:
    """Return a configuration on a curve through q that starts along freedom k."""
    found = q.copy()
    for joint, part, own in zip(tree.joints, tree.q_slices, tree.v_slices, strict=True):
        unit = (np.arange(own.start, own.stop) == k).astype(float)
        if unit.any():
            found[part] = q[part] + t * np.asarray(joint.rates(q[part], unit), dtype=np.longdouble)
            turns = [kind == "quaternion" for kind in joint.coordinates]
            if any(turns):
                quaternion = found[part][turns]
                found[np.arange(part.start, part.stop)[turns]] = quaternion / np.sqrt(np.sum(quaternion**2))
    return found


def refined_solution(A: Extended, b: Extended) -> Extended:
    """Return the solution of A x = b."""
    scale = 1 / np.abs(A).max(axis=1)
    A, b = scale[:, None] * A, scale * b
    factors = la.lu_factor(A.astype(float))
    x = np.zeros(len(b), dtype=np.longdouble)
    for _ in range(STEPS):
        x = x + la.lu_solve(factors, (b - A @ x).astype(float))
    return x
