"""Every peer answers as we do, on a robot that is written for it as a URDF."""

from itertools import product

import numpy as np
import pytest

import nori_dyn as nd
from benchmarks.harness import TOLERANCE, difference
from benchmarks.mechanisms import biped
from benchmarks.peers.base import UnsuitableError
from benchmarks.peers.registry import MANY, PEERS
from benchmarks.robots import Robot, random_states
from benchmarks.suites.trackers import kalman_filters
from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import CompilerError
from nori_dyn.model.closure import gap_rate, gaps
from nori_dyn.model.joints import Free
from nori_dyn.model.kinematics import positions
from nori_dyn.model.synthetic import random_tree
from nori_dyn.recursions.aba import aba
from nori_dyn.recursions.coriolis import coriolis
from nori_dyn.recursions.crba import crba
from nori_dyn.recursions.derivatives import aba_derivatives, rnea_derivatives
from nori_dyn.recursions.minverse import minverse
from nori_dyn.recursions.rnea import rnea
from tests.mechanisms import forward_dynamics

ARM = random_tree(4, 1, kinds=("revolute",))
TREES = {
    "fixed": ARM,
    "floating": ARM.replace(
        parents=(-1, 0, 1, 1), joints=(Free(), *ARM.joints[1:]), X_tree=(Transform.identity(), *ARM.X_tree[1:])
    ),
}
EXPECTED = {
    "inverse_dynamics": rnea,
    "forward_dynamics": aba,
    "rnea": rnea,
    "aba": aba,
    "crba": lambda tree, q, qd, y: crba(tree, q),
    "minverse": lambda tree, q, qd, y: minverse(tree, q),
    "coriolis": lambda tree, q, qd, y: coriolis(tree, q, qd).C @ qd,
    "rnea derivatives": lambda *state: np.concatenate(rnea_derivatives(*state)),
    "aba derivatives": lambda *state: np.concatenate(aba_derivatives(*state)),
}


@pytest.mark.parametrize("name", [name for name, peer in PEERS.items() if "constrained_dynamics" in peer.tasks])
def test_a_peer_moves_the_biped_with_loops_as_we_do(name):
    tree = biped()
    states = random_states(tree, 1, 0)
    found = PEERS[name].tasks["constrained_dynamics"](Robot("x", "floating", tree), states)
    expected, _ = forward_dynamics(tree, states.q[0], states.qd[0], states.y[0])
    assert difference(found.answer(), expected) < TOLERANCE


def test_the_bipeds_loops_are_closed_at_its_neutral_configuration_and_none_of_their_rows_repeats_others():
    tree = biped()
    at = positions(tree, tree.neutral_configuration())
    assert np.abs(gaps(at)).max() < 1e-12
    rates = np.linalg.svd(gap_rate(at), compute_uv=False)
    assert rates[-1] > 1e-2 * rates[0]
    assert len(rates) == 12


def tasks_of(name: str) -> list[str]:
    return [task for task in PEERS[name].tasks if task in EXPECTED]


@pytest.mark.parametrize("name", [name for name in PEERS if tasks_of(name)])
def test_a_peer_answers_as_we_do(name):
    peer, answers = PEERS[name], 0
    if not peer.is_available:
        pytest.skip(f"{peer.package} is not installed")
    for (base, tree), task in product(TREES.items(), tasks_of(name)):
        states = random_states(tree, 2, 0)
        try:
            found = peer.tasks[task](Robot("x", base, tree), states)
        except UnsuitableError:
            continue
        answers += 1
        expected = EXPECTED[task](tree, states.q[0], states.qd[0], states.y[0])
        assert difference(found.answer(), np.asarray(expected)) < TOLERANCE, (base, task)
        found.call()
    assert answers


@pytest.mark.parametrize("peer", MANY.values(), ids=lambda peer: peer.name)
def test_a_peer_answers_for_many_states_as_we_do(peer):
    if not peer.is_available:
        pytest.skip(f"{peer.package} is not installed")
    for (base, tree), task in product(TREES.items(), ("inverse_dynamics", "forward_dynamics")):
        states = random_states(tree, 3, 0)
        try:
            run = peer.tasks[task](Robot("x", base, tree), states)
        except CompilerError as error:
            pytest.skip(str(error))
        expected = [EXPECTED[task](tree, *state) for state in zip(states.q, states.qd, states.y, strict=True)]
        assert difference(run.answer(), np.array(expected)) < run.tolerance, (base, task)
        run.call()
        assert run.states % 3 == 0


def test_the_kalman_filters_of_textbooks_agree_in_c_and_numpy():
    """`kalman_filters` compares mean and covariance after fifty ticks."""
    plan = nd.plan(nd.System(ARM.replace(components=()), "momentum_observer"), outputs=["offset"])
    for run in kalman_filters(plan, 0.001).values():
        run.call()
