import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nori_dyn as nd
from nori_dyn.errors import InputError
from nori_dyn.logs import reading
from nori_dyn.logs.formats import arrays
from nori_dyn.logs.motion import differentiation
from nori_dyn.logs.motion.differentiation import KalmanDifferentiator, SavitzkyGolay, differentiator
from tests.logs import samples_in
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set
from tests.trees import on_a_free_base

N, DT = 3000, 0.01
ARM = nd.autotree(2)
SYSTEM = nd.System(ARM, "inverse_dynamics")
WEIGHED = sensor_set(ACCELERATIONS | {"sigma": 0.1}, TORQUES | {"sigma": 0.5}, UNLOADED)


def motion(seed=0, noise=1e-3):
    """Times, positions, velocities with noise, and accelerations."""
    t, w = DT * np.arange(N), np.array([1.0, 5.0])
    at = np.outer(t, w)
    read = w * np.cos(at) + np.random.default_rng(seed).normal(0, noise, at.shape)
    return t, np.sin(at), read, -(w**2) * np.sin(at)


def saved(path, **arrays):
    np.savez(path, **arrays)
    return path


@pytest.fixture
def log(tmp_path):
    """The file of the motion."""
    t, q, qd, _ = motion()
    return saved(tmp_path / "log.npz", t=t, q=q, qd=qd)


def test_what_users_say():
    assert differentiator(None) is None
    assert differentiator(51, 0.1) == SavitzkyGolay(51, dt=0.1)
    assert differentiator("smoother", 0.1).way == "smoother"
    assert differentiator("auto", 0.1).way == "smoother"
    said = r"by 'kalmann'\. Known: a window in samples, such as 51, or 'kalman' or 'smoot"
    with pytest.raises(InputError, match=said):
        differentiator("kalmann")
    with pytest.raises(InputError, match="must be positive, not 0"):
        differentiator("kalman", 0.0)


@pytest.mark.parametrize(("way", "causal"), [("kalman", True), ("smoother", False)])
def test_accelerations_are_those_of_the_joints_motion_and_chunks_do_not_show(log, monkeypatch, way, causal):
    t, _, qd, qdd = motion()
    whole = samples_in(log, SYSTEM, differentiator(way))
    found = nd.tools.joint_motion(t, None, qd, causal=causal)
    at = whole.numbers
    np.testing.assert_allclose(whole.y, found.qdd[at], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(whole.sigma, found.sigma_qdd[at], rtol=1e-6)
    sure = found.sigma_qdd <= (2 * found.sigma_qdd[-1].max() if causal else np.inf)
    np.testing.assert_array_equal(at, np.flatnonzero(sure.all(axis=1)))
    assert len(at) == N or (causal and N - 30 < len(at) < N)  # it begins without an acceleration
    off = whole.y - qdd[at]
    assert np.sqrt(np.mean((off / whole.sigma) ** 2)) < 1.5
    for module in (reading, differentiation, arrays):
        monkeypatch.setattr(module, "BLOCK", 512)
    parts = samples_in(log, SYSTEM, differentiator(way))
    np.testing.assert_allclose(parts.y, whole.y, rtol=1e-9, atol=1e-9)


def encoders(seed=0, noise=1e-5):
    """Times, positions with noise, velocities and accelerations."""
    t, q, qd, qdd = motion(noise=0.0)
    return t, q + np.random.default_rng(seed).normal(0, noise, q.shape), qd, qdd


@pytest.mark.parametrize(("way", "causal"), [("kalman", True), ("smoother", False)])
def test_encoders_alone_tell_velocities_and_accelerations(tmp_path, monkeypatch, way, causal):
    t, q, qd, qdd = encoders()
    path = saved(tmp_path / "log.npz", t=t, q=q)
    whole = samples_in(path, SYSTEM, differentiator(way))
    found, at = nd.tools.joint_motion(t, q, causal=causal), whole.numbers
    assert len(at) > 0.98 * N
    np.testing.assert_array_equal(whole.q, q[at])
    np.testing.assert_allclose(whole.qd, found.qd[at], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(whole.y, found.qdd[at], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(whole.sigma, found.sigma_qdd[at], rtol=1e-6)
    assert np.abs(whole.qd - qd[at]).max() < 0.01
    for module in (reading, differentiation, arrays):
        monkeypatch.setattr(module, "BLOCK", 512)
    parts = samples_in(path, SYSTEM, differentiator(way))
    np.testing.assert_allclose(parts.qd, whole.qd, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(parts.y, whole.y, rtol=1e-9, atol=1e-8)


def test_a_window_makes_velocities_of_positions_too_also_where_angles_jump_by_a_turn(tmp_path):
    t, q, qd, qdd = encoders(noise=0.0)
    q, qd = q + np.array([3.0, 0.0]), np.delete(qd, 0, axis=1)  # the velocity of the second joint is read
    path = saved(tmp_path / "log.npz", t=t, q=(q + np.pi) % (2 * np.pi) - np.pi)
    log = samples_in(path, SYSTEM, differentiator(5))
    assert np.abs(log.q - q).max() > 6
    np.testing.assert_allclose(log.qd[:, 1:], qd, atol=1e-3)
    np.testing.assert_allclose(log.y, qdd, atol=0.3)
    names = {f"q:{name}": q[:, k] for k, name in enumerate(ARM.joint_names)}
    path = saved(tmp_path / "half.npz", t=t, **names, **{f"qd:{ARM.joint_names[1]}": 2 * qd[:, 0]})
    half = samples_in(path, SYSTEM, differentiator(5))
    np.testing.assert_array_equal(half.qd[:, 1], 2 * qd[:, 0])  # and is differentiated
    np.testing.assert_allclose(half.y, qdd * [1, 2], atol=0.3)


def test_velocities_are_made_where_that_is_asked_for_and_it_is_said(tmp_path):
    t, q, _, _ = encoders()
    plan = nd.plan(SYSTEM, outputs=["tau"])
    path = saved(tmp_path / "log.npz", t=t, q=q)
    for way in ("auto", None):
        with pytest.raises(InputError, match=r"no column 'qd.*Or --differentiate smoother makes velocities of the pos"):
            nd.estimate(path, plan, differentiate=way)
    found = nd.estimate(path, plan, differentiate="smoother", backend="numpy")
    assert "2 velocities and 2 accelerations by a smoother: noise of positions 9" in " ".join(str(found.report).split())
    assert found.report.to_dict()["differentiated"][0] == f"qd:{ARM.joint_names[0]}"


@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_the_velocity_of_a_base_is_made_of_its_pose(tmp_path, noise, monkeypatch):
    """A base that turns about one axis: its angular velocity is the rate of the angle."""
    monkeypatch.setattr(reading, "BLOCK", 512)  # poses go on from chunk to chunk
    tree, rng = on_a_free_base(ARM), np.random.default_rng(0)
    axis, t = np.array([0.6, 0.0, 0.8]), np.arange(0.0, 6.0, 0.004)
    angle, rate, growth = 2 * np.sin(t), 2 * np.cos(t), -2 * np.sin(t)
    turned = Rotation.from_rotvec(angle[:, None] * axis)
    phase = t[:, None] * np.array([1.0, 1.5, 0.5])
    v = turned.inv().apply(np.array([1.0, 1.5, 0.5]) * np.cos(phase))
    a = turned.inv().apply(-np.array([1.0, 2.25, 0.25]) * np.sin(phase)) - np.cross(rate[:, None] * axis, v)
    read = (turned * Rotation.from_rotvec(noise * rng.normal(size=(len(t), 3)))).as_quat()
    read[::3] *= -1.0  # the same poses
    read[700] = 0.0  # a camera that sees nothing
    position = np.sin(phase) + noise * rng.normal(size=(len(t), 3))
    path = saved(tmp_path / "log.npz", t=t, q=np.hstack([position, read, 0.3 * np.sin(t)[:, None]]))
    log = samples_in(path, nd.System(tree, "inverse_dynamics"), differentiator("smoother"), missing="drop")
    inner = (log.t > 0.3) & (log.t < 5.7)
    kept = np.isin(t, log.t)
    qd = np.hstack([rate[:, None] * axis, v, 0.3 * np.cos(t)[:, None]])[kept]
    qdd = np.hstack([growth[:, None] * axis, a, -0.3 * np.sin(t)[:, None]])[kept]
    np.testing.assert_allclose(log.qd[inner], qd[inner], atol=1e-4 + 30 * noise)
    off = (log.y - qdd)[inner]
    assert np.abs(off).max() < 5e-3 if noise == 0 else 0.5 < np.sqrt(np.mean((off / log.sigma[inner]) ** 2)) < 1.5


def test_deviations_are_handed_to_the_weights(tmp_path):
    t, q, qd, _ = motion()
    tau = np.random.default_rng(1).normal(size=(N, 2))
    plan = nd.plan(nd.System(ARM, WEIGHED), outputs=["qdd", "tau"])
    path = saved(tmp_path / "log.npz", t=t, q=q, qd=qd, tau=tau)
    found = nd.estimate(path, plan, differentiate="smoother", backend="numpy")
    joints = nd.tools.joint_motion(t, None, qd)
    names = list(plan.system.weight_names)
    weights = np.tile(plan.system.weights, (N, 1))
    for k, joint in enumerate(ARM.joint_names):
        weights[:, names.index(f"qdd:{joint}")] = joints.sigma_qdd[:, k] ** -2
    y = np.concatenate([joints.qdd, tau], axis=1)
    expected = plan.solver("numpy").solve_batch(q, qd, y, weights)
    np.testing.assert_allclose(found["qdd"], expected.qdd, rtol=1e-5, atol=1e-6)
    assert "by a smoother: noise of velocities" in found.report.counts.made_by


def test_a_log_without_times_needs_their_step_and_a_short_one_is_refused(tmp_path):
    t, q, qd, _ = motion()
    path = saved(tmp_path / "log.npz", q=q, qd=qd)
    for way in ("kalman", 7):
        with pytest.raises(InputError, match=r"the time between samples must be known.*--dt 0\.001"):
            samples_in(path, SYSTEM, differentiator(way))
    short = saved(tmp_path / "short.npz", t=t[:20], q=q[:20], qd=qd[:20])
    with pytest.raises(InputError, match="no 32 samples follow each other"):
        samples_in(short, SYSTEM, KalmanDifferentiator("kalman"))
    log = samples_in(path, SYSTEM, differentiator("smoother", DT))
    np.testing.assert_allclose(log.y, nd.tools.joint_motion(t, None, qd).qdd, rtol=1e-6, atol=1e-6)


def test_time_that_jumps_back_begins_anew(tmp_path):
    t, q, qd, qdd = motion()
    t = np.where(np.arange(N) < 1500, t, t - 10.0)
    log = samples_in(saved(tmp_path / "log.npz", t=t, q=q, qd=qd), SYSTEM, differentiator("smoother"))
    assert len(log) == N
    assert np.abs(log.y - qdd).max() < 10 * log.sigma.max()


def test_a_free_base_has_accelerations_as_well(tmp_path):
    tree = on_a_free_base(nd.autotree(2))
    system = nd.System(tree, "inverse_dynamics")
    t = DT * np.arange(200)
    qd = np.cos(np.outer(t, np.linspace(1, 5, tree.nv))) + np.random.default_rng(0).normal(0, 1e-3, (200, tree.nv))
    path = saved(tmp_path / "log.npz", t=t, q=np.tile(tree.neutral_configuration(), (200, 1)), qd=qd)
    log = samples_in(path, system, differentiator("smoother"))
    np.testing.assert_allclose(log.y[:, : tree.nv], nd.tools.joint_motion(t, None, qd).qdd, rtol=1e-6, atol=1e-6)


def test_a_window_knows_noise_and_where_no_polynomial_follows():
    """White noise of velocities: deviations are those of the errors. A joint that stops within a sample: more."""
    rng, dt, n = np.random.default_rng(0), 0.01, 4000
    t = dt * np.arange(n)
    smooth = np.column_stack([np.sin(t), np.cos(2 * t)])
    slopes = np.column_stack([np.cos(t), -2 * np.sin(2 * t)])
    read = smooth + 0.002 * rng.normal(size=smooth.shape)
    window = SavitzkyGolay(11).fitted(lambda: (t, read, dt))
    found = window.derivatives(t, read, dt)
    z = (found.qdd - slopes)[20:-20] / found.sigma[20:-20]
    assert 0.9 < np.sqrt(np.mean(z**2)) < 1.0
    stopped = np.where(t[:, None] < 20.0, read, 0.002 * rng.normal(size=read.shape))
    after = window.derivatives(t, stopped, dt)
    jump = int(20.0 / dt)
    true = np.where(t[:, None] < 20.0, slopes, 0.0)
    near = slice(jump - 5, jump + 6)
    assert (np.abs(after.qdd - true)[near] < 3 * after.sigma[near]).all()
    np.testing.assert_allclose(after.sigma[: jump - 20], found.sigma[: jump - 20])
