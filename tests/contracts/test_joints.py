"""Every joint obeys the laws in Joint's docstring, and moves as a textbook has it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from nori_dyn.algebra.expressions import Graph
from nori_dyn.algebra.spatial import Transform, matvec
from nori_dyn.errors import ModelError
from nori_dyn.model.joints import JOINTS, MOTION, Continuous, Helical, Joint, Planar, Revolute
from tests.oracles import derivative, evaluate, joint_pose
from tests.properties.strategies import seeds
from tests.tolerances import DIFFERENCES, ROUNDING, assert_close

LIMITS = ((-0.2, 0.7), (2.0, math.inf), (-math.inf, -5.0), (7.0, math.inf), (-math.inf, 0.1), (0.0, 0.0), (0.5, 0.5))


def unit(seed: int) -> tuple[float, float, float]:
    axis = np.random.default_rng(seed).normal(size=3)
    x, y, z = axis / np.linalg.norm(axis)
    return float(x), float(y), float(z)


def examples() -> dict[str, Joint]:
    """Every joint of the registry, those with an axis on three of them."""
    found: dict[str, Joint] = {}
    for kind, joint in JOINTS.items():
        if not hasattr(joint, "axis"):
            found[kind] = joint()
            continue
        for name, axis in (("z", (0.0, 0.0, 1.0)), ("-x", (-1.0, 0.0, 0.0)), ("skew", unit(3))):
            found[f"{kind} {name}"] = Helical(axis, pitch=-0.3) if joint is Helical else joint(axis)
    return found


EXAMPLES = examples()

every_joint = pytest.mark.parametrize("joint", EXAMPLES.values(), ids=EXAMPLES)


def in_every_state(test):
    return every_joint(settings(max_examples=5)(given(seed=seeds)(test)))


def state(joint: Joint, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return joint.random(rng), rng.normal(size=joint.nv)


def relative_velocity(joint: Joint, at) -> np.ndarray:
    """The spatial velocity of the child in its coordinates, from poses along a motion t -> q."""
    X = joint.transform(at(0.0))
    E = np.broadcast_to(X.E, (3, 3))
    W = E @ derivative(lambda t: np.broadcast_to(joint.transform(at(t)).E, (3, 3))).T  # R^T Rd, with R = E^T
    assert_close(W, -W.T, DIFFERENCES)
    v = E @ derivative(lambda t: joint.transform(at(t)).r)
    return np.array([W[2, 1], W[0, 2], W[1, 0], *v])


@in_every_state
def test_the_pose_is_the_textbooks_and_velocity_bias_and_rates_are_those_of_the_motion(joint, seed):
    q, qd = state(joint, seed)
    X, (R, p) = joint.transform(q), joint_pose(joint, q)
    assert_close(np.broadcast_to(X.E, (3, 3)), R.T, ROUNDING)
    assert_close(X.r, p, ROUNDING)

    def at(t: float, speed: np.ndarray = qd) -> np.ndarray:
        return joint.integrate(q, t * speed)

    assert_close(matvec(joint.S(q), qd), relative_velocity(joint, at), DIFFERENCES)
    assert_close(joint.bias(q, qd), derivative(lambda t: matvec(joint.S(at(t)), qd)), DIFFERENCES)
    assert_close(joint.S_rate(q, qd), derivative(lambda t: joint.S(at(t))), DIFFERENCES)
    assert_close(joint.rates(q, qd), derivative(lambda t: _continuous(at(t), q)), DIFFERENCES)
    changes = [derivative(lambda t, one=one: joint.bias(at(t, one), qd)) for one in np.eye(joint.nv)]
    assert_close(joint.bias_by_q(q, qd), np.reshape(changes, (joint.nv, 6)).T, DIFFERENCES)


def _continuous(q: np.ndarray, start: np.ndarray) -> np.ndarray:
    """A configuration with its quaternion, where it has one, on the side of another: q and -q are one turn."""
    if len(q) >= 4 and q[-4:] @ start[-4:] < 0:
        return np.concatenate([q[:-4], -q[-4:]])
    return q


def same_pose(joint: Joint, q: np.ndarray, p: np.ndarray) -> None:
    X, Y = joint.transform(q), joint.transform(p)
    assert_close(X.E, Y.E, ROUNDING)
    assert_close(X.r, Y.r, ROUNDING)


@in_every_state
def test_integrate_and_difference_are_inverse_and_two_half_steps_are_one(joint, seed):
    (q, motion), (p, _) = state(joint, seed), state(joint, seed + 100)
    step = joint.difference(q, p)
    assert step.shape == (joint.nv,)
    reached = joint.integrate(q, step)
    assert reached.shape == (joint.nq,)
    same_pose(joint, reached, p)
    if "quaternion" in joint.coordinates:
        assert np.linalg.norm(reached[-4:]) == pytest.approx(1.0, abs=1e-15)
    elif joint.kind != "continuous":
        assert_close(reached, p, ROUNDING)
    small = 0.3 * motion
    assert_close(joint.difference(q, joint.integrate(q, small)), small, ROUNDING)
    assert_close(joint.difference(q, q), np.zeros(joint.nv), ROUNDING)
    same_pose(joint, joint.integrate(q, np.zeros(joint.nv)), q)
    same_pose(joint, joint.integrate(joint.integrate(q, motion / 2), motion / 2), joint.integrate(q, motion))


@every_joint
def test_sizes_and_names_and_neutral_is_the_identity_where_named_freedoms_are_rows_of_S(joint):
    assert joint.nq == len(joint.coordinates)
    assert joint.nv == len(joint.motion_components) == len(joint.force_components)
    assert len(set(joint.motion_components)) == len(set(joint.force_components)) == joint.nv
    assert JOINTS[joint.kind] is type(joint)
    q, qd = state(joint, 0)
    assert joint.S(q).shape == (6, joint.nv)
    assert joint.bias(q, qd).shape == (6,)
    assert np.linalg.matrix_rank(joint.S(q)) == joint.nv
    q = joint.neutral()
    assert q.shape == (joint.nq,)
    X = joint.transform(q)
    assert_close(Transform(np.broadcast_to(X.E, (3, 3)), X.r).motion_matrix(), np.eye(6), ROUNDING)
    rows = dict(zip(MOTION, np.eye(6), strict=True))
    for name, freedom in zip(joint.motion_components, joint.S(q).T, strict=True):
        if name in rows:
            assert_close(freedom, rows[name], ROUNDING)


@every_joint
def test_random_is_reproducible_and_spread_within_the_room_of_the_joint(joint):
    rng = np.random.default_rng(4)
    draws = np.array([joint.random(rng) for _ in range(200)])
    assert np.array_equal(draws[0], joint.random(np.random.default_rng(4)))
    for k, kind in enumerate(joint.coordinates):
        bound = math.pi if kind == "angle" else 1.0
        assert np.abs(draws[:, k]).max() <= bound
        assert np.ptp(draws[:, k]) > 1.2 * bound
    if "quaternion" in joint.coordinates:
        assert_close(np.linalg.norm(draws[:, -4:], axis=1), np.ones(200), ROUNDING)
    tight = [replace(joint, limits=limits) for limits in LIMITS] if hasattr(joint, "limits") else []
    for limited in (joint, *tight):
        lower, upper = limited.room
        Q = np.array([limited.random(rng) for _ in range(50)])
        assert lower < upper
        assert ((lower <= Q) & (upper >= Q)).all()
        assert not joint.nq or len(np.unique(Q, axis=0)) == 50


@every_joint
def test_batches_and_expressions_evaluate_to_single_states(joint):
    states = [state(joint, seed) for seed in range(6)]
    Q, Qd = (np.stack(parts, axis=-1) for parts in zip(*states, strict=True))
    X, S, c = joint.transform(Q), joint.S(Q), joint.bias(Q, Qd)
    assert X.r.shape == (3, 6)
    for k, (q, qd) in enumerate(states):
        one = joint.transform(q)
        assert_close(X.E[..., k] if X.E.ndim == 3 else X.E, one.E, ROUNDING)
        assert_close(X.r[..., k], one.r, ROUNDING)
        assert_close(S[..., k] if S.ndim == 3 else S, joint.S(q), ROUNDING)
        assert_close(c[..., k], joint.bias(q, qd), ROUNDING)
    graph = Graph(seed=2)
    free = [graph.input(f"q{k}") for k, kind in enumerate(joint.coordinates) if kind != "quaternion"]
    unit_four = graph.unit_quaternion("xyzw") if "quaternion" in joint.coordinates else ()
    symbols, speeds = np.empty(joint.nq, dtype=object), np.empty(joint.nv, dtype=object)
    symbols[:], speeds[:] = [*free, *unit_four], [graph.input(f"qd{k}") for k in range(joint.nv)]
    at = {node.index: value for node, value in zip([*symbols, *speeds], [*q, *qd], strict=True)}
    X, floats = joint.transform(symbols), joint.transform(q)
    pairs = [
        (X.E, floats.E),
        (X.r, floats.r),
        (joint.S(symbols), joint.S(q)),
        (joint.bias(symbols, speeds), joint.bias(q, qd)),
    ]
    for ours, expected in pairs:
        nodes = [graph.expr(entry) for entry in ours.ravel()]
        values = evaluate(graph, at)
        assert_close(np.array([values[node.index] for node in nodes]).reshape(ours.shape), expected, ROUNDING)


@pytest.mark.parametrize("axis", [(0.0, 0.0, 0.0), (1.0, 1.0, 0.0), (1.0, 0.0), (math.nan, 0.0, 1.0)])
def test_an_axis_that_is_not_a_unit_vector_is_refused(axis):
    with pytest.raises(ModelError, match=r"axis of a revolute joint.*unit vector"):
        Revolute(axis)


def test_a_continuous_joint_goes_the_short_way_round():
    joint = Continuous()
    assert_close(joint.difference(np.array([3.0]), np.array([-3.0])), [2 * math.pi - 6.0], ROUNDING)
    assert_close(joint.difference(np.array([0.1]), np.array([0.1 + 4 * math.pi])), [0.0], ROUNDING)
    assert_close(Revolute().difference(np.array([3.0]), np.array([-3.0])), [-6.0], ROUNDING)


def test_a_planar_joint_of_integers_does_not_lose_its_fractions():
    q = np.array([1, 2, 3])
    assert_close(Planar().S(q), Planar().S(q.astype(float)), ROUNDING)
    assert_close(Planar().bias(q, q), Planar().bias(q.astype(float), q.astype(float)), ROUNDING)
