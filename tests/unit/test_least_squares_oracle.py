"""The oracles of estimation: extended-precision least squares against mpmath, BERDY against it and Newton's laws."""

from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest

import nori_dyn as nd
from tests.berdy import Berdy, normal_matrix, released
from tests.least_squares import constrained_least_squares, orthogonal_factors
from tests.oracles import newton_euler
from tests.robots import ROBOTS, load
from tests.systems import sensor_set


def exact(D, b, Y, c, w):
    """Return d and P of the same problem from its KKT matrix [H D^T; D 0], H = Y^T W Y, in 60 digits."""
    with mp.workdps(60):
        m, n = D.shape
        Y, c = mp.matrix(Y.tolist()), mp.matrix(c.tolist())
        WY = mp.diag([mp.mpf(x) for x in w]) * Y
        K = mp.zeros(n + m)
        K[:n, :n] = Y.T * WY
        right = mp.matrix(n + m, 1)
        right[:n, 0] = -(WY.T * c)
        if m:
            D = mp.matrix(D.tolist())
            K[n:, :n], K[:n, n:], right[n:, 0] = D, D.T, -mp.matrix(b.tolist())
        inverse = K**-1
        solution = inverse * right
        numbers = np.array([np.longdouble(mp.nstr(x, 25)) for x in solution])
        P = np.array([[np.longdouble(mp.nstr(inverse[i, j], 25)) for j in range(n)] for i in range(n)])
        return numbers[:n], numbers[n:], P


@pytest.mark.parametrize(("n", "m", "k"), [(5, 0, 9), (8, 3, 5), (14, 6, 25), (34, 33, 5)])
def test_it_is_the_exact_minimiser(n, m, k):
    """With weights over 1e-3..1e6: nineteen digits are carried, and at most four are lost."""
    rng = np.random.default_rng(n)
    D, b = rng.normal(size=(m, n)), rng.normal(size=m)
    Y, c = rng.normal(size=(k, n)), rng.normal(size=k)
    w = 10 ** rng.uniform(-3, 6, k)
    found = constrained_least_squares(D, b, Y, c, w)
    d, multipliers, P = exact(D, b, Y, c, w)
    assert np.linalg.norm(found.d - d) <= 1e-15 * np.linalg.norm(d)
    gradient_terms = np.abs(Y.T) @ (w * (np.abs(Y) @ np.abs(d) + np.abs(c)))
    assert np.linalg.norm(found.multipliers - multipliers) <= 1e-14 * np.linalg.norm(gradient_terms)
    assert np.linalg.norm(found.covariance - P) <= 1e-14 * np.linalg.norm(P)
    np.testing.assert_allclose(found.residual, Y @ d + c, rtol=0, atol=1e-14 * np.abs(c).max() * np.abs(Y).max() * 100)


def test_a_column_of_small_consequence_keeps_its_digits():
    """Nearly dependent rows: condition 1e8, whose square is beyond the normal equations in double precision."""
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.normal(size=(s, 12)))[0] for s in (30, 12))
    Y = U * np.logspace(0, -8, 12) @ V.T
    D, b, w = rng.normal(size=(2, 12)), rng.normal(size=2), np.ones(30)
    c = Y @ rng.normal(size=12) + 1e-8 * rng.normal(size=30)
    d, _, _ = exact(D, b, Y, c, w)
    assert np.linalg.norm(constrained_least_squares(D, b, Y, c, w).d - d) <= 1e-9 * np.linalg.norm(d)


def test_factors():
    """A P = Q R with an orthogonal Q, over more than one block of reflectors."""
    A = np.random.default_rng(1).normal(size=(90, 70))
    factors = orthogonal_factors(A)
    Q = factors.Q_times(np.eye(90, dtype=np.longdouble))
    np.testing.assert_allclose((Q.T @ Q).astype(float), np.eye(90), atol=1e-17)
    np.testing.assert_allclose((Q[:, :70] @ factors.R - A[:, factors.order]).astype(float), 0, atol=1e-16)
    np.testing.assert_allclose(factors.QT_times(Q).astype(float), np.eye(90), atol=1e-17)
    assert factors.rank == 70


def test_what_is_not_determined_is_refused():
    rng = np.random.default_rng(2)
    Y, c = rng.normal(size=(8, 6)), np.zeros(8)
    with pytest.raises(np.linalg.LinAlgError, match="2 constraints of rank 1"):
        constrained_least_squares(np.ones((2, 6)), np.zeros(2), Y, c, np.ones(8))
    Y[:, 0] = Y[:, 1]
    with pytest.raises(np.linalg.LinAlgError, match="determine 5 of the 6"):
        constrained_least_squares(np.zeros((0, 6)), np.zeros(0), Y, c, np.ones(8))


@pytest.fixture(scope="module")
def panda():
    """Return BERDY of a robot with a fixed base, whose torques can be read, and the robot."""
    return Berdy(ROBOTS["panda"], "fixed", torques=True), load("panda", clean=False)


@pytest.fixture(scope="module")
def icub(tmp_path_factory):
    """iCub with the links that its six force-torque sensors split: on joints that turn, and that we keep still."""
    berdy = Berdy(ROBOTS["iCubGenova04"])
    path = tmp_path_factory.mktemp("urdf") / "icub.urdf"
    robot = nd.load_urdf(released(ROBOTS["iCubGenova04"], still(berdy), path), base="floating", clean=False)
    return berdy, berdy.with_sensor_frames(robot)


each_robot = pytest.mark.parametrize("name", ["panda", pytest.param("icub", marks=pytest.mark.long)])


def still(berdy):
    """Return the joints without freedoms: with a floating base those in which its force-torque sensors are."""
    return [joint for joint in berdy.child if joint not in berdy.freedoms]


def state(berdy, tree, seed):
    """Return a random q, qd, qdd in which the joints that it has not are at zero and rest."""
    rng = np.random.default_rng(seed)
    q, qd, qdd = tree.random_configuration(rng), *rng.normal(size=(2, tree.nv))
    for i, joint in enumerate(tree.joint_names):
        if joint in still(berdy):
            q[tree.q_slices[i]] = qd[tree.v_slices[i]] = qdd[tree.v_slices[i]] = 0
    return q, qd, qdd


def matrices(berdy, tree, q, qd, y=None):
    """Return BERDY's equations at a state."""
    berdy.update(*berdy.state(tree, q, qd), np.zeros(berdy.ny) if y is None else y)
    return berdy.matrices()


def motion_of(berdy, tree, q, qd, qdd, seed):
    """Return a true motion with random external wrenches, which carry a base that floats: no wrench from the world."""
    fx = np.random.default_rng(seed).normal(size=(tree.n_links, 6))
    if not still(berdy):
        return newton_euler(tree, q, qd, qdd, fx)
    fx[0] += newton_euler(tree, q, qd, qdd, fx).f[0]
    motion = newton_euler(tree, q, qd, qdd, fx)
    np.testing.assert_allclose(motion.f[0], 0, atol=1e-9)
    return replace(motion, f=np.where(np.arange(tree.n_links)[:, None] == 0, 0, motion.f))


def system_of(berdy, tree, *more):
    return nd.System(tree, sensor_set(*berdy.measurements(), *more))


def test_berdys_sizes(icub, panda):
    """12 variables and 6 equations a link, 6 and 6 a joint, 1 a freedom; a fixed base: 26 and 19 a joint, no gaps."""
    berdy, _ = icub
    assert (len(berdy.links), len(berdy.child), len(berdy.freedoms)) == (39, 38, 32)
    assert berdy.shape == (6 * 39 + 6 * 38, 12 * 39 + 6 * 38 + 32)
    assert berdy.ny == 6 * 6 + 3 * 62 + 3 * 15 + 32 + 6 * 39
    for blocks in (berdy.variables, berdy.equations, berdy.sensors):
        assert [b.slice.start for b in blocks] == [0, *(b.slice.stop for b in blocks[:-1])]
    assert panda[0].shape == (19 * 9, 26 * 9)
    # A prior that breaks it: its estimate would be off by percents, and its status good.
    with pytest.raises(ValueError, match="BERDY would return a wrong estimate"):
        berdy.set_covariances(1e-8, 1e8, 0.0, 1.0)


@pytest.mark.parametrize("name", ["panda", "icub"])
def test_a_true_motion_obeys_berdys_equations_and_ours_read_its_sensors(request, name):
    berdy, tree = request.getfixturevalue(name)
    q, qd, qdd = state(berdy, tree, 0)
    motion = motion_of(berdy, tree, q, qd, qdd, 0)
    d, at = berdy.from_nori(tree, q, qd, motion), matrices(berdy, tree, q, qd)
    np.testing.assert_allclose(at.D @ d, -at.bD, rtol=0, atol=1e-12)
    system = system_of(berdy, tree)
    y = berdy.reading(at.Y @ d + at.bY)
    np.testing.assert_allclose(system.D(q) @ motion.d(system), -system.b(q, qd, y), rtol=0, atol=1e-12)
    back = berdy.to_nori(tree, q, qd, d)
    assert len(back) > 2 * tree.n_links
    for variable in system.variables:
        if variable.name in back:
            np.testing.assert_allclose(back[variable.name], motion.d(system)[variable.slice], rtol=0, atol=1e-12)


def test_lumped_links_hand_on_their_external_wrenches(icub):
    """A tree in which the links behind the force-torque sensors are lumped has the sum, and all else the same."""
    berdy, tree = icub
    lumped = load("iCubGenova04", "floating", clean=False)
    q, qd, qdd = state(berdy, tree, 4)
    motion = motion_of(berdy, tree, q, qd, qdd, 4)
    at = [tree.joint_names.index(name) for name in lumped.joint_names]
    q_l, qd_l, qdd_l = (
        np.concatenate([x[y[i]] for i in at])
        for x, y in ((q, tree.q_slices), (qd, tree.v_slices), (qdd, tree.v_slices))
    )
    found = berdy.to_nori(lumped, q_l, qd_l, berdy.from_nori(tree, q, qd, motion))
    fx = np.array([found[f"fx:{name}"] for name in lumped.names])
    system = nd.System(lumped, nd.sensors("inverse_dynamics"))
    expected = newton_euler(lumped, q_l, qd_l, qdd_l, fx).d(system)
    for variable in system.variables:
        np.testing.assert_allclose(found[variable.name], expected[variable.slice], rtol=0, atol=1e-11)


def test_berdys_residuals_are_ours(icub):
    """Also of a d that obeys nothing: a covariance on its equations means the same on ours."""
    berdy, tree = icub
    q, qd, _ = state(berdy, tree, 5)
    d = np.random.default_rng(5).normal(size=berdy.shape[1])
    at = matrices(berdy, tree, q, qd)
    residual = at.D @ d + at.bD
    system = system_of(berdy, tree)
    own = berdy.to_nori(tree, q, qd, d)
    d_nori = np.concatenate([own.get(v.name, np.zeros(len(v.components))) for v in system.variables])
    ours = system.D(q) @ d_nori + system.b(q, qd, np.zeros(system.ny))
    rows = {row.name: row.slice for row in system.rows}
    for block in berdy.equations:
        name = block.owner if block.kind == "3f" else berdy.child[block.owner]
        there = np.roll(residual[block.slice], 3)
        np.testing.assert_allclose(np.abs(there), np.abs(ours[rows[f"{block.kind}:{name}"]]), rtol=0, atol=1e-12)


@each_robot
def test_berdys_estimate_is_the_least_squares_solution(request, name):
    """Up to the condition of its normal equations, with covariances over three decades up and down."""
    berdy, robot = request.getfixturevalue(name)
    rng = np.random.default_rng(3)
    (m, n), ny = berdy.shape, berdy.ny
    q, qd, _ = state(berdy, robot, 3)
    dynamics, prior, measurements = (10 ** rng.uniform(-3, 3, size) for size in (m, n, ny))
    y, mean = rng.normal(size=ny), rng.normal(size=n)
    berdy.set_covariances(dynamics, prior, mean, measurements)
    at = matrices(berdy, robot, q, qd, y)
    expected = constrained_least_squares(
        np.zeros((0, n)),
        np.zeros(0),
        np.vstack([at.D, np.eye(n), at.Y]),
        np.concatenate([at.bD, -mean, at.bY - y]),
        1 / np.concatenate([dynamics, prior, measurements]),
    ).d
    condition = np.linalg.cond(normal_matrix(at, dynamics, prior, measurements))
    assert np.linalg.norm(berdy.estimate() - expected) <= 1e-15 * condition * np.linalg.norm(expected)


@each_robot
def test_hard_dynamics_are_the_limit_of_berdys(request, name):
    """Its equations held exactly give the same minimiser as ours; BERDY comes near it, as its weights allow."""
    berdy, robot = request.getfixturevalue(name)
    q, qd, qdd = state(berdy, robot, 6)
    base = {"type": "joint_torque", "joints": robot.joint_names[0], "value": 0}
    rigid = {"type": "joint_acceleration", "joints": still(berdy), "value": 0}
    system = system_of(berdy, robot, *((base, rigid) if still(berdy) else ()))
    motion = motion_of(berdy, robot, q, qd, qdd, 6)
    at = matrices(berdy, robot, q, qd)
    d_true = berdy.from_nori(robot, q, qd, motion)
    y = at.Y @ d_true + at.bY + 0.01 * np.random.default_rng(6).normal(size=berdy.ny)
    D, b = system.D(q), system.b(q, qd, berdy.reading(y))
    is_hard = np.concatenate([[not row.equation.is_measured] * len(row.equation.components) for row in system.rows])
    w = np.full(np.sum(~is_hard), 1e4)
    ours = constrained_least_squares(D[is_hard], b[is_hard], D[~is_hard], b[~is_hard], w).d.astype(float)
    theirs = constrained_least_squares(at.D, at.bD, at.Y, at.bY - y, np.full(berdy.ny, 1e4)).d.astype(float)

    berdy.set_covariances(1e-8, 1e6, 0.0, 1e-4)
    berdy.update(*berdy.state(robot, q, qd), y)
    for d, tolerance in ((theirs, 1e-11), (berdy.estimate(), 1e-4)):
        found = berdy.to_nori(robot, q, qd, d)
        for v in system.variables:
            if v.name in found:
                np.testing.assert_allclose(found[v.name], ours[v.slice], rtol=0, atol=tolerance, err_msg=v.name)
