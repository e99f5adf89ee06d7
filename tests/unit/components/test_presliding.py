"""Friction before a joint slides: by Pinocchio's torques and the law, step by step, in logs, streams and filters."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.components import Friction
from nori_dyn.components.presliding import Presliding, deflections
from nori_dyn.identification.parameters import with_presliding
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.logs.motion.derived import DeflectedJoints
from tests.robots import Pinocchio, load
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set
from tests.tolerances import PEER, RECURSION, assert_close
from tests.trees import random_state

ARM = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))
LAW = Presliding(distance=1e-3, creep=2.0)
COULOMB, DT = 3.0, 0.01


def step_by_step(q, dt, law):
    """Deflections (N, n) as the law says them, one sample after the other."""
    z = np.zeros_like(q)
    for k in range(1, len(q)):
        z[k] = np.clip(np.exp(-dt / law.creep) * z[k - 1] + (q[k] - q[k - 1]) / law.distance, -1.0, 1.0)
    return z


def to_and_fro(n=1500):
    """Joints that turn back and rest: times, positions, velocities, accelerations."""
    t = DT * np.arange(n)
    slow = 0.2 * (t - np.array([[0.0], [0.3]])) ** 2
    q = np.sin(slow).T
    rate = (0.4 * (t - np.array([[0.0], [0.3]]))).T
    qd = np.cos(slow).T * rate
    qdd = -q * rate**2 + 0.4 * np.cos(slow).T
    rests = (t > 5) & (t < 7)
    q[rests], qd[rests], qdd[rests] = q[np.argmax(rests)], 0.0, 0.0
    return t, q, qd, qdd


def with_friction(**fields):
    return ARM.replace(components=[Friction(joints="all", width=0.01, **fields)])


def log_of(path, n=1500, **columns):
    """A log of an arm whose joints are deflected before they slide."""
    t, q, qd, qdd = to_and_fro(n)
    z = step_by_step(q, DT, LAW)
    tau = nd.compile(nd.rnea, ARM).batch(q, qd, qdd) + COULOMB * z
    np.savez(path, t=t, q=q, qd=qd, qdd=qdd, tau=tau, **columns)
    return path, z


def test_many_steps_at_once_are_steps_one_by_one():
    rng = np.random.default_rng(0)
    q = np.cumsum(rng.normal(size=(1000, 3)) * np.array([1e-4, 1e-3, 1e-2]), axis=0)
    travelled, elapsed = np.diff(q, axis=0, prepend=q[:1]), np.full(len(q), DT)
    law = np.full(3, LAW.distance), np.full(3, LAW.creep)
    expected = step_by_step(q, DT, LAW)
    assert_close(deflections(travelled, elapsed, *law, np.zeros(3)), expected, RECURSION)
    rest = deflections(travelled[400:], elapsed[400:], *law, expected[399])
    assert_close(rest, expected[400:], RECURSION)
    assert deflections(travelled[:0], elapsed[:0], *law, np.zeros(3)).shape == (0, 3)


def test_the_level_times_the_deflection_is_the_friction_by_pinocchio():
    arm = load("ur5")
    rubbing = arm.replace(components=[Friction(joints="all", viscous=0.3, coulomb=1.0, mu=0.07, presliding={})])
    peer, (q, qd, qdd, _) = Pinocchio.of("ur5", "fixed", arm), random_state(arm, 0)
    z = np.random.default_rng(1).uniform(-1, 1, arm.nv)
    level = 1.0 + 0.07 * np.abs(peer.rnea(q, 0 * qd, 0 * qd))
    y = {f"qdd:{name}": x for name, x in zip(arm.joint_names, qdd, strict=True)}
    y |= {f"deflection:{name}": x for name, x in zip(arm.joint_names, z, strict=True)}
    system = nd.System(rubbing, "inverse_dynamics")
    found = nd.plan(system, outputs=["tau"]).solver("numpy").solve(q, qd, y)
    off = found.tau - peer.rnea(q, qd, qdd) - 0.3 * qd - level * z
    assert np.abs(off).max() < 0.07 * 2e-6, "the size of the weight is smooth over a millionth of a newton metre"
    slides = arm.replace(components=[Friction(joints="all", viscous=0.3, coulomb=1.0, mu=0.07)])
    assert_close(nd.rnea(rubbing, q, qd, qdd), nd.rnea(slides, q, qd, qdd), PEER)  # recursions know no past


def test_logs_have_deflections_of_their_positions_or_their_own(tmp_path):
    rubbing = with_friction(coulomb=COULOMB, presliding=LAW)
    plan = nd.plan(nd.System(rubbing, "inverse_dynamics"), outputs=["tau", "deflection"])
    path, z = log_of(tmp_path / "log.npz")
    found = nd.estimate(path, plan, backend="numpy")
    np.testing.assert_allclose(found["deflection"], z, atol=1e-9)
    np.testing.assert_allclose(found["tau"], np.load(path)["tau"], atol=1e-9)
    assert "1,500 samples, 2 deflections of the positions, backend numpy" in " ".join(str(found.report).split())
    path, _ = log_of(tmp_path / "own.npz", **{f"deflection:{name}": 0 * z[:, 0] for name in ARM.joint_names})
    assert not nd.estimate(path, plan, backend="numpy")["deflection"].any()


def test_positions_that_are_not_known_or_jump_by_a_turn_deflect_nothing():
    record = SampleRecord.of({(): nd.System(with_friction(coulomb=1.0, presliding=LAW), "inverse_dynamics")})
    turned = 3.1417 - 2 * np.pi
    q = np.array([[3.1413, 0.0], [np.nan, 4e-4], [turned, np.nan], [turned, 4e-4], [turned + 2e-4, 4e-4]])
    joints = DeflectedJoints(record, [f"deflection:{name}" for name in ARM.joint_names])
    z = np.concatenate([joints.follow(None, part) for part in (q[:2], q[2:4], q[4:])])
    np.testing.assert_allclose(z, [[0, 0], [0, 0.4], [0.4, 0.4], [0.4, 0.4], [0.6, 0.4]], atol=1e-9)


@pytest.mark.parametrize("law", [LAW, None])
def test_friction_of_joints_that_turn_back_is_identified(tmp_path, law):
    path, _ = log_of(tmp_path / "log.npz")
    words = ["friction", "offsets", *(["presliding"] if law else [])]
    found = nd.identify(path, with_friction(presliding=law), words, held_out=0)
    levels = [found.each[f"coulomb:{name}"] for name in ARM.joint_names]
    if law is None:
        assert min(fit.after for fit in found.fits) > 0.2  # of 3 N m: what rests, and turns back, has either sign
    else:
        np.testing.assert_allclose(levels, COULOMB, atol=1e-6)
        assert max(fit.after for fit in found.fits) < 1e-6


def test_a_word_gives_joints_presliding_as_it_usually_is():
    arm = ARM.replace(components=[Friction(joints="joint2", viscous=1.0, presliding=LAW)])
    one, other = with_presliding(arm).components
    assert one == arm.components[0]
    assert (other.joints, other.presliding) == (["joint1"], Presliding())
    (only,) = with_presliding(with_friction(coulomb=1.0)).components
    assert (only.coulomb, only.presliding) == (1.0, Presliding())


def test_a_filter_sees_nothing_from_outside_where_friction_turns_back(tmp_path):
    path, _ = log_of(tmp_path / "log.npz", n=500)
    torques = {**TORQUES, "sigma": 0.01, "offset": {"sigma": 10.0}}
    outside = {"of": "offset", "walk": 10.0, "time_constant": 0.5}
    sensors = sensor_set(ACCELERATIONS, torques, UNLOADED, memory={"outside": outside})
    seen = {}
    for law in (LAW, None):
        tree = with_friction(coulomb=COULOMB, presliding=law)
        plan = nd.plan(nd.System(tree, sensors), outputs=["offset"])
        seen[law is None] = np.abs(nd.estimate(path, plan, backend="numpy")["offset"]).max()
    assert seen[False] < 1e-6
    assert seen[True] > 1.0


def test_exciting_motions_are_of_joints_that_slide():
    motion = nd.exciting_motion(with_friction(presliding=LAW), ["friction"], 4.0, 2, starts=1, speed=2.0)
    assert "coulomb:joint1" in motion.parameters
