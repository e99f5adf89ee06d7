"""The oracles of estimation: extended-precision least squares against mpmath, BERDY against it and Newton's laws."""

from __future__ import annotations

from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest

import nori_dyn as nd
from tests.berdy import Berdy, Equations, normal_matrix, released
from tests.least_squares import constrained_least_squares, orthogonal_factors
from tests.oracles import newton_euler
from tests.robots import ROBOTS, load


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


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "m", "k"), [(5, 0, 9), (8, 3, 5), (14, 6, 25), (40, 35, 12)])
def test_it_is_the_exact_minimiser(n, m, k, seed):
    """With weights over 1e-3..1e6: nineteen digits are carried, and at most four are lost."""
    rng = np.random.default_rng(seed)
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
def icub():
    return Berdy(ROBOTS["iCubGenova04"])


def still(icub):
    """Return the joints without freedoms, in which its force-torque sensors are."""
    return [joint for joint in icub.child if joint not in icub.freedoms]


@pytest.fixture(scope="module")
def tree(icub, tmp_path_factory):
    """iCub with the links that its six force-torque sensors split: on joints that turn, and that we keep still."""
    path = tmp_path_factory.mktemp("urdf") / "icub.urdf"
    robot = nd.load_urdf(released(ROBOTS["iCubGenova04"], still(icub), path), base="floating", clean=False)
    return icub.with_sensor_frames(robot)


def state(icub, tree, seed):
    """Return a random q, qd, qdd in which the joints that it has not are at zero and rest."""
    rng = np.random.default_rng(seed)
    q, qd, qdd = tree.random_configuration(rng), rng.normal(size=tree.nv), rng.normal(size=tree.nv)
    for i in map(tree.joint_names.index, still(icub)):
        q[tree.q_slices[i]] = qd[tree.v_slices[i]] = qdd[tree.v_slices[i]] = 0
    return q, qd, qdd


def free_motion(tree, q, qd, qdd, seed):
    """Return a true motion with random external wrenches, which carry the base: no wrench from the world on it."""
    fx = np.random.default_rng(seed).normal(size=(tree.n_links, 6))
    fx[0] += newton_euler(tree, q, qd, qdd, fx).f[0]
    motion = newton_euler(tree, q, qd, qdd, fx)
    np.testing.assert_allclose(motion.f[0], 0, atol=1e-9)
    return replace(motion, f=np.where(np.arange(tree.n_links)[:, None] == 0, 0, motion.f))


def system_of(berdy, tree, *more):
    sensors = {"name": "berdy", "measurements": [*berdy.measurements(), *more]}
    return nd.System(tree, nd.SensorSet.from_dict(sensors))


def test_berdys_sizes(icub):
    """12 variables and 6 equations a link, 6 and 6 a joint, 1 a freedom; the blocks have no gaps."""
    assert (len(icub.links), len(icub.child), len(icub.freedoms)) == (39, 38, 32)
    assert icub.shape == (6 * 39 + 6 * 38, 12 * 39 + 6 * 38 + 32)
    assert icub.ny == 6 * 6 + 3 * 62 + 3 * 15 + 32 + 6 * 39
    for blocks in (icub.variables, icub.equations, icub.sensors):
        assert [b.slice.start for b in blocks] == [0, *(b.slice.stop for b in blocks[:-1])]


@pytest.mark.parametrize("seed", range(3))
def test_a_true_motion_obeys_berdys_equations_and_ours_read_its_sensors(icub, tree, seed):
    q, qd, qdd = state(icub, tree, seed)
    motion = free_motion(tree, q, qd, qdd, seed)
    d = icub.from_nori(tree, q, qd, motion)
    icub.update(*icub.state(tree, q, qd), np.zeros(icub.ny))
    at = icub.matrices()
    np.testing.assert_allclose(at.D @ d, -at.bD, rtol=0, atol=1e-12)

    system = system_of(icub, tree)
    y = icub.reading(at.Y @ d + at.bY)
    np.testing.assert_allclose(system.D(q) @ motion.d(system), -system.b(q, qd, y), rtol=0, atol=1e-12)
    back = icub.to_nori(tree, q, qd, d)
    for variable in system.variables:
        if variable.name in back:
            np.testing.assert_allclose(back[variable.name], motion.d(system)[variable.slice], rtol=0, atol=1e-12)


def test_lumped_links_hand_on_their_external_wrenches(icub, tree):
    """A tree in which the links behind the force-torque sensors are lumped has the sum, and all else the same."""
    lumped = load("iCubGenova04", "floating", clean=False)
    q, qd, qdd = state(icub, tree, 4)
    motion = free_motion(tree, q, qd, qdd, 4)
    at = [tree.joint_names.index(name) for name in lumped.joint_names]
    q_l, qd_l, qdd_l = (
        np.concatenate([x[y[i]] for i in at])
        for x, y in ((q, tree.q_slices), (qd, tree.v_slices), (qdd, tree.v_slices))
    )
    found = icub.to_nori(lumped, q_l, qd_l, icub.from_nori(tree, q, qd, motion))
    fx = np.array([found[f"fx:{name}"] for name in lumped.names])
    system = nd.System(lumped, nd.sensors("inverse_dynamics"))
    expected = newton_euler(lumped, q_l, qd_l, qdd_l, fx).d(system)
    for variable in system.variables:
        np.testing.assert_allclose(found[variable.name], expected[variable.slice], rtol=0, atol=1e-11)


def test_berdys_residuals_are_ours(icub, tree):
    """Also of a d that obeys nothing: a covariance on its equations means the same on ours."""
    q, qd, _ = state(icub, tree, 5)
    d = np.random.default_rng(5).normal(size=icub.shape[1])
    icub.update(*icub.state(tree, q, qd), np.zeros(icub.ny))
    at = icub.matrices()
    residual = at.D @ d + at.bD
    system = system_of(icub, tree)
    own = icub.to_nori(tree, q, qd, d)
    d_nori = np.concatenate([own.get(v.name, np.zeros(len(v.components))) for v in system.variables])
    ours = system.D(q) @ d_nori + system.b(q, qd, np.zeros(system.ny))
    rows = {row.name: row.slice for row in system.rows}
    for block in icub.equations:
        name = block.owner if block.kind == "3f" else icub.child[block.owner]
        there = np.roll(residual[block.slice], 3)
        np.testing.assert_allclose(np.abs(there), np.abs(ours[rows[f"{block.kind}:{name}"]]), rtol=0, atol=1e-12)


def solution(at: Equations, y, dynamics, prior, mean, measurements):
    """Return the minimiser of BERDY's cost by orthogonal matrices in extended precision."""
    n = at.D.shape[1]
    return constrained_least_squares(
        np.zeros((0, n)),
        np.zeros(0),
        np.vstack([at.D, np.eye(n), at.Y]),
        np.concatenate([at.bD, -mean, at.bY - y]),
        1 / np.concatenate([dynamics, prior, measurements]),
    ).d


@pytest.mark.parametrize("decades", [3])
def test_berdys_estimate_is_the_least_squares_solution(icub, tree, decades):
    """Up to the condition of its normal equations, with covariances over that many decades up and down."""
    rng = np.random.default_rng(decades)
    (m, n), ny = icub.shape, icub.ny
    q, qd, _ = state(icub, tree, decades)
    dynamics, prior, measurements = (10 ** rng.uniform(-decades, decades, size) for size in (m, n, ny))
    y, mean = rng.normal(size=ny), rng.normal(size=n)
    icub.set_covariances(dynamics, prior, mean, measurements)
    icub.update(*icub.state(tree, q, qd), y)
    at = icub.matrices()
    expected = solution(at, y, dynamics, prior, mean, measurements)
    condition = np.linalg.cond(normal_matrix(at, dynamics, prior, measurements))
    assert np.linalg.norm(icub.estimate() - expected) <= 1e-15 * condition * np.linalg.norm(expected)


def test_hard_dynamics_are_the_limit_of_berdys(icub, tree):
    """Its equations held exactly give the same minimiser as ours; BERDY comes near it, as its weights allow."""
    q, qd, qdd = state(icub, tree, 6)
    system = system_of(
        icub,
        tree,
        {"type": "joint_torque", "joints": tree.joint_names[0], "value": 0},
        {"type": "joint_acceleration", "joints": still(icub), "value": 0},
    )
    icub.update(*icub.state(tree, q, qd), np.zeros(icub.ny))
    at = icub.matrices()
    d_true = icub.from_nori(tree, q, qd, free_motion(tree, q, qd, qdd, 6))
    y = at.Y @ d_true + at.bY + 0.01 * np.random.default_rng(6).normal(size=icub.ny)
    D, b = system.D(q), system.b(q, qd, icub.reading(y))
    is_hard = np.concatenate([[not row.equation.is_measured] * len(row.equation.components) for row in system.rows])
    w = np.full(np.sum(~is_hard), 1e4)
    ours = constrained_least_squares(D[is_hard], b[is_hard], D[~is_hard], b[~is_hard], w).d.astype(float)
    theirs = constrained_least_squares(at.D, at.bD, at.Y, at.bY - y, np.full(icub.ny, 1e4)).d.astype(float)

    icub.set_covariances(1e-8, 1e6, 0.0, 1e-4)
    icub.update(*icub.state(tree, q, qd), y)
    for d, tolerance in ((theirs, 1e-11), (icub.estimate(), 1e-4)):
        found = icub.to_nori(tree, q, qd, d)
        for v in system.variables:
            if v.name in found:
                np.testing.assert_allclose(found[v.name], ours[v.slice], rtol=0, atol=tolerance, err_msg=v.name)


def test_a_prior_that_breaks_berdy_is_refused(icub):
    """Its estimate would be off by percents, and its status good."""
    with pytest.raises(ValueError, match="BERDY would return a wrong estimate"):
        icub.set_covariances(1e-8, 1e8, 0.0, 1.0)


def test_berdy_with_a_fixed_base():
    """26 variables and 19 equations a joint; its torques can be read."""
    berdy, robot = Berdy(ROBOTS["panda"], "fixed", torques=True), load("panda", clean=False)
    assert berdy.shape == (19 * 9, 26 * 9)
    rng = np.random.default_rng(0)
    q, qd, qdd = robot.random_configuration(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    motion = newton_euler(robot, q, qd, qdd, rng.normal(size=(robot.n_links, 6)))
    d = berdy.from_nori(robot, q, qd, motion)
    berdy.update(*berdy.state(robot, q, qd), np.zeros(berdy.ny))
    at = berdy.matrices()
    np.testing.assert_allclose(at.D @ d, -at.bD, rtol=0, atol=1e-12)
    system = system_of(berdy, robot)
    y = berdy.reading(at.Y @ d + at.bY)
    np.testing.assert_allclose(system.D(q) @ motion.d(system), -system.b(q, qd, y), rtol=0, atol=1e-12)
    found = berdy.to_nori(robot, q, qd, d)
    for variable in system.variables:
        np.testing.assert_allclose(found[variable.name], motion.d(system)[variable.slice], rtol=0, atol=1e-12)
