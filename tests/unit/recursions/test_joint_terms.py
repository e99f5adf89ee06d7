"""Rotors, friction and springs in the recursions, against the system's own equations; and what is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse.linalg as spla

import nori_dyn as nd
from nori_dyn.errors import UnsupportedComponentError
from nori_dyn.model.joints import Free
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions import (
    aba,
    bias_force,
    christoffel,
    com_coordinates,
    coriolis,
    coriolis_force,
    crba,
    gravity_force,
    hybrid_dynamics,
    inertia_forward_dynamics,
    inertial_force,
    jacobian,
    minverse,
    rnea,
    times_C,
)
from nori_dyn.recursions.triangular import fd_permutations, fd_transformations, id_permutations
from nori_dyn.system.rows import NewtonEuler
from nori_dyn.system.variables import VariableKey
from tests.oracles import derivative
from tests.peers import casadi as ca
from tests.systems import FORWARD, INVERSE, hybrid, random_states
from tests.tolerances import DIFFERENCES, RECURSION, ROUNDING, SAME_PROGRAM, SOLVED, assert_close
from tests.trees import TREES

ROTORS = (
    nd.components.Rotor(joints="actuated", inertia=3e-4, gear=50),
    nd.components.Rotor(joints="joint2", inertia=0.1),
)
PASSIVE = (
    nd.components.Friction(joints="actuated", viscous=0.4, coulomb=0.7, static=1.1, width=0.05),
    nd.components.Spring(joints=["joint2", "joint5"], stiffness=9.0, reference=0.3),
    nd.components.Tendon(
        name="belt", role="passive", joints={"joint2": 0.5, "joint5": -1.0}, stiffness=20.0, damping=3.0, rest=0.2
    ),
)
WITH_MOTORS = {
    "two_roots": TREES["two_roots"].replace(components=(*ROTORS, *PASSIVE)),
    "fixed_joints": TREES["fixed_joints"].replace(components=(*ROTORS, *PASSIVE)),
    "limb": random_tree(6, seed=51, kinds=("revolute", "prismatic", "helical", "cylindrical")).replace(
        joints=tuple(
            random_tree(1, seed=k, kinds=(kind,)).joints[0]
            for k, kind in enumerate(("revolute", "prismatic", "cylindrical", "spherical", "helical", "revolute"))
        ),
        components=(*ROTORS, *PASSIVE),
    ),
}
N = 4


@pytest.fixture(params=WITH_MOTORS)
def tree(request) -> KinematicTree:
    return WITH_MOTORS[request.param]


@dataclass(frozen=True)
class States:
    """Random states, batch axis last."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    fx: np.ndarray


def states(tree: KinematicTree, seed: int = 0) -> States:
    truth = random_states(tree, N, seed)
    return States(*(np.moveaxis(x, 0, -1) for x in (truth.q, truth.qd, truth.qdd, truth.fx)))


def solved(system: nd.System, at: States, given: Mapping[str, np.ndarray], kind: str) -> np.ndarray:
    """Return a kind of variables of joints (nv, N), from the system's equations as they stand."""
    tree = system.tree
    found = np.zeros((tree.nv, N))
    for k in range(N):
        y = np.concatenate([_read(row.equation.key, tree, given)[..., k] for row in system.measurements])
        d = spla.spsolve(system.D(at.q[:, k]).tocsc(), -system.b(at.q[:, k], at.qd[:, k], y))
        for variable in system.variables:
            if variable.kind == kind:
                found[tree.v_slices[variable.body], k] = d[variable.slice]
    return found


def _read(key: VariableKey, tree: KinematicTree, given: Mapping[str, np.ndarray]) -> np.ndarray:
    return given["fx"][key.body] if key.kind == "fx" else given[key.kind][tree.v_slices[key.body]]


def test_inverse_dynamics_is_that_of_the_system(tree):
    at = states(tree)
    expected = solved(nd.System(tree, INVERSE), at, {"qdd": at.qdd, "fx": at.fx}, "tau")
    assert_close(rnea(tree, at.q, at.qd, at.qdd, at.fx), expected, SOLVED)
    for k in range(N):
        assert_close(rnea(tree, at.q[:, k], at.qd[:, k], at.qdd[:, k], at.fx[..., k]), expected[:, k], SOLVED)


@pytest.mark.parametrize("algorithm", [aba, inertia_forward_dynamics])
def test_forward_dynamics_is_that_of_the_system(tree, algorithm):
    at = states(tree)
    tau = np.random.default_rng(1).normal(size=at.qd.shape)
    expected = solved(nd.System(tree, FORWARD), at, {"tau": tau, "fx": at.fx}, "qdd")
    assert_close(algorithm(tree, at.q, at.qd, tau, at.fx), expected, SOLVED)


def test_hybrid_dynamics_is_that_of_the_system(tree):
    at = states(tree)
    system = nd.System(tree, hybrid(tree, seed=3))
    led = {tree.joint_names[row.equation.key.body] for row in system.measurements if row.equation.key.kind == "qdd"}
    tau = np.random.default_rng(1).normal(size=at.qd.shape)
    given = {"tau": tau, "qdd": at.qdd, "fx": at.fx}
    found = hybrid_dynamics(tree, at.q, at.qd, tau, at.qdd, led, at.fx)
    assert_close(found.qdd, solved(system, at, given, "qdd"), SOLVED)
    assert_close(found.tau, solved(system, at, given, "tau"), SOLVED)


def test_the_parts_make_up_inverse_dynamics(tree):
    at = states(tree)
    bare = tree.replace(components=())
    H, C = crba(tree, at.q), coriolis(tree, at.q, at.qd).C
    assert_close(gravity_force(tree, at.q), gravity_force(bare, at.q), ROUNDING)
    assert_close(coriolis_force(tree, at.q, at.qd), np.einsum("ijN,jN->iN", C, at.qd), RECURSION)
    assert_close(inertial_force(tree, at.q, at.qdd), np.einsum("ijN,jN->iN", H, at.qdd), RECURSION)
    assert_close(
        inertial_force(tree, at.q, at.qdd) + bias_force(tree, at.q, at.qd, at.fx),
        rnea(tree, at.q, at.qd, at.qdd, at.fx),
        RECURSION,
    )
    h = bias_force(tree, at.q, at.qd) - bias_force(bare, at.q, at.qd)
    assert np.abs(h).max() > 1
    at_rest = bias_force(tree, at.q, None) - gravity_force(tree, at.q)
    springs = tree.replace(components=PASSIVE[1:])
    assert_close(at_rest, rnea(springs, at.q, None, None) - gravity_force(bare, at.q), RECURSION)


def test_matrices_have_the_inertia_of_rotors(tree):
    at = states(tree)
    bare, rotors = tree.replace(components=()), np.zeros(tree.nv)
    for component in ROTORS:
        for part in component.on(tree):
            rotors[tree.v_slices[part.body]] += part.inertia
    J = np.diag(rotors)[..., None]
    H, with_rotors, without = crba(tree, at.q), coriolis(tree, at.q, at.qd), coriolis(bare, at.q, at.qd)
    assert_close(H, crba(bare, at.q) + J, ROUNDING)
    assert_close(with_rotors.M, H, RECURSION)
    assert_close(with_rotors.Mdot, without.Mdot, ROUNDING)
    assert_close(with_rotors.C, without.C, ROUNDING)
    assert_close(times_C(tree, at.q, at.qd, at.qdd), times_C(bare, at.q, at.qd, at.qdd), ROUNDING)
    eye = np.broadcast_to(np.eye(tree.nv)[..., None], H.shape)
    assert_close(np.einsum("ijN,jkN->ikN", H, minverse(tree, at.q)), eye, SOLVED)


def test_the_centre_of_mass_moves_apart_from_rotors_too():
    flyer = autotree(4, skew=0.5)
    flyer = flyer.replace(joints=(Free(), *flyer.joints[1:]), components=ROTORS[:1])
    q, qd = flyer.random_configuration(np.random.default_rng(1)), np.ones(flyer.nv)
    change = com_coordinates(flyer, q, qd)
    M, _, C = coriolis(flyer, q, qd)
    mass = flyer.I[:, 5, 5].sum()
    for found, expected in ((change.inertia(M), mass * np.eye(3)), (change.coriolis(M, C), np.zeros((3, 3)))):
        assert_close(found[:3], np.hstack([expected, np.zeros((3, flyer.nv - 3))]), RECURSION)
        assert_close(found[3:, :3], np.zeros((flyer.nv - 3, 3)), RECURSION)


def test_a_massless_link_moves_with_a_rotor():
    light = random_tree(2, seed=5, kinds=("revolute",)).replace(I=np.zeros((2, 6, 6)))
    motors = light.replace(components=(nd.components.Rotor(joints="all", inertia=0.5),))
    assert_close(aba(motors, np.zeros(2), np.zeros(2), np.array([1.0, -2.0])), np.array([2.0, -4.0]), ROUNDING)
    assert_close(minverse(motors, np.zeros(2)), 2 * np.eye(2), ROUNDING)


ALGORITHMS = {
    "rnea": lambda tree, q, qd, x: rnea(tree, q, qd, x),
    "bias_force": lambda tree, q, qd, x: bias_force(tree, q, qd),
    "gravity_force": lambda tree, q, qd, x: gravity_force(tree, q),
    "coriolis_force": lambda tree, q, qd, x: coriolis_force(tree, q, qd),
    "inertial_force": lambda tree, q, qd, x: inertial_force(tree, q, x),
    "aba": lambda tree, q, qd, x: aba(tree, q, qd, x),
    "hybrid_dynamics": lambda tree, q, qd, x: hybrid_dynamics(tree, q, qd, x, x, "joint1").qdd,
    "inertia_forward_dynamics": lambda tree, q, qd, x: inertia_forward_dynamics(tree, q, qd, x),
    "crba": lambda tree, q, qd, x: crba(tree, q),
    "minverse": lambda tree, q, qd, x: minverse(tree, q),
    "coriolis": lambda tree, q, qd, x: coriolis(tree, q, qd).M,
    "christoffel": lambda tree, q, qd, x: christoffel(tree, q),
    "times_C": lambda tree, q, qd, x: times_C(tree, q, qd, x),
}
ARM = autotree(3, skew=0.7).replace(
    components=(
        nd.components.Rotor(joints="all", inertia=2e-4, gear=100),
        nd.components.Friction(joints="all", viscous=0.3, coulomb=1.0, static=1.5, width=0.1),
        nd.components.Spring(joints="joint3", stiffness=4.0, reference=0.2),
    )
)
every_algorithm = pytest.mark.parametrize("name", ALGORITHMS)


@every_algorithm
def test_symbols_give_the_numbers(name):
    q, qd, x = (ca.SX.sym(of, 3) for of in ("q", "qd", "x"))
    array = ALGORITHMS[name](ARM, q, qd, x)
    f = ca.Function("f", [q, qd, x], [ca.vertcat(*array.ravel().tolist())])
    values = np.random.default_rng(2).normal(size=(3, 3))
    expected = ALGORITHMS[name](ARM, *values)
    assert_close(np.array(f(*values)).reshape(expected.shape), expected, RECURSION)


@pytest.mark.parametrize("function", [rnea, aba, crba, minverse])
def test_programs_give_the_numbers(function):
    compiled = nd.compile(function, ARM, backend="numpy")
    values = np.random.default_rng(2).normal(size=(3, 3))[: len(vars(compiled.inputs))]
    assert_close(compiled(*values), function(ARM, *values), SAME_PROGRAM)


@pytest.mark.parametrize("function", [rnea, aba])
def test_derivatives_are_those_by_differences(function):
    q, qd, x = np.random.default_rng(2).normal(size=(3, 3))
    by_q, by_qd = nd.compile(function, ARM, backend="numpy").derivative("q", "qd")(q, qd, x)
    for e in np.eye(3):
        assert_close(by_q @ e, derivative(lambda t, e=e: function(ARM, q + t * e, qd, x), 1e-3), DIFFERENCES)
        assert_close(by_qd @ e, derivative(lambda t, e=e: function(ARM, q, qd + t * e, x), 1e-3), DIFFERENCES)


LOOP = nd.components.Loop(name="bar", frames=["link2", "link3"], constrains="point")
UNSUPPORTED = {
    "coupling:belt": nd.components.Coupling(name="belt", joint="joint3", of={"joint1": 2.0}),
    "loop:bar": LOOP,
    "tendon:cable": nd.components.Tendon(name="cable", through=["link1", "link3"], role="passive", stiffness=1.0),
    "tendon:flexor": nd.components.Tendon(name="flexor", joints={"joint1": 1.0, "joint3": 0.5}),
}


@every_algorithm
@pytest.mark.parametrize("part", UNSUPPORTED)
def test_couplings_loops_and_tendons_are_refused_by_name(name, part):
    tree = ARM.replace(components=(*ARM.components, UNSUPPORTED[part]))
    with pytest.raises(UnsupportedComponentError, match=rf"has '{part}'.*nd\.plan\(nd\.System\(tree") as caught:
        ALGORITHMS[name](tree, *np.zeros((3, 3)))
    assert caught.value.part == part


def test_what_is_of_positions_alone_does_not_care():
    tree, bare = ARM.replace(components=(UNSUPPORTED["loop:bar"],)), ARM.replace(components=())
    assert_close(jacobian(tree, np.ones(3), "link3"), jacobian(bare, np.ones(3), "link3"), ROUNDING)


@dataclass(frozen=True)
class Crossed:
    """A part whose inertia is not that of its own joint, or changes."""

    body: int
    of: int
    changes: bool

    name: ClassVar[str] = "crossed:it"
    unknowns: ClassVar[tuple] = ()
    equations: ClassVar[tuple] = ()

    @property
    def acts_on(self):
        return (NewtonEuler("tau", self.body),)

    def blocks(self, on, at):
        size = 1.0 + self.changes * at.q[0] ** 2
        return {VariableKey("qdd", self.of): np.array([[size]])}

    def bias(self, on, at):
        return np.zeros((1,))


@dataclass(frozen=True)
class Gives:
    """A component of another package that yields a part."""

    part: Crossed
    type: ClassVar[str] = "crossed"
    name: ClassVar[str] = "it"

    def on(self, tree):
        yield self.part

    def to_dict(self):
        return {"type": self.type}


@pytest.mark.parametrize("part", [Crossed(0, 1, changes=False), Crossed(1, 1, changes=True)])
def test_inertias_that_change_or_cross_are_refused(part):
    with pytest.raises(UnsupportedComponentError, match=r"has 'crossed:it'.*constant inertias of single joints"):
        crba(autotree(2).replace(components=(Gives(part),)), np.zeros(2))


def test_the_triangular_forms_are_of_rigid_bodies():
    for system, find in ((nd.System(ARM, INVERSE), id_permutations), (nd.System(ARM, FORWARD), fd_permutations)):
        with pytest.raises(UnsupportedComponentError, match="triangular forms are of rigid bodies"):
            find(system)
    with pytest.raises(UnsupportedComponentError, match="triangular forms are of rigid bodies"):
        fd_transformations(nd.System(ARM, FORWARD), np.zeros(3))
