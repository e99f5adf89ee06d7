"""Spatial algebra against Pinocchio, on floats, on batches and on expressions."""

from typing import NamedTuple

import numpy as np
import pytest

from nori_dyn.algebra import spatial
from nori_dyn.algebra.expressions import Graph
from nori_dyn.algebra.spatial import Transform
from tests.oracles import evaluate, inputs_of
from tests.peers import pin
from tests.tolerances import ROUNDING, assert_close

N = 4
FLIP = np.r_[3:6, 0:3]
"""Pinocchio puts the linear part first."""


def random_rotation(rng):
    return np.asarray(pin.Quaternion(pin.Quaternion(*rng.normal(size=4)).normalized()).matrix())


class Inputs(NamedTuple):
    """Two transforms, three spatial vectors, a matrix, and the inertia of a rigid body."""

    E: np.ndarray
    r: np.ndarray
    E2: np.ndarray
    r2: np.ndarray
    u: np.ndarray
    v: np.ndarray
    f: np.ndarray
    M: np.ndarray
    I: np.ndarray

    @property
    def X(self):
        return Transform(self.E, self.r)

    @property
    def se3(self):
        """The pose of B in A, whose inverse acts as B_X_A."""
        return pin.SE3(self.E.T, self.r)


def random_inputs(seed):
    rng = np.random.default_rng(seed)
    E, r, E2, r2 = random_rotation(rng), rng.normal(size=3), random_rotation(rng), rng.normal(size=3)
    return Inputs(E, r, E2, r2, *rng.normal(size=(3, 6)), rng.normal(size=(6, 6)), rigid(seed))


def motion(v):
    return pin.Motion(v[FLIP])


def force(f):
    return pin.Force(f[FLIP])


def pin_motion_cross(v):
    """v x (6, 6) by Pinocchio, column by column."""
    return np.array([motion(v).cross(motion(e)).vector[FLIP] for e in np.eye(6)]).T


def pin_force_cross(v):
    """v x* (6, 6) by Pinocchio, column by column."""
    return np.array([motion(v).cross(force(e)).vector[FLIP] for e in np.eye(6)]).T


def pin_X(E, r):
    """B_X_A (6, 6) by Pinocchio."""
    return pin.SE3(E.T, r).toActionMatrixInverse()[np.ix_(FLIP, FLIP)]


def random_rigid_body(seed):
    """Mass, centre of mass (3,), and rotational inertia (3, 3) about it."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 3))
    return rng.uniform(0.1, 5), rng.normal(size=3), A @ A.T


def rigid(seed):
    """The inertia (6, 6) of a random rigid body, by Pinocchio."""
    return pin.Inertia(*random_rigid_body(seed)).matrix()[np.ix_(FLIP, FLIP)]


# name: (over any scalar, by Pinocchio)
OPERATIONS = {
    "apply_motion": (lambda x: x.X.apply_motion(x.u), lambda x: x.se3.actInv(motion(x.u)).vector[FLIP]),
    "motion_matrix": (lambda x: x.X.motion_matrix(), lambda x: pin_X(x.E, x.r)),
    "force_matrix": (
        lambda x: spatial.matvec(x.X.force_matrix(), x.f),
        lambda x: x.se3.actInv(force(x.f)).vector[FLIP],
    ),
    "transpose carries forces back": (
        lambda x: spatial.matvec(np.swapaxes(x.X.motion_matrix(), 0, 1), x.f),
        lambda x: x.se3.act(force(x.f)).vector[FLIP],
    ),
    "inverse": (lambda x: x.X.inverse().motion_matrix(), lambda x: x.se3.toActionMatrix()[np.ix_(FLIP, FLIP)]),
    "product": (
        lambda x: (Transform(x.E2, x.r2) @ x.X).motion_matrix(),
        lambda x: (x.se3 * pin.SE3(x.E2.T, x.r2)).toActionMatrixInverse()[np.ix_(FLIP, FLIP)],
    ),
    "cross_motion": (lambda x: spatial.cross_motion(x.u, x.v), lambda x: motion(x.u).cross(motion(x.v)).vector[FLIP]),
    "cross_force": (lambda x: spatial.cross_force(x.u, x.f), lambda x: motion(x.u).cross(force(x.f)).vector[FLIP]),
    "cross": (lambda x: spatial.cross(x.r, x.r2), lambda x: np.cross(x.r, x.r2)),
    "skew": (lambda x: spatial.skew(x.r), lambda x: pin.skew(x.r)),
    "matmul": (lambda x: spatial.matmul(x.E, x.E2), lambda x: x.E @ x.E2),
    "force_to_parent": (lambda x: x.X.force_to_parent(x.f), lambda x: x.se3.act(force(x.f)).vector[FLIP]),
    "form_to_parent": (lambda x: x.X.form_to_parent(x.M), lambda x: pin_X(x.E, x.r).T @ x.M @ pin_X(x.E, x.r)),
    "form_to_parent of an inertia": (
        lambda x: x.X.form_to_parent(x.I),
        lambda x: pin_X(x.E, x.r).T @ x.I @ pin_X(x.E, x.r),
    ),
    "inertia_to_parent": (lambda x: x.X.inertia_to_parent(x.I), lambda x: pin_X(x.E, x.r).T @ x.I @ pin_X(x.E, x.r)),
    "cross_motion_matrix": (lambda x: spatial.cross_motion_matrix(x.u), lambda x: pin_motion_cross(x.u)),
    "cross_force_matrix": (lambda x: spatial.cross_force_matrix(x.u), lambda x: pin_force_cross(x.u)),
    "force_cross_matrix": (
        lambda x: spatial.force_cross_matrix(x.f),
        lambda x: np.array([pin_force_cross(e) @ x.f for e in np.eye(6)]).T,
    ),
    "rigid_inertia of rigid_parts": (lambda x: spatial.rigid_inertia(*spatial.rigid_parts(x.I)), lambda x: x.I),
}
every_operation = pytest.mark.parametrize(("ours", "theirs"), OPERATIONS.values(), ids=OPERATIONS)


@every_operation
def test_operation_equals_pinocchio_on_one_and_on_batches_of_which_a_part_may_be_constant(ours, theirs):
    singles = [random_inputs(seed) for seed in range(6)]
    batch = [np.stack(parts, axis=-1) for parts in zip(*singles, strict=True)]
    expected = np.stack([theirs(inputs) for inputs in singles], axis=-1)
    for k, inputs in enumerate(singles):
        assert_close(ours(inputs), expected[..., k], ROUNDING)
    assert_close(ours(Inputs(*batch)), expected, ROUNDING)
    two = Inputs(*(x.reshape(*x.shape[:-1], 2, 3) for x in batch))
    assert_close(ours(two), expected.reshape(*expected.shape[:-1], 2, 3), ROUNDING)
    for constant in ("E", "r", "E r", "E2 r2", "u", "f", "E r2", "M"):
        same = {field: getattr(singles[0], field) for field in constant.split()}
        result = ours(Inputs(*batch)._replace(**same))
        expected = np.stack([ours(inputs._replace(**same)) for inputs in singles], axis=-1)
        if result.ndim < expected.ndim:  # nothing of it depends on the batch
            result = np.repeat(result[..., None], len(singles), axis=-1)
        assert_close(result, expected, ROUNDING)


@every_operation
def test_operation_on_expressions_evaluates_to_that_on_floats(ours, theirs):
    inputs, graph = random_inputs(5), Graph(seed=4)
    arrays, at = inputs_of(graph, **inputs._asdict())
    symbols = Inputs(*arrays)
    I = symbols.I  # of a rigid body: ten of its entries
    h = (I[2, 4], I[0, 5], I[1, 3])
    I[:3, 3:], I[3:, :3], I[3:, 3:] = spatial.skew(h), -spatial.skew(h), np.eye(3) * np.asarray(I[5, 5])
    result = ours(symbols)
    nodes = [graph.expr(entry) for entry in result.ravel()]
    values = evaluate(graph, at)
    assert_close(np.reshape([values[node.index] for node in nodes], result.shape), theirs(inputs), ROUNDING)


def test_identity_inverse_and_zeros():
    X = random_inputs(7).X
    for product in (X @ X.inverse(), X.inverse() @ X, Transform.identity()):
        assert_close(product.motion_matrix(), np.eye(6), ROUNDING)
    assert_close(X.force_matrix(), np.linalg.inv(X.motion_matrix()).T, ROUNDING)
    assert spatial.zeros((6,), np.array([1, 2])).dtype == float
    assert spatial.zeros((6,), np.zeros((2, 5))).shape == (6, 5)
    assert spatial.zeros((6, 3), np.array([Graph().one])).dtype == object


def test_products_of_angular_velocity_are_cross_products():
    rng = np.random.default_rng(5)
    for shape in ((), (N,)):
        w, r, A = rng.normal(size=(3, *shape)), rng.normal(size=(3, *shape)), rng.normal(size=(3, 3))
        assert_close(spatial.centripetal(w, r), np.cross(w.T, np.cross(w.T, r.T)).T, ROUNDING)
        assert_close(spatial.gyroscopic(w, A @ A.T), np.cross(w.T, w.T @ A @ A.T).T, ROUNDING)


def test_parts_of_a_rigid_inertia():
    for seed in range(5):
        mass, com, I_com = random_rigid_body(seed)
        J, h, m = spatial.rigid_parts(rigid(seed))
        assert_close(m, mass, ROUNDING)
        assert_close(h, mass * com, ROUNDING)
        assert_close(J, I_com + mass * (com @ com * np.eye(3) - np.outer(com, com)), ROUNDING)
        assert_close(spatial.spatial_inertia(mass, com, I_com), rigid(seed), ROUNDING)


def test_an_inertia_stays_rigid_and_exactly_symmetric_on_its_way_to_the_parent():
    for seed in range(5):
        X, I = (inputs := random_inputs(seed)).X, inputs.I
        moved = X.inertia_to_parent(I)
        J, h, m = spatial.rigid_parts(moved)
        assert m == I[5, 5]
        assert_close(moved[:3, 3:], pin.skew(h), ROUNDING)
        assert_close(J, J.T, ROUNDING)
        assert_close(X.inverse().inertia_to_parent(moved), I, ROUNDING)


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
