"""Properties 1 and 2 of the report: D of inverse and forward dynamics is triangular, and solves like the recursions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from nori_dyn.errors import InputError, SingularSystemError, SystemShapeError
from nori_dyn.recursions.triangular import fd_permutations, fd_transformations, id_permutations
from nori_dyn.system.builder import System
from tests.agreement.test_pinocchio import Peer, robot
from tests.oracles import newton_euler
from tests.systems import ACCELERATIONS, PROBLEMS, TORQUES, WRENCHES, hybrid, random_states, readings, sensor_set
from tests.tolerances import RECURSION, ROUNDING, SOLVED, assert_close
from tests.trees import TREES

HEAVY = [name for name in TREES if name != "massless"]
ROBOTS = [(name, base) for name in ("panda", "kinova", "anymal", "talos_reduced") for base in ("fixed", "floating")]
N_STATES = 3


def tree_truth(name):
    """Return a tree, random states, and the oracle's tau at them."""
    tree = TREES[name]
    states = random_states(tree, N_STATES, seed=len(name))
    tau = [
        newton_euler(tree, q, qd, qdd, fx).tau
        for q, qd, qdd, fx in zip(states.q, states.qd, states.qdd, states.fx, strict=True)
    ]
    return tree, states._replace(tau=np.array(tau))


def robot_truth(name, base):
    """Return a robot, random states, and the tau of Pinocchio's rnea at them."""
    tree = robot(name, base)
    states = random_states(tree, N_STATES, seed=len(name))
    return tree, states._replace(tau=Peer(name, tree, base).inverse(states)[0])


def assert_triangular(T):
    """Assert that a matrix is lower triangular, its diagonal of ones but for the signs of the equations."""
    size = np.abs(T).max()
    assert_close(np.triu(T, 1) / size, np.zeros_like(T), ROUNDING)
    assert_close(np.abs(np.diag(T)), np.ones(len(T)), RECURSION)


def assert_is_order(permutations, shape):
    for indices, n in zip(permutations, shape, strict=True):
        assert np.array_equal(np.sort(indices), np.arange(n))


def unknowns(system, kind, d):
    """Return the unknowns of a kind, body by body."""
    return np.concatenate([d[system.column(kind, i)] for i in range(system.tree.n_links)])


def check_inverse(tree, truth):
    system = System(tree, PROBLEMS["inverse"])
    order = id_permutations(system)
    assert_is_order(order, system.shape)
    for k, y in enumerate(readings(system, truth)):
        T = system.D(truth.q[k]).toarray()[order.rows][:, order.columns]
        assert (np.triu(T, 1) == 0).all()
        assert_triangular(T)
        d = np.empty(len(T))
        d[order.columns] = solve_triangular(T, -system.b(truth.q[k], truth.qd[k], y)[order.rows], lower=True)
        assert_close(unknowns(system, "tau", d), truth.tau[k], SOLVED)
        assert_close(unknowns(system, "qdd", d), truth.qdd[k], SOLVED)


def check_forward(tree, truth):
    system = System(tree, PROBLEMS["forward"])
    order = fd_permutations(system)
    assert_is_order(order, system.shape)
    for k, y in enumerate(readings(system, truth)):
        W_L, W_R = fd_transformations(system, truth.q[k])
        T = (W_L @ system.D(truth.q[k]).toarray() @ W_R)[order.rows][:, order.columns]
        assert_triangular(T)
        x = np.empty(len(T))
        x[order.columns] = solve_triangular(T, -(W_L @ system.b(truth.q[k], truth.qd[k], y))[order.rows], lower=True)
        d = W_R @ x
        assert_close(unknowns(system, "qdd", d), truth.qdd[k], SOLVED)
        assert_close(unknowns(system, "tau", d), truth.tau[k], SOLVED)


@pytest.mark.parametrize("name", TREES)
def test_inverse_dynamics_of_trees(name):
    check_inverse(*tree_truth(name))


@pytest.mark.parametrize(("name", "base"), ROBOTS)
def test_inverse_dynamics_of_robots(name, base):
    check_inverse(*robot_truth(name, base))


@pytest.mark.parametrize("name", HEAVY)
def test_forward_dynamics_of_trees(name):
    check_forward(*tree_truth(name))


@pytest.mark.parametrize(("name", "base"), ROBOTS)
def test_forward_dynamics_of_robots(name, base):
    check_forward(*robot_truth(name, base))


@pytest.mark.parametrize("name", HEAVY)
def test_the_transformations_are_unimodular_but_for_the_joints_inertias(name):
    tree = TREES[name]
    system = System(tree, PROBLEMS["forward"])
    q = tree.random_configuration(1)
    W_L, W_R = fd_transformations(system, q)
    n_rows, n_columns = system.shape
    assert W_L.shape == (n_rows, n_rows)
    assert W_R.shape == (n_columns, n_columns)
    assert_close(np.linalg.det(W_R), 1.0, RECURSION)
    assert np.linalg.det(W_L) > 0


def test_forward_dynamics_is_not_triangular_without_the_transformations():
    tree = TREES["autotree_chain"]
    system = System(tree, PROBLEMS["forward"])
    order = fd_permutations(system)
    T = system.D(tree.random_configuration(1)).toarray()[order.rows][:, order.columns]
    assert np.abs(np.triu(T, 1)).max() > 0.1


def forward_system():
    """Return forward dynamics of a chain at a state, with its orders and transformations."""
    tree, states = tree_truth("autotree_chain")
    system = System(tree, PROBLEMS["forward"])
    return system, states, fd_permutations(system), fd_transformations(system, states.q[0])


def test_the_order_34_as_printed_gives_no_triangle():
    """The equations (3tau), from last to first, stand where the readings (14) belong, and these where those do."""
    system, states, (rows, columns), (W_L, W_R) = forward_system()
    names = np.array([row.name.split(":")[0] for row in system.rows for _ in range(row.slice.stop - row.slice.start)])
    printed, at_3tau, at_readings = rows.copy(), names[rows] == "3tau", names[rows] == "tau"
    printed[at_readings], printed[at_3tau] = rows[at_3tau][::-1], rows[at_readings]
    T = (W_L @ system.D(states.q[0]).toarray() @ W_R)[printed][:, columns]
    assert np.abs(np.triu(T, 1)).max() > 0.1
    assert (np.diag(T) == 0).any()


def test_without_the_transformation_of_b_the_answer_is_wrong():
    """The equation after property 2 has b as it is; what is solved has W^L b."""
    system, states, _, (W_L, W_R) = forward_system()
    y = readings(system, states)[0]
    T, b = W_L @ system.D(states.q[0]).toarray() @ W_R, system.b(states.q[0], states.qd[0], y)
    right, printed = (unknowns(system, "qdd", W_R @ np.linalg.solve(T, -part)) for part in (W_L @ b, b))
    assert_close(right, states.qdd[0], SOLVED)
    assert np.abs(printed - states.qdd[0]).max() > 0.1


WRONG = {
    "other problem": (PROBLEMS["forward"], PROBLEMS["inverse"]),
    "hybrid": (hybrid(TREES["mixed_8"], seed=1), hybrid(TREES["mixed_8"], seed=1)),
    "no wrenches": (sensor_set(ACCELERATIONS), sensor_set(TORQUES)),
    "wrenches only": (sensor_set(WRENCHES), sensor_set(WRENCHES)),
    "too many": (sensor_set(ACCELERATIONS, TORQUES, WRENCHES), sensor_set(ACCELERATIONS, TORQUES, WRENCHES)),
    "one joint missing": (
        sensor_set({"type": "joint_acceleration", "joints": ["joint1", "joint2"]}, WRENCHES),
        sensor_set({"type": "joint_torque", "joints": ["joint1", "joint2"]}, WRENCHES),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_sensors_are_refused(name):
    tree = TREES["mixed_8"]
    for permutations, sensors, kinds in zip(
        (id_permutations, fd_permutations), WRONG[name], ("fx and qdd", "fx and tau"), strict=True
    ):
        system = System(tree, sensors)
        with pytest.raises(SystemShapeError, match=f"must read {kinds} of every body, and nothing else") as raised:
            permutations(system)
        assert (raised.value.n_rows, raised.value.n_variables) == system.shape


def test_a_joint_that_moves_no_inertia_is_named():
    tree = TREES["massless"]
    with pytest.raises(SingularSystemError, match="joint 'joint4' moves no inertia"):
        fd_transformations(System(tree, PROBLEMS["forward"]), tree.random_configuration(1))


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (np.zeros(4), r"q has shape \(4,\), expected \(5,\)"),
        (np.full(5, np.nan), r"q\[0\] is nan"),
        ("zero", "q"),
    ],
)
def test_bad_input_is_named(q, message):
    with pytest.raises(InputError, match=message):
        fd_transformations(System(TREES["autotree_chain"], PROBLEMS["forward"]), q)
