"""The algorithms by name, as functions of a tree and of one state: what all of them have to do with it alike."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nori_dyn.recursions.aba import aba, hybrid_dynamics
from nori_dyn.recursions.centroidal import CentroidalDynamics, centroidal, momentum_rate, zmp
from nori_dyn.recursions.christoffel import christoffel
from nori_dyn.recursions.coordinates import com_coordinates
from nori_dyn.recursions.coriolis import coriolis, times_C
from nori_dyn.recursions.crba import crba, inertia_forward_dynamics
from nori_dyn.recursions.derivatives import aba_derivatives, rnea_derivatives
from nori_dyn.recursions.factorisation import ltdl, ltl
from nori_dyn.recursions.jacobian import jacobian, jacobian_rate
from nori_dyn.recursions.minverse import inverse_by_bodies, inverse_by_factors, minverse
from nori_dyn.recursions.rnea import bias_force, coriolis_force, gravity_force, inertial_force, rnea
from nori_dyn.recursions.sparsity import expanded_parents
from tests.tolerances import RECURSION, ROUNDING, SOLVED, Tolerance


class Algorithm(NamedTuple):
    """An algorithm.

    Attributes:
        run: the algorithm, of a tree and of its arguments.
        arguments: their names.
        tolerance: how close it comes to itself over a batch.
    """

    run: Callable[..., Any]
    arguments: tuple[str, ...]
    tolerance: Tolerance = RECURSION

    def __call__(self, tree, q, qd, x, fx):
        """All that it returns as one array; x is qdd, tau or qd_r."""
        given = {"q": q, "qd": qd, "fx": fx}
        found = self.run(tree, *(given.get(name, x) for name in self.arguments))
        return np.concatenate(found) if isinstance(found, tuple) else found


TORQUES = ("q", "qd", "tau", "fx")
ACCELERATIONS = ("q", "qd", "qdd", "fx")

ALGORITHMS = {
    "rnea": Algorithm(rnea, ACCELERATIONS),
    "rnea without wrenches": Algorithm(rnea, ("q", "qd", "qdd")),
    "bias_force": Algorithm(bias_force, ("q", "qd", "fx")),
    "gravity_force": Algorithm(gravity_force, ("q",)),
    "coriolis_force": Algorithm(coriolis_force, ("q", "qd")),
    "inertial_force": Algorithm(inertial_force, ("q", "qdd")),
    "aba": Algorithm(aba, TORQUES, SOLVED),
    "hybrid_dynamics": Algorithm(
        lambda tree, q, qd, tau, qdd, fx: hybrid_dynamics(tree, q, qd, tau, qdd, tree.joint_names[::2], fx),
        ("q", "qd", "tau", "qdd", "fx"),
        SOLVED,
    ),
    "inertia_forward_dynamics": Algorithm(inertia_forward_dynamics, TORQUES, SOLVED),
    "crba": Algorithm(crba, ("q",)),
    "minverse": Algorithm(minverse, ("q",), SOLVED),
    "coriolis": Algorithm(coriolis, ("q", "qd")),
    "coriolis by cross": Algorithm(lambda tree, q, qd: coriolis(tree, q, qd, "cross"), ("q", "qd")),
    "times_C": Algorithm(times_C, ("q", "qd", "qd_r")),
    "rnea_derivatives": Algorithm(rnea_derivatives, ACCELERATIONS, SOLVED),
    "aba_derivatives": Algorithm(aba_derivatives, TORQUES, SOLVED),
}
OF_ARRAYS = {
    "inverse_by_bodies": Algorithm(inverse_by_bodies, ("q",), SOLVED),
    "inverse_by_factors": Algorithm(inverse_by_factors, ("q",), SOLVED),
    "jacobian": Algorithm(lambda tree, q: jacobian(tree, q, tree.names[-1]), ("q",), ROUNDING),
    "jacobian_rate": Algorithm(lambda tree, q, qd: jacobian_rate(tree, q, qd, tree.names[-1]), ("q", "qd"), ROUNDING),
}
FACTORS = {
    "ltl": Algorithm(lambda tree, q: ltl(crba(tree, q), expanded_parents(tree)), ("q",)),
    "ltdl": Algorithm(lambda tree, q: np.vstack(ltdl(crba(tree, q), expanded_parents(tree))), ("q",)),
}
CHRISTOFFEL = {"christoffel": Algorithm(christoffel, ("q",))}
CENTRE = {
    "com_coordinates": Algorithm(com_coordinates, ("q", "qd")),
    "centroidal": Algorithm(lambda *state: _in_a_column(centroidal(*state)), ("q", "qd")),
    "momentum_rate": Algorithm(momentum_rate, ("q", "fx")),
    "zmp": Algorithm(zmp, ("q", "fx"), SOLVED),
}


def _in_a_column(found: CentroidalDynamics) -> np.ndarray:
    """All numbers of a state, or of each of a batch."""
    A = found.A.reshape(-1, *found.A.shape[2:])
    return np.concatenate([found.com, found.com_velocity, A, found.h, found.bias])
