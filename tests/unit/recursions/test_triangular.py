"""Properties 1 and 2 of the report: D of inverse and forward dynamics is triangular, and solves like the recursions."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from nori_dyn.errors import InputError, SingularSystemError, SystemShapeError
from nori_dyn.recursions.triangular import fd_permutations, fd_transformations, id_permutations
from nori_dyn.system.builder import System
from tests.systems import ACCELERATIONS, PROBLEMS, TORQUES, WRENCHES, hybrid, readings, sensor_set
from tests.tolerances import RECURSION, ROUNDING, SOLVED, assert_close
from tests.trees import TREES
from tests.unit.recursions.test_rnea import motions

N_STATES = 3


def tree_truth(name):
    """A tree, random states, and the oracle's tau at them."""
    truth, _ = motions(name)
    return TREES[name], truth._make(np.moveaxis(x, -1, 0)[:N_STATES] for x in truth)


def unknowns(system, kind, d):
    """The unknowns of a kind, body by body."""
    return np.concatenate([d[system.column(kind, i)] for i in range(system.tree.n_links)])


def check(tree, truth, problem):
    """Check that the system is triangular in its orders, with ones on its diagonal but for signs, and what it gives."""
    system = System(tree, PROBLEMS[problem])
    rows, columns = id_permutations(system) if problem == "inverse" else fd_permutations(system)
    for indices, n in zip((rows, columns), system.shape, strict=True):
        assert np.array_equal(np.sort(indices), np.arange(n))
    for k, y in enumerate(readings(system, truth)):
        W_L = W_R = np.eye(len(rows))
        if problem == "forward":
            W_L, W_R = fd_transformations(system, truth.q[k])
            assert (W_L.shape, W_R.shape) == tuple((size, size) for size in system.shape)
            assert_close(np.linalg.det(W_R), 1.0, RECURSION)
            assert np.linalg.slogdet(W_L).sign > 0
        T = (W_L @ system.D(truth.q[k]).toarray() @ W_R)[rows][:, columns]
        assert problem == "forward" or (np.triu(T, 1) == 0).all()
        assert_close(np.triu(T, 1) / np.abs(T).max(), np.zeros_like(T), ROUNDING)
        assert_close(np.abs(np.diag(T)), np.ones(len(T)), RECURSION)
        x = np.empty(len(T))
        x[columns] = solve_triangular(T, -(W_L @ system.b(truth.q[k], truth.qd[k], y))[rows], lower=True)
        for kind in ("qdd", "tau"):
            assert_close(unknowns(system, kind, W_R @ x), getattr(truth, kind)[k], SOLVED)


@pytest.mark.parametrize("name", TREES)
def test_inverse_and_forward_dynamics_of_trees(name):
    tree, truth = tree_truth(name)
    check(tree, truth, "inverse")
    if name == "massless":
        with pytest.raises(SingularSystemError, match="joint 'joint4' moves no inertia"):
            check(tree, truth, "forward")
    else:
        check(tree, truth, "forward")


def test_forward_dynamics_is_not_triangular_without_the_transformations():
    tree = TREES["autotree_chain"]
    system = System(tree, PROBLEMS["forward"])
    order = fd_permutations(system)
    T = system.D(tree.random_configuration(1)).toarray()[order.rows][:, order.columns]
    assert np.abs(np.triu(T, 1)).max() > 0.1


def forward_system():
    """Forward dynamics of a chain at a state, with its orders and transformations."""
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


@pytest.mark.parametrize(
    ("find", "own", "kinds"),
    [(id_permutations, ACCELERATIONS, "fx and qdd"), (fd_permutations, TORQUES, "fx and tau")],
    ids=["inverse", "forward"],
)
def test_other_sensors_are_refused(find, own, kinds):
    tree, (other,) = TREES["mixed_8"], (each for each in (ACCELERATIONS, TORQUES) if each != own)
    some = own | {"joints": ["joint1", "joint2"]}
    for entries in ([other, WRENCHES], [own], [WRENCHES], [own, other, WRENCHES], [some, WRENCHES], None):
        system = System(tree, hybrid(tree, seed=1) if entries is None else sensor_set(*entries))
        with pytest.raises(SystemShapeError, match=f"must read {kinds} of every body, and nothing else") as raised:
            find(system)
        assert (raised.value.n_rows, raised.value.n_variables) == system.shape


def test_bad_input_is_named():
    system = System(TREES["autotree_chain"], PROBLEMS["forward"])
    for q, message in ((np.zeros(4), r"q has shape \(4,\), expected \(5,\)"), ([np.nan] * 5, r"q\[0\] is nan")):
        with pytest.raises(InputError, match=message):
            fd_transformations(system, q)
