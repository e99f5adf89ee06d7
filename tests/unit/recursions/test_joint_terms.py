"""Rotors, friction and springs in the recursions, against the system's own equations; and what is refused by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse.linalg as spla

import nori_dyn as nd
from nori_dyn import recursions as rec
from nori_dyn.errors import UnsupportedComponentError
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.triangular import fd_permutations, fd_transformations, id_permutations
from nori_dyn.system.rows import NewtonEuler
from nori_dyn.system.variables import VariableKey
from tests.systems import FORWARD, INVERSE, Truth, hybrid, random_states
from tests.tolerances import RECURSION, ROUNDING, SOLVED, assert_close
from tests.trees import TREES, random_state
from tests.unit.recursions.algorithms import ALGORITHMS, CHRISTOFFEL
from tests.unit.recursions.test_rnea import batch_last

ROTORS = (
    nd.components.Rotor(joints="actuated", inertia=3e-4, gear=50),
    nd.components.Rotor(joints="joint2", inertia=0.1),
)
PASSIVE = (
    nd.components.Friction(joints="actuated", viscous=0.4, quadratic=-0.1, coulomb=0.7, static=1.1, width=0.05),
    nd.components.Spring(joints=["joint2", "joint5"], stiffness=9.0, reference=0.3),
    nd.components.Tendon(
        name="belt", role="passive", joints={"joint2": 0.5, "joint5": -1.0}, stiffness=20.0, damping=3.0, rest=0.2
    ),
)
MOTORS = (*ROTORS, *PASSIVE)
KINDS = ("revolute", "prismatic", "cylindrical", "spherical", "helical", "revolute")
LIMB = random_tree(6, seed=51, kinds=("revolute", "prismatic", "helical", "cylindrical")).replace(
    joints=tuple(random_tree(1, seed=k, kinds=(kind,)).joints[0] for k, kind in enumerate(KINDS))
)
BARE = {"two_roots": TREES["two_roots"], "fixed_joints": TREES["fixed_joints"], "limb": LIMB}
WITH_MOTORS = {name: tree.replace(components=MOTORS) for name, tree in BARE.items()}
N = 4


@pytest.fixture(params=WITH_MOTORS)
def tree(request) -> KinematicTree:
    return WITH_MOTORS[request.param]


def states(tree: KinematicTree) -> Truth:
    """Random states, batch axis last."""
    return Truth(*map(batch_last, random_states(tree, N, seed=0)))


def solved(system: nd.System, at: Truth, given: Mapping[str, np.ndarray], kind: str) -> np.ndarray:
    """A kind of variables of joints (nv, N), from the system's equations as they stand."""
    tree = system.tree
    found = np.zeros((tree.nv, N))
    for k in range(N):
        keys = (row.equation.key for row in system.measurements)
        y = [given[kind][i if kind == "fx" else tree.v_slices[i], ..., k] for kind, i, *_ in keys]
        d = spla.spsolve(system.D(at.q[:, k]).tocsc(), -system.b(at.q[:, k], at.qd[:, k], np.concatenate(y)))
        for variable in system.variables:
            if variable.kind == kind:
                found[tree.v_slices[variable.body], k] = d[variable.slice]
    return found


def test_dynamics_are_those_of_the_system(tree):
    at, tau = states(tree), np.random.default_rng(1).normal(size=(tree.nv, N))
    given = {"tau": tau, "qdd": at.qdd, "fx": at.fx}
    inverse = solved(nd.System(tree, INVERSE), at, given, "tau")
    assert_close(rec.rnea(tree, at.q, at.qd, at.qdd, at.fx), inverse, SOLVED)
    forward = solved(nd.System(tree, FORWARD), at, given, "qdd")
    for algorithm in (rec.aba, rec.inertia_forward_dynamics):
        assert_close(algorithm(tree, at.q, at.qd, tau, at.fx), forward, SOLVED)
    system = nd.System(tree, hybrid(tree, seed=3))
    led = {tree.joint_names[row.equation.key.body] for row in system.measurements if row.equation.key.kind == "qdd"}
    found = rec.hybrid_dynamics(tree, at.q, at.qd, tau, at.qdd, led, at.fx)
    for kind in ("qdd", "tau"):
        assert_close(getattr(found, kind), solved(system, at, given, kind), SOLVED)


def test_the_parts_make_up_inverse_dynamics(tree):
    at = states(tree)
    bare = tree.replace(components=())
    H, C = rec.crba(tree, at.q), rec.coriolis(tree, at.q, at.qd).C
    assert_close(rec.gravity_force(tree, at.q), rec.gravity_force(bare, at.q), ROUNDING)
    assert_close(rec.coriolis_force(tree, at.q, at.qd), np.einsum("ijN,jN->iN", C, at.qd), RECURSION)
    assert_close(rec.inertial_force(tree, at.q, at.qdd), np.einsum("ijN,jN->iN", H, at.qdd), RECURSION)
    assert_close(
        rec.inertial_force(tree, at.q, at.qdd) + rec.bias_force(tree, at.q, at.qd, at.fx),
        rec.rnea(tree, at.q, at.qd, at.qdd, at.fx),
        RECURSION,
    )
    h = rec.bias_force(tree, at.q, at.qd) - rec.bias_force(bare, at.q, at.qd)
    assert np.abs(h).max() > 1
    at_rest = rec.bias_force(tree, at.q, None) - rec.gravity_force(tree, at.q)
    springs = tree.replace(components=PASSIVE[1:])
    assert_close(at_rest, rec.rnea(springs, at.q, None, None) - rec.gravity_force(bare, at.q), RECURSION)


def test_matrices_have_the_inertia_of_rotors(tree):
    at = states(tree)
    bare, rotors = tree.replace(components=()), np.zeros(tree.nv)
    for component in ROTORS:
        for part in component.on(tree):
            rotors[tree.v_slices[part.body]] += part.inertia
    J = np.diag(rotors)[..., None]
    H, with_rotors, without = rec.crba(tree, at.q), rec.coriolis(tree, at.q, at.qd), rec.coriolis(bare, at.q, at.qd)
    assert_close(H, rec.crba(bare, at.q) + J, ROUNDING)
    assert_close(with_rotors.M, H, RECURSION)
    assert_close(with_rotors.Mdot, without.Mdot, ROUNDING)
    assert_close(with_rotors.C, without.C, ROUNDING)
    assert_close(rec.times_C(tree, at.q, at.qd, at.qdd), rec.times_C(bare, at.q, at.qd, at.qdd), ROUNDING)
    eye = np.broadcast_to(np.eye(tree.nv)[..., None], H.shape)
    assert_close(np.einsum("ijN,jkN->ikN", H, rec.minverse(tree, at.q)), eye, SOLVED)


def test_a_massless_link_moves_with_a_rotor():
    light = random_tree(2, seed=5, kinds=("revolute",)).replace(I=np.zeros((2, 6, 6)))
    motors = light.replace(components=(nd.components.Rotor(joints="all", inertia=0.5),))
    assert_close(rec.aba(motors, np.zeros(2), np.zeros(2), np.array([1.0, -2.0])), np.array([2.0, -4.0]), ROUNDING)
    assert_close(rec.minverse(motors, np.zeros(2)), 2 * np.eye(2), ROUNDING)


ARM = autotree(3, skew=0.7).replace(
    components=(
        nd.components.Rotor(joints="all", inertia=2e-4, gear=100),
        nd.components.Friction(joints="all", viscous=0.3, coulomb=1.0, static=1.5, width=0.1),
        nd.components.Spring(joints="joint3", stiffness=4.0, reference=0.2),
    )
)


UNSUPPORTED = {
    "coupling:belt": nd.components.Coupling(name="belt", joint="joint3", of={"joint1": 2.0}),
    "loop:bar": nd.components.Loop(name="bar", frames=["link2", "link3"], constrains="point"),
    "tendon:cable": nd.components.Tendon(name="cable", through=["link1", "link3"], role="passive", stiffness=1.0),
    "tendon:flexor": nd.components.Tendon(name="flexor", joints={"joint1": 1.0, "joint3": 0.5}),
}


@pytest.mark.parametrize("part", UNSUPPORTED)
def test_couplings_loops_and_tendons_are_refused_by_name(part):
    tree = ARM.replace(components=(*ARM.components, UNSUPPORTED[part]))
    state = random_state(ARM, 0)
    for name, algorithm in (ALGORITHMS | CHRISTOFFEL).items():
        with pytest.raises(UnsupportedComponentError, match=rf"has '{part}'.*nd\.plan\(nd\.System\(tree") as caught:
            algorithm(tree, *state)
        assert caught.value.part == part, name


def test_what_is_of_positions_alone_does_not_care():
    tree, bare = ARM.replace(components=(UNSUPPORTED["loop:bar"],)), ARM.replace(components=())
    assert_close(rec.jacobian(tree, np.ones(3), "link3"), rec.jacobian(bare, np.ones(3), "link3"), ROUNDING)


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
        rec.crba(autotree(2).replace(components=(Gives(part),)), np.zeros(2))


def test_the_triangular_forms_are_of_rigid_bodies():
    for system, find in ((nd.System(ARM, INVERSE), id_permutations), (nd.System(ARM, FORWARD), fd_permutations)):
        with pytest.raises(UnsupportedComponentError, match="triangular forms are of rigid bodies"):
            find(system)
    with pytest.raises(UnsupportedComponentError, match="triangular forms are of rigid bodies"):
        fd_transformations(nd.System(ARM, FORWARD), np.zeros(3))
