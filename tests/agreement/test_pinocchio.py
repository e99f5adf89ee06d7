"""Inverse, forward and hybrid dynamics on real robots, against Pinocchio's rnea and aba."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from nori_dyn.api.plan import Plan, plan
from nori_dyn.errors import SingularSystemError
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.system.builder import System
from tests.peers import pin
from tests.robots import (
    ROBOTS,
    acceleration_to_pinocchio,
    load,
    pinocchio_model,
    pinocchio_wrenches,
    to_pinocchio,
    velocity_map,
)
from tests.systems import PROBLEMS, Truth, hybrid, random_states, readings
from tests.tolerances import ILL_SOLVED, SOLVED, assert_close

N_STATES = 100
SNAPPED = ("kinova", "romeo", "baxter", "ur5", "hyq", "talos_reduced", "talos_full")
"""Robots whose angles the loader's cleaning moves by more than 1e-12 rad: compared as they are in the file."""

MASSLESS = ("romeo",)
"""Robots whose finger links weigh nothing: without forward dynamics."""

ILL_CONDITIONED = ("icub",)
"""Robots with a moving link of next to no inertia: no algorithm gets forward dynamics to 1e-9, Pinocchio's included."""

EVERY = [(name, base) for name in ROBOTS for base in ("fixed", "floating")]
needs_umfpack = pytest.mark.skipif(not has_umfpack(), reason="the extra 'umfpack' is not installed")
BACKENDS = ("numpy", *(("umfpack",) if has_umfpack() else ()))


class Peer:
    """Pinocchio's answer on the bodies of a tree, state by state."""

    def __init__(self, name: str, tree: KinematicTree, base: str) -> None:
        self.tree = tree
        self.model = pinocchio_model(ROBOTS[name], base)
        self.data = self.model.createData()
        self.joints = [self.model.getJointId(joint) for joint in tree.joint_names]

    def inverse(self, truth: Truth) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return tau (N, nv), a and f (N, n_links, 6) of the states, from qdd."""
        tree, model, data = self.tree, self.model, self.data
        tau, a, f = [], [], []
        for q, qd, qdd, _, fx in zip(*truth, strict=True):
            q_pin, v = to_pinocchio(tree, model, q, qd)
            rate = acceleration_to_pinocchio(tree, model, q, qd, qdd)
            torque = pin.rnea(model, data, q_pin, v, rate, pinocchio_wrenches(tree, model, fx))
            tau.append(velocity_map(tree, model, q).T @ torque)
            a.append([np.roll(data.a_gf[j].vector, 3) for j in self.joints])
            f.append([np.roll(data.f[j].vector, 3) for j in self.joints])
        return np.array(tau), np.array(a), np.array(f)

    def forward(self, truth: Truth) -> np.ndarray:
        """Return qdd (N, nv) of the states, from tau."""
        tree, model, data = self.tree, self.model, self.data
        qdd = []
        for q, qd, _, tau, fx in zip(*truth, strict=True):
            q_pin, v = to_pinocchio(tree, model, q, qd)
            P = velocity_map(tree, model, q)
            torque = np.linalg.solve(P.T, tau)
            rate = pin.aba(model, data, q_pin, v, torque, pinocchio_wrenches(tree, model, fx))
            qdd.append(np.linalg.solve(P, rate - acceleration_to_pinocchio(tree, model, q, qd, 0 * qd)))
        return np.array(qdd)


@lru_cache(maxsize=64)
def robot(name: str, base: str) -> KinematicTree:
    return load(name, base, clean=name not in SNAPPED)


@lru_cache(maxsize=64)
def led(name: str, base: str) -> tuple[Truth, np.ndarray, np.ndarray]:
    """Return random states and accelerations of a robot, the torques of Pinocchio's rnea, its a and f."""
    tree = robot(name, base)
    states = random_states(tree, N_STATES, seed=len(name))
    tau, a, f = Peer(name, tree, base).inverse(states)
    return states._replace(tau=tau), a, f


@lru_cache(maxsize=64)
def driven(name: str, base: str) -> tuple[Truth, np.ndarray, np.ndarray]:
    """Return random states and torques of a robot, the accelerations of Pinocchio's aba, its a and f."""
    peer = Peer(name, robot(name, base), base)
    states = led(name, base)[0]
    rng = np.random.default_rng(7)
    states = states._replace(tau=states.tau * rng.uniform(0.9, 1.1, size=states.tau.shape))
    states = states._replace(qdd=peer.forward(states))
    _, a, f = peer.inverse(states)
    return states, a, f


TRIED = {(name, "floating") for name in ("kinova", "anymal", "g1", "talos_reduced", "iCubGenova04")}
"""Robots for which all orderings are tried."""


@lru_cache(maxsize=64)
def planned(name: str, base: str, problem: str, ordering: str | None = None) -> Plan:
    """Return a plan: of some robots the cheapest of all orderings, which is that of the recursions for all."""
    tree = robot(name, base)
    sensors = hybrid(tree, seed=3) if problem == "hybrid" else PROBLEMS[problem]
    ordering = ordering or ("auto" if (name, base) in TRIED else "recursive")
    return plan(System(tree, sensors), ordering=ordering)


def forward_dynamics_exists(name: str) -> None:
    if name in MASSLESS:
        pytest.skip(f"{name} has links without mass: see test_massless_fingers_are_the_cause")


@pytest.mark.parametrize(("name", "base"), EVERY)
def test_inverse_dynamics(name, base):
    truth, a, f = led(name, base)
    for backend in BACKENDS:
        solver = planned(name, base, "inverse").solver(backend)
        estimate = solver.solve_batch(truth.q, truth.qd, readings(solver.system, truth))
        assert_close(estimate.tau, truth.tau, SOLVED)
        assert_close(estimate.a, a, SOLVED)
        assert_close(estimate.f, f, SOLVED)
        assert_close(estimate.qdd, truth.qdd, SOLVED)
        assert_close(estimate.fx, truth.fx, SOLVED)


@pytest.mark.parametrize(("name", "base"), EVERY)
def test_forward_dynamics(name, base):
    forward_dynamics_exists(name)
    truth, a, f = driven(name, base)
    for backend in BACKENDS:
        solver = planned(name, base, "forward").solver(backend)
        estimate = solver.solve_batch(truth.q, truth.qd, readings(solver.system, truth))
        tolerance = ILL_SOLVED if name in ILL_CONDITIONED else SOLVED
        assert_close(estimate.qdd, truth.qdd, tolerance)
        assert_close(estimate.a, a, tolerance)
        assert_close(estimate.f, f, tolerance)
        assert_close(estimate.tau, truth.tau, tolerance)
        assert_close(estimate.fx, truth.fx, tolerance)
        assert estimate.fell_back.mean() <= 0.05


@pytest.mark.parametrize(
    ("name", "base"),
    [(name, "fixed") for name in ROBOTS] + [(name, "floating") for name in ("anymal", "iCubGenova04")],
)
def test_hybrid_dynamics_swaps_known_and_unknown(name, base):
    forward_dynamics_exists(name)
    truth, a, f = driven(name, base)
    for backend in BACKENDS:
        solver = planned(name, base, "hybrid").solver(backend)
        estimate = solver.solve_batch(truth.q, truth.qd, readings(solver.system, truth))
        tolerance = ILL_SOLVED if name in ILL_CONDITIONED else SOLVED
        assert_close(estimate.tau, truth.tau, tolerance)
        assert_close(estimate.qdd, truth.qdd, tolerance)
        assert_close(estimate.a, a, tolerance)
        assert_close(estimate.f, f, tolerance)


@pytest.mark.parametrize(
    "ordering", [pytest.param("umfpack", marks=needs_umfpack), "superlu", "recursive", "markowitz"]
)
@pytest.mark.parametrize("problem", ["inverse", "forward"])
@pytest.mark.parametrize(
    ("name", "base"),
    [("kinova", "fixed"), ("talos_reduced", "floating")],
)
def test_orderings(name, base, problem, ordering):
    truth, a, f = (led if problem == "inverse" else driven)(name, base)
    made = planned(name, base, problem, ordering)
    assert made.ordering == ordering
    for backend in ("numpy", *(["umfpack"] if has_umfpack() else [])):
        solver = made.solver(backend)
        estimate = solver.solve_batch(truth.q, truth.qd, readings(solver.system, truth))
        assert_close(estimate.tau, truth.tau, SOLVED)
        assert_close(estimate.qdd, truth.qdd, SOLVED)
        assert_close(estimate.a, a, SOLVED)
        assert_close(estimate.f, f, SOLVED)


@pytest.mark.parametrize(("name", "base"), [("panda", "fixed"), ("iCubGenova04", "floating")])
def test_one_state_is_a_batch_of_one(name, base):
    truth = driven(name, base)[0]
    for backend in BACKENDS:
        solver = planned(name, base, "forward").solver(backend)
        Y = readings(solver.system, truth)
        batch = solver.solve_batch(truth.q[:3], truth.qd[:3], Y[:3])
        for k in range(3):
            one = solver.solve(truth.q[k], truth.qd[k], Y[k])
            assert_close(one.qdd, batch.qdd[k], SOLVED)
            assert_close(one.f, batch.f[k], SOLVED)
            assert_close(one.qdd, truth.qdd[k], SOLVED)


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", MASSLESS)
def test_massless_fingers_are_the_cause(name, base):
    tree = robot(name, base)
    weightless = [i for i in range(tree.n_links) if not tree.I[list(tree.subtree(i))].any()]
    assert weightless
    with pytest.raises(SingularSystemError, match="have no inertia") as raised:
        planned(name, base, "forward")
    for i in weightless:
        assert f"link '{tree.names[i]}'" in str(raised.value)
    undetermined = {f"qdd:{tree.joint_names[i]}" for i in weightless}
    assert undetermined <= set(raised.value.undetermined)


def test_table_has_enough_robots():
    assert len(ROBOTS) >= 11
    assert "iCubGenova04" in ROBOTS
