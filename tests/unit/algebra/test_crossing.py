"""A link transform in steps equals their product, in every operation and over every scalar."""

from itertools import product

import numpy as np
import pytest

from nori_dyn.algebra.crossing import Crossing, Step, fixed_plane
from nori_dyn.algebra.expressions import Graph
from nori_dyn.algebra.planar import planar_factors, turn_about
from nori_dyn.algebra.spatial import Transform
from nori_dyn.model.joints import Continuous, Cylindrical, Free, Helical, Planar, Prismatic, Revolute, Spherical
from nori_dyn.model.synthetic import random_tree
from tests.covering import covering
from tests.oracles import evaluate, hat, inputs_of, joint_pose
from tests.tolerances import EXACT, ROUNDING, assert_close

N = 6
SKEWED = (2 / 3, -1 / 3, 2 / 3)
JOINTS = {
    "revolute z": Revolute(),
    "revolute x": Revolute((1.0, 0.0, 0.0)),
    "revolute y reversed": Revolute((0.0, -1.0, 0.0)),
    "revolute skewed": Revolute(SKEWED),
    "continuous": Continuous((0.0, 1.0, 0.0)),
    "prismatic": Prismatic((0.0, 1.0, 0.0)),
    "prismatic skewed": Prismatic(SKEWED),
    "helical": Helical((1.0, 0.0, 0.0), pitch=0.3),
    "helical skewed": Helical(SKEWED, pitch=-0.2),
    "cylindrical": Cylindrical((0.0, 0.0, -1.0)),
    "planar": Planar(),
    "spherical": Spherical(),
    "free": Free(),
}
HALF_TURN = np.diag([1.0, -1.0, -1.0])
PLACES = {
    "nowhere": (np.eye(3), np.zeros(3)),
    "shifted": (np.eye(3), np.array([0.1, -0.2, 0.3])),
    "relabelled": (np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]), np.array([0.0, 0.4, 0.0])),
    "half turn": (HALF_TURN, np.array([0.1, 0.2, 0.3])),
    "mirrored": (turn_about(2, 0.3) @ HALF_TURN, np.array([0.1, 0.2, 0.3])),
    "mirrored back": ((turn_about(2, 0.3) @ HALF_TURN).T, np.array([0.1, 0.2, 0.3])),
    "turned": (turn_about(1, 0.7), np.zeros(3)),
    "anywhere": (turn_about(0, 0.3) @ turn_about(2, -1.1) @ turn_about(1, 2.0), np.array([0.3, 0.2, -0.5])),
}


every_joint = pytest.mark.parametrize("joint", JOINTS.values(), ids=JOINTS)


def crossing_of(joint, place, q):
    """Return the way across a joint at q (nq, ...)."""
    E, r = place
    return Crossing.of(r, planar_factors(E), joint.transform(q), joint.plane)


def configurations(joint, n=N):
    rng = np.random.default_rng(n)
    return np.array([joint.random(rng) for _ in range(n)]).T


def product_of(joint, place, q):
    """Return B_X_A (6, 6) from the pose of the oracle."""
    E, r = place
    R, p = joint_pose(joint, q)
    R, p = E.T @ R, r + E.T @ p
    return np.block([[R.T, np.zeros((3, 3))], [-R.T @ hat(p), R.T]])


def operands(n=N):
    """Return a motion, a force, a matrix and a rigid inertia, each of a batch of n."""
    rng = np.random.default_rng(6)
    I = np.moveaxis(random_tree(n, seed=6).I, 0, -1)
    return rng.normal(size=(6, n)), rng.normal(size=(6, n)), rng.normal(size=(6, 6, n)), I


# name: (of a crossing and the operands, the same by the matrix X)
OPERATIONS = {
    "motion_matrix": (lambda X, m, f, M, I: X.motion_matrix(), lambda X, m, f, M, I: X),
    "product": (lambda X, m, f, M, I: X.X.motion_matrix(), lambda X, m, f, M, I: X),
    "apply_motion": (lambda X, m, f, M, I: X.apply_motion(m), lambda X, m, f, M, I: X @ m),
    "force_to_parent": (lambda X, m, f, M, I: X.force_to_parent(f), lambda X, m, f, M, I: X.T @ f),
    "form_to_parent": (lambda X, m, f, M, I: X.form_to_parent(M), lambda X, m, f, M, I: X.T @ M @ X),
    "form of an inertia": (lambda X, m, f, M, I: X.form_to_parent(I), lambda X, m, f, M, I: X.T @ I @ X),
    "inertia_to_parent": (lambda X, m, f, M, I: X.inertia_to_parent(I), lambda X, m, f, M, I: X.T @ I @ X),
}


@every_joint
def test_every_operation_is_that_of_the_product_on_one_and_on_batches(joint):
    q, values = configurations(joint), operands()
    for place, (ours, theirs) in product(PLACES.values(), OPERATIONS.values()):
        batch = ours(crossing_of(joint, place, q), *values)
        for k in range(N):
            one = [x[..., k] for x in values]
            expected = theirs(product_of(joint, place, q[:, k]), *one)
            assert_close(ours(crossing_of(joint, place, q[:, k]), *one), expected, ROUNDING)
            assert_close(batch[..., k] if batch.ndim > expected.ndim else batch, expected, ROUNDING)
        two = ours(crossing_of(joint, place, q.reshape(-1, 2, 3)), *(x.reshape(*x.shape[:-1], 2, 3) for x in values))
        assert_close(two, batch.reshape(two.shape), ROUNDING)


TEN = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2), (2, 4), (0, 5), (1, 3), (5, 5))
"""Where the ten numbers of a rigid body stand in its inertia: J, the first moment, the mass."""


@covering(strength=1, joint=JOINTS, place=PLACES)
def test_expressions_evaluate_to_the_numbers(joint, place):
    q, values, graph = configurations(joint)[:, 0], [x[..., 0] for x in operands()], Graph(seed=3)
    *given, I = values
    (symbols, *parts, (a, b, c, d, e, f, x, y, z, m)), at = inputs_of(
        graph, q=q, **dict(zip("mfM", given, strict=True)), I=I[*np.transpose(TEN)]
    )
    zero = graph.zero
    rows = [
        [a, b, c, zero, -z, y],
        [b, d, e, z, zero, -x],
        [c, e, f, -y, x, zero],
        [zero, z, -y, m, zero, zero],
        [-z, zero, x, zero, m, zero],
        [y, -x, zero, zero, zero, m],
    ]
    crossing, X = crossing_of(joint, place, symbols), product_of(joint, place, q)
    results = [np.asarray(ours(crossing, *parts, np.array(rows, dtype=object))) for ours, _ in OPERATIONS.values()]
    nodes = [[graph.expr(entry) for entry in result.ravel()] for result in results]
    found = evaluate(graph, at)
    for result, entries, (_, theirs) in zip(results, nodes, OPERATIONS.values(), strict=True):
        numbers = np.array([found[node.index] for node in entries]).reshape(result.shape)
        assert_close(numbers, theirs(X, *values), ROUNDING)


def test_steps_that_do_nothing_are_left_out():
    at_origin = crossing_of(Revolute(), PLACES["nowhere"], np.array([0.3]))
    assert [step.plane for step in at_origin.steps] == [(0, 1)]
    prismatic = crossing_of(Prismatic(), PLACES["shifted"], np.array([0.3]))
    assert [step.plane for step in prismatic.steps] == [None, None]
    nothing = Crossing.of(np.zeros(3), (), Transform.identity(), None)
    assert nothing.steps == ()
    m, f, M, I = operands()
    assert_close(nothing.motion_matrix(), np.eye(6), EXACT)
    for found, given in (
        (nothing.apply_motion(m), m),
        (nothing.force_to_parent(f), f),
        (nothing.form_to_parent(M), M),
        (nothing.inertia_to_parent(I), I),
    ):
        assert_close(found, given, EXACT)


def test_a_step_that_depends_on_anything_is_kept():
    """Even where its numbers happen to do nothing."""
    x = Graph(seed=1).input("x")
    for shift in (np.array([x, 0.0, 0.0], dtype=object), np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])):
        assert not Step(Transform(np.eye(3), shift)).is_identity
    zero = x - x
    assert Step(Transform(np.eye(3), np.array([zero, zero, 0.0], dtype=object))).is_identity
    assert Step(Transform(np.eye(3), np.zeros((3, 4)))).is_identity
    assert not Step(Transform(turn_about(0, 0.1), np.zeros(3)), (1, 2)).is_identity


def test_the_turn_and_the_plane_of_a_step():
    for axis, plane in enumerate([(1, 2), (2, 0), (0, 1)]):
        E = turn_about(axis, 0.4)
        assert fixed_plane(E) == plane
        i, j, c, s = Step(Transform(E, np.zeros(3)), fixed_plane(E)).turn
        assert (i, j) == plane
        assert_close([c, s], [np.cos(0.4), np.sin(0.4)], ROUNDING)
    assert [fixed_plane(E) for E in (np.eye(3), PLACES["relabelled"][0], PLACES["anywhere"][0])] == [None] * 3
    with pytest.raises(TypeError, match="no turn in a plane"):
        _ = Step(Transform(np.eye(3), np.ones(3))).turn
