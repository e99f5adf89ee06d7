"""The classical recursive algorithms, one a file, written once over any scalar: floats, batches, symbols.

tau = nd.recursions.rnea(tree, q, qd, qdd)              also bias_force, gravity_force, coriolis_force, inertial_force
qdd = nd.recursions.aba(tree, q, qd, tau)               also hybrid_dynamics, inertia_forward_dynamics
H = nd.recursions.crba(tree, q)                         also minverse, its inverse
M, Mdot, C = nd.recursions.coriolis(tree, q, qd)        also christoffel; times_C, for C qd_r without C
nd.recursions.rnea_derivatives(tree, q, qd, qdd)        also aba_derivatives, hybrid_dynamics_derivatives
J = nd.recursions.jacobian(tree, q, "tool")             also jacobian_rate
nd.recursions.delassus(tree, q, ["l_foot", "r_foot"])   also operational_space_inertia, its inverse
L = nd.recursions.ltl(H, expanded_parents(tree))        also ltdl, ltl_in_place, solve_ltl, ...
nd.recursions.com_coordinates(tree, q, qd)              also coordinate_change
nd.recursions.centroidal(tree, q, qd)                   centre of mass and momentum; also momentum_rate, zmp

Example:
    >>> arm = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))
    >>> print(np.round(nd.recursions.gravity_force(arm, np.zeros(2)), 1))
    [19.6  4.9]
"""

from __future__ import annotations

from nori_dyn.recursions.aba import HybridDynamics, aba, hybrid_dynamics
from nori_dyn.recursions.centroidal import CentroidalDynamics, centroidal, momentum_rate, zmp
from nori_dyn.recursions.christoffel import christoffel
from nori_dyn.recursions.coordinates import CoordinateChange, com_coordinates, coordinate_change
from nori_dyn.recursions.coriolis import Coriolis, coriolis, times_C
from nori_dyn.recursions.crba import crba, inertia_forward_dynamics
from nori_dyn.recursions.delassus import delassus, operational_space_inertia
from nori_dyn.recursions.derivatives import (
    ForwardDynamicsDerivatives,
    HybridDynamicsDerivatives,
    InverseDynamicsDerivatives,
    aba_derivatives,
    hybrid_dynamics_derivatives,
    rnea_derivatives,
)
from nori_dyn.recursions.factorisation import (
    LTDL,
    ltdl,
    ltdl_in_place,
    ltl,
    ltl_in_place,
    solve_L,
    solve_L_transpose,
    solve_ltdl,
    solve_ltl,
    times_H,
    times_L,
    times_L_transpose,
)
from nori_dyn.recursions.jacobian import jacobian, jacobian_rate
from nori_dyn.recursions.minverse import minverse
from nori_dyn.recursions.rnea import bias_force, coriolis_force, gravity_force, inertial_force, rnea
from nori_dyn.recursions.sparsity import expanded_parents

__all__ = [
    "LTDL",
    "CentroidalDynamics",
    "CoordinateChange",
    "Coriolis",
    "ForwardDynamicsDerivatives",
    "HybridDynamics",
    "HybridDynamicsDerivatives",
    "InverseDynamicsDerivatives",
    "aba",
    "aba_derivatives",
    "bias_force",
    "centroidal",
    "christoffel",
    "com_coordinates",
    "coordinate_change",
    "coriolis",
    "coriolis_force",
    "crba",
    "delassus",
    "expanded_parents",
    "gravity_force",
    "hybrid_dynamics",
    "hybrid_dynamics_derivatives",
    "inertia_forward_dynamics",
    "inertial_force",
    "jacobian",
    "jacobian_rate",
    "ltdl",
    "ltdl_in_place",
    "ltl",
    "ltl_in_place",
    "minverse",
    "momentum_rate",
    "operational_space_inertia",
    "rnea",
    "rnea_derivatives",
    "solve_L",
    "solve_L_transpose",
    "solve_ltdl",
    "solve_ltl",
    "times_C",
    "times_H",
    "times_L",
    "times_L_transpose",
    "zmp",
]
