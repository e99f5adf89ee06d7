"""Spatial algebra against Pinocchio, on floats, on batches and on expressions."""

from __future__ import annotations

import numpy as np
import pytest

from nori_dyn.algebra import spatial
from nori_dyn.algebra.expressions import Graph
from nori_dyn.algebra.spatial import Transform
from tests.oracles import evaluate
from tests.peers import pin
from tests.tolerances import ROUNDING, assert_close

N = 4
FLIP = np.r_[3:6, 0:3]
"""Pinocchio puts the linear part first."""


def random_rotation(rng):
    return np.asarray(pin.Quaternion(pin.Quaternion(*rng.normal(size=4)).normalized()).matrix())


def random_inputs(seed):
    """Return E, r, second E, second r, and three spatial vectors."""
    rng = np.random.default_rng(seed)
    return (
        random_rotation(rng),
        rng.normal(size=3),
        random_rotation(rng),
        rng.normal(size=3),
        *rng.normal(size=(3, 6)),
    )


def se3(E, r):
    """Return the pose of B in A, whose inverse acts as B_X_A."""
    return pin.SE3(E.T, r)


def motion(v):
    return pin.Motion(v[FLIP])


def force(f):
    return pin.Force(f[FLIP])


# name: (over any scalar, by Pinocchio)
OPERATIONS = {
    "apply_motion": (
        lambda E, r, E2, r2, u, v, f: Transform(E, r).apply_motion(u),
        lambda E, r, E2, r2, u, v, f: se3(E, r).actInv(motion(u)).vector[FLIP],
    ),
    "motion_matrix": (
        lambda E, r, *_: Transform(E, r).motion_matrix(),
        lambda E, r, *_: se3(E, r).toActionMatrixInverse()[np.ix_(FLIP, FLIP)],
    ),
    "force_matrix": (
        lambda E, r, E2, r2, u, v, f: spatial.matvec(Transform(E, r).force_matrix(), f),
        lambda E, r, E2, r2, u, v, f: se3(E, r).actInv(force(f)).vector[FLIP],
    ),
    "transpose carries forces back": (
        lambda E, r, E2, r2, u, v, f: spatial.matvec(np.swapaxes(Transform(E, r).motion_matrix(), 0, 1), f),
        lambda E, r, E2, r2, u, v, f: se3(E, r).act(force(f)).vector[FLIP],
    ),
    "inverse": (
        lambda E, r, *_: Transform(E, r).inverse().motion_matrix(),
        lambda E, r, *_: se3(E, r).toActionMatrix()[np.ix_(FLIP, FLIP)],
    ),
    "product": (
        lambda E, r, E2, r2, *_: (Transform(E2, r2) @ Transform(E, r)).motion_matrix(),
        lambda E, r, E2, r2, *_: (se3(E, r) * se3(E2, r2)).toActionMatrixInverse()[np.ix_(FLIP, FLIP)],
    ),
    "cross_motion": (
        lambda E, r, E2, r2, u, v, f: spatial.cross_motion(u, v),
        lambda E, r, E2, r2, u, v, f: motion(u).cross(motion(v)).vector[FLIP],
    ),
    "cross_force": (
        lambda E, r, E2, r2, u, v, f: spatial.cross_force(u, f),
        lambda E, r, E2, r2, u, v, f: motion(u).cross(force(f)).vector[FLIP],
    ),
    "cross": (
        lambda E, r, E2, r2, *_: spatial.cross(r, r2),
        lambda E, r, E2, r2, *_: np.cross(r, r2),
    ),
    "skew": (
        lambda E, r, *_: spatial.skew(r),
        lambda E, r, *_: pin.skew(r),
    ),
    "matmul": (
        lambda E, r, E2, *_: spatial.matmul(E, E2),
        lambda E, r, E2, *_: E @ E2,
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_equals_pinocchio(name):
    ours, theirs = OPERATIONS[name]
    for seed in range(10):
        inputs = random_inputs(seed)
        assert_close(ours(*inputs), theirs(*inputs), ROUNDING)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_on_a_batch_is_that_on_each(name):
    ours, _ = OPERATIONS[name]
    singles = [random_inputs(seed) for seed in range(N)]
    batch = [np.stack(parts, axis=-1) for parts in zip(*singles, strict=True)]
    assert_close(ours(*batch), np.stack([ours(*inputs) for inputs in singles], axis=-1), ROUNDING)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("constant", [(0,), (1,), (0, 1), (2, 3), (4,), (6,), (0, 3)])
def test_what_is_constant_may_lack_the_batch_axis(name, constant):
    ours, _ = OPERATIONS[name]
    singles = [list(random_inputs(seed)) for seed in range(N)]
    for inputs in singles:
        for k in constant:
            inputs[k] = singles[0][k]
    batch = [
        singles[0][k] if k in constant else np.stack(parts, axis=-1)
        for k, parts in enumerate(zip(*singles, strict=True))
    ]
    result = ours(*batch)
    expected = np.stack([ours(*inputs) for inputs in singles], axis=-1)
    if result.ndim < expected.ndim:  # nothing of it depends on the batch
        result = np.repeat(result[..., None], N, axis=-1)
    assert_close(result, expected, ROUNDING)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_on_expressions_evaluates_to_that_on_floats(name):
    ours, _ = OPERATIONS[name]
    inputs = random_inputs(5)
    graph, at, symbols = Graph(seed=4), {}, []
    for k, values in enumerate(inputs):
        array = np.empty(values.shape, dtype=object)
        for place, value in np.ndenumerate(values):
            array[place] = graph.input(f"{k}{place}")
            at[array[place].index] = value
        symbols.append(array)
    result = ours(*symbols)
    values = evaluate(graph, at)
    numbers = np.array([values[graph.expr(entry).index] for entry in result.ravel()]).reshape(result.shape)
    assert_close(numbers, ours(*inputs), ROUNDING)


def test_identity_and_inverse():
    E, r, *_ = random_inputs(7)
    X = Transform(E, r)
    for product in (X @ X.inverse(), X.inverse() @ X, Transform.identity()):
        assert_close(product.motion_matrix(), np.eye(6), ROUNDING)
    assert_close(X.force_matrix(), np.linalg.inv(X.motion_matrix()).T, ROUNDING)


def test_spatial_inertia_equals_pinocchio():
    rng = np.random.default_rng(8)
    for _ in range(5):
        A = rng.normal(size=(3, 3))
        mass, com, I_com = rng.uniform(0.1, 5), rng.normal(size=3), A @ A.T
        expected = pin.Inertia(mass, com, I_com).matrix()[np.ix_(FLIP, FLIP)]
        assert_close(spatial.spatial_inertia(mass, com, I_com), expected, ROUNDING)


def test_zeros_of_integers_are_floats():
    assert spatial.zeros((6,), np.array([1, 2])).dtype == float
    assert spatial.zeros((6,), np.zeros((2, 5))).shape == (6, 5)
    assert spatial.zeros((6, 3), np.array([Graph().one])).dtype == object


@pytest.mark.parametrize("shape", [(), (N,)])
def test_products_of_angular_velocity_are_cross_products(shape):
    rng = np.random.default_rng(5)
    w, r, A = rng.normal(size=(3, *shape)), rng.normal(size=(3, *shape)), rng.normal(size=(3, 3))
    I = A @ A.T
    assert_close(spatial.centripetal(w, r), np.cross(w.T, np.cross(w.T, r.T)).T, ROUNDING)
    assert_close(spatial.gyroscopic(w, I), np.cross(w.T, w.T @ I).T, ROUNDING)


def pin_motion_cross(v):
    """Return v x (6, 6) by Pinocchio, column by column."""
    return np.array([motion(v).cross(motion(e)).vector[FLIP] for e in np.eye(6)]).T


def pin_force_cross(v):
    """Return v x* (6, 6) by Pinocchio, column by column."""
    return np.array([motion(v).cross(force(e)).vector[FLIP] for e in np.eye(6)]).T


def pin_X(E, r):
    """Return B_X_A (6, 6) by Pinocchio."""
    return se3(E, r).toActionMatrixInverse()[np.ix_(FLIP, FLIP)]


def random_rigid_body(seed):
    """Return mass, centre of mass (3,), and rotational inertia (3, 3) about it."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 3))
    return rng.uniform(0.1, 5), rng.normal(size=3), A @ A.T


def rigid(seed):
    """Return the inertia (6, 6) of a random rigid body, by Pinocchio."""
    return pin.Inertia(*random_rigid_body(seed)).matrix()[np.ix_(FLIP, FLIP)]


# name: (over any scalar, by Pinocchio), of E, r, two spatial vectors, a matrix and a rigid inertia
MATRIX_OPERATIONS = {
    "force_to_parent": (
        lambda E, r, u, f, M, I: Transform(E, r).force_to_parent(f),
        lambda E, r, u, f, M, I: se3(E, r).act(force(f)).vector[FLIP],
    ),
    "form_to_parent": (
        lambda E, r, u, f, M, I: Transform(E, r).form_to_parent(M),
        lambda E, r, u, f, M, I: pin_X(E, r).T @ M @ pin_X(E, r),
    ),
    "form_to_parent of an inertia": (
        lambda E, r, u, f, M, I: Transform(E, r).form_to_parent(I),
        lambda E, r, u, f, M, I: pin_X(E, r).T @ I @ pin_X(E, r),
    ),
    "inertia_to_parent": (
        lambda E, r, u, f, M, I: Transform(E, r).inertia_to_parent(I),
        lambda E, r, u, f, M, I: pin_X(E, r).T @ I @ pin_X(E, r),
    ),
    "cross_motion_matrix": (
        lambda E, r, u, f, M, I: spatial.cross_motion_matrix(u),
        lambda E, r, u, f, M, I: pin_motion_cross(u),
    ),
    "cross_force_matrix": (
        lambda E, r, u, f, M, I: spatial.cross_force_matrix(u),
        lambda E, r, u, f, M, I: pin_force_cross(u),
    ),
    "force_cross_matrix": (
        lambda E, r, u, f, M, I: spatial.force_cross_matrix(f),
        lambda E, r, u, f, M, I: np.array([pin_force_cross(e) @ f for e in np.eye(6)]).T,
    ),
    "rigid_inertia of rigid_parts": (
        lambda E, r, u, f, M, I: spatial.rigid_inertia(*spatial.rigid_parts(I)),
        lambda E, r, u, f, M, I: I,
    ),
}


def matrix_inputs(seed):
    rng = np.random.default_rng(seed)
    return random_rotation(rng), rng.normal(size=3), *rng.normal(size=(2, 6)), rng.normal(size=(6, 6)), rigid(seed)


@pytest.mark.parametrize("name", MATRIX_OPERATIONS)
def test_matrix_operation_equals_pinocchio(name):
    ours, theirs = MATRIX_OPERATIONS[name]
    for seed in range(10):
        inputs = matrix_inputs(seed)
        assert_close(ours(*inputs), theirs(*inputs), ROUNDING)


@pytest.mark.parametrize("name", MATRIX_OPERATIONS)
def test_matrix_operation_on_a_batch_is_that_on_each(name):
    ours, theirs = MATRIX_OPERATIONS[name]
    singles = [matrix_inputs(seed) for seed in range(6)]
    batch = [np.stack(parts, axis=-1) for parts in zip(*singles, strict=True)]
    expected = np.stack([theirs(*inputs) for inputs in singles], axis=-1)
    assert_close(ours(*batch), expected, ROUNDING)
    two = [x.reshape(*x.shape[:-1], 2, 3) for x in batch]
    assert_close(ours(*two), expected.reshape(*expected.shape[:-1], 2, 3), ROUNDING)


@pytest.mark.parametrize("name", MATRIX_OPERATIONS)
def test_matrix_operation_on_expressions_evaluates_to_that_on_floats(name):
    ours, theirs = MATRIX_OPERATIONS[name]
    inputs = matrix_inputs(5)
    graph, at, symbols = Graph(seed=4), {}, []
    for k, values in enumerate(inputs):
        array = np.empty(values.shape, dtype=object)
        for place, value in np.ndenumerate(values):
            array[place] = graph.input(f"{k}{place}")
            at[array[place].index] = value
        symbols.append(array)
    I = symbols[-1]  # of a rigid body: ten of its entries
    h = (I[2, 4], I[0, 5], I[1, 3])
    I[:3, 3:], I[3:, :3], I[3:, 3:] = spatial.skew(h), -spatial.skew(h), np.eye(3) * np.asarray(I[5, 5])
    result = ours(*symbols)
    nodes = [graph.expr(entry) for entry in result.ravel()]
    values = evaluate(graph, at)
    numbers = np.array([values[node.index] for node in nodes]).reshape(result.shape)
    assert_close(numbers, theirs(*inputs), ROUNDING)


def test_parts_of_a_rigid_inertia():
    for seed in range(5):
        mass, com, I_com = random_rigid_body(seed)
        J, h, m = spatial.rigid_parts(rigid(seed))
        assert_close(m, mass, ROUNDING)
        assert_close(h, mass * com, ROUNDING)
        assert_close(J, I_com + mass * (com @ com * np.eye(3) - np.outer(com, com)), ROUNDING)


def test_an_inertia_stays_rigid_and_exactly_symmetric_on_its_way_to_the_parent():
    for seed in range(5):
        E, r, *_, I = matrix_inputs(seed)
        moved = Transform(E, r).inertia_to_parent(I)
        J, h, m = spatial.rigid_parts(moved)
        assert m == I[5, 5]
        assert_close(moved[:3, 3:], pin.skew(h), ROUNDING)
        assert_close(J, J.T, ROUNDING)
        assert_close(Transform(E, r).inverse().inertia_to_parent(moved), I, ROUNDING)


def test_a_pure_shift_carries_a_batch():
    r, I, M = np.array([0.1, -0.2, 0.3]), np.stack([rigid(k) for k in range(N)], -1), np.ones((6, 6, N))
    X = pin_X(np.eye(3), r)
    shift = Transform(np.eye(3), r)
    assert_close(shift.inertia_to_parent(I), np.einsum("ki,klN,lj->ijN", X, I, X), ROUNDING)
    assert_close(shift.force_to_parent(I[0]), X.T @ I[0], ROUNDING)
    spread = Transform(np.repeat(np.eye(3)[..., None], N, -1), np.repeat(r[:, None], N, -1))
    assert_close(spread.form_to_parent(M), np.einsum("ki,klN,lj->ijN", X, M, X), ROUNDING)
    assert_close(spread.inertia_to_parent(I), shift.inertia_to_parent(I), ROUNDING)


def test_products_of_one_vector_and_many_columns():
    """As a velocity (6, 1, N) times a motion subspace (6, n, N), and a velocity (6, 1) times a constant one."""
    rng = np.random.default_rng(8)
    v, S, S_N = rng.normal(size=(6, N)), rng.normal(size=(6, 3)), rng.normal(size=(6, 3, N))
    for k in range(N):
        crossed = pin_motion_cross(v[:, k])
        assert_close(spatial.cross_motion(v[:, None, k], S), crossed @ S, ROUNDING)
        assert_close(spatial.cross_motion(v[:, None], S_N)[..., k], crossed @ S_N[..., k], ROUNDING)
