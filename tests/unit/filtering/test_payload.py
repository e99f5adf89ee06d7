"""A payload as state: found from torques that Pinocchio says, also where it is taken up on the way."""

from functools import partial

import numpy as np
import pytest
from scipy.linalg import null_space

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform
from nori_dyn.components import Friction, UnknownPayload
from nori_dyn.errors import ModelError, SensorConfigError
from nori_dyn.model.tree import Frame
from tests.peers import pin
from tests.robots import ROBOTS, Pinocchio, load, pinocchio_model
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set
from tests.tolerances import PEER, SOLVED, assert_close
from tests.unit.identification.simulated import motion

DT, NOISE, WIDTH, LINK = 0.01, 0.05, 0.01, "wrist_3_link"
MASS, CENTRE, ABOUT_CENTRE = 2.5, np.array([0.03, -0.02, 0.1]), np.diag([0.02, 0.03, 0.015])
ABOUT = ABOUT_CENTRE + MASS * (CENTRE @ CENTRE * np.eye(3) - np.outer(CENTRE, CENTRE))
TEN = np.array([MASS, *MASS * CENTRE, *(ABOUT[i, j] for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)))])
"""The payload, about the origin of its link."""


LAW = {"coulomb": 1.0, "mu": 0.1, "stiction": {"scatter": 0.2}}
STICKY = Friction(joints="all", **LAW)


def arm(**given: float) -> nd.KinematicTree:
    return load("ur5").replace(components=[UnknownPayload(link=LINK, **given)])


def plan(tree: nd.KinematicTree, **acceleration: float) -> nd.Plan:
    rows = ACCELERATIONS | acceleration, TORQUES | {"sigma": NOISE}, UNLOADED
    return nd.plan(tree, sensor_set(*rows, memory={"load": {"of": "payload"}}), outputs=["tau", f"payload:{LINK}"])


def recorded(
    n: int, lifted: int = 0, mu: float = 0.0, put_down: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities, and readings, of which Pinocchio says the torques, with a payload between two ticks.

    Friction takes a share mu of the weight as well, by Pinocchio's gravity.
    """
    tree, model = load("ur5"), pinocchio_model(ROBOTS["ur5"])
    full = model.copy()
    full.inertias[full.njoints - 1] += pin.Inertia(MASS, CENTRE, ABOUT_CENTRE)
    empty, carrying = Pinocchio(tree, model), Pinocchio(tree, full)
    peers = [carrying if lifted <= k < (put_down or n) else empty for k in range(n)]
    _, q, qd, qdd = motion(tree.nv, n, DT, seed=3)
    tau = np.array([peer.rnea(*state) for peer, *state in zip(peers, q, qd, qdd, strict=True)])
    weight = np.array([peer.rnea(at, 0 * at, 0 * at) for peer, at in zip(peers, q, strict=True)])
    tau = tau + mu * np.abs(weight) * qd / np.hypot(qd, WIDTH)
    return q, qd, np.hstack([qdd, tau + NOISE * np.random.default_rng(0).normal(size=tau.shape)])


def test_the_ten_parameters_of_a_payload_are_found_within_their_deviations():
    q, qd, y = recorded(600)
    found = nd.Tracker(plan(arm(change=1e8)), DT, backend="numpy").over(None, q, qd, y)
    off = found.memory.mean[-1] - TEN
    assert np.abs(off[0]) < 0.02 * MASS
    assert np.abs(off / found.memory.deviations[-1]).max() < 3.5
    assert (found.memory.deviations[-1] < 0.1).all()
    assert_close(found.estimate[f"payload:{LINK}"], found.memory.mean, SOLVED)
    body = nd.results.Payload.of_ten(load("ur5"), found.memory.mean[-1], LINK)
    np.testing.assert_allclose(body.com, CENTRE, atol=0.01)
    assert np.linalg.eigvalsh(body.I_com).min() > 0
    assert found.consistency.ratio == pytest.approx(1.0, abs=0.1)


def test_a_payload_adds_to_friction_by_weight():
    """To first order: where the weight of the robot alone vanishes, that of the payload does not."""
    q, qd, y = recorded(600, mu=0.1)
    known = arm(change=1e8)
    rubbing = known.replace(components=[Friction(joints="all", mu=0.1, width=WIDTH), *known.components])
    off = [
        np.abs(nd.Tracker(plan(tree), DT, backend="numpy").over(None, q, qd, y).memory.mean[-1, 0] - MASS)
        for tree in (rubbing, rubbing.replace(components=[*rubbing.components[::-1]]))
    ]
    assert off[0] == pytest.approx(off[1], abs=1e-9)
    assert off[0] < 0.002 * MASS


def test_it_is_noticed_that_something_is_lifted():
    q, qd, y = recorded(1200, lifted=600)
    found = nd.Tracker(plan(arm(change=20.0)), DT, backend="numpy").over(None, q, qd, y)
    mass = found.memory.mean[:, 0]
    assert np.abs(mass[300:600]).max() < 0.1 * MASS
    assert np.abs(mass[800:] - MASS).max() < 0.1 * MASS


def test_ticks_have_the_outputs_of_whole_logs():
    q, qd, y = recorded(60)
    tracker = nd.Tracker(plan(arm()), DT, backend="numpy")
    found = tracker.over(None, q, qd, y)
    for state in zip(q, qd, y, strict=True):
        now = tracker.step(*state)
    assert_close(now["tau"], found.estimate.tau[-1], SOLVED)
    assert_close(now.deviations["tau"], found.deviations["tau"][-1], SOLVED)


def test_accelerations_have_to_be_known():
    with pytest.raises(SensorConfigError, match=r"'payload:wrist_3_link' moves as qdd:shoulder_pan_joint.* say"):
        nd.Tracker(plan(arm(), sigma=0.5), DT, backend="numpy")


def test_recursions_know_no_payload():
    q, qd, y = recorded(1)
    state = q[0], qd[0], y[0, :6]
    assert_close(nd.rnea(arm(), *state), nd.rnea(load("ur5"), *state), PEER)


@pytest.mark.parametrize("component", [UnknownPayload(link=LINK), STICKY])
def test_the_equations_at_many_poses_are_those_at_each(component):
    tree = load("ur5").replace(components=[component])
    system = nd.System(tree, sensor_set(ACCELERATIONS, {**TORQUES, "sigma": NOISE}, UNLOADED))
    Q = tree.random_configurations(5, np.random.default_rng(0))
    for q, D in zip(Q, system.D_each(Q), strict=True):
        assert_close(D.toarray(), system.D(q).toarray(), PEER)
    assert nd.observability(system).is_observable


@pytest.mark.parametrize("component", [UnknownPayload(link=LINK), STICKY])
def test_deviations_of_an_instant_are_those_at_its_velocity(component):
    """By dense least squares over the rows of the state, at its velocity and its accelerations."""
    tree = load("ur5").replace(components=[component])
    system = nd.System(tree, sensor_set(ACCELERATIONS, {**TORQUES, "sigma": NOISE}, UNLOADED))
    q, qd, y = (each[0] for each in recorded(1))
    D = system.D(q, qd, y).toarray()
    assert np.abs(D - system.D(q).toarray()).max() > 0.01
    exact = np.concatenate([np.full(row.slice.stop - row.slice.start, row.is_exact) for row in system.rows])
    sizes = np.abs(D[exact]).max(axis=1, keepdims=True)
    Z = null_space(D[exact] / sizes)
    roots = np.concatenate([np.sqrt(system.weights[[*row.weight_of_rows]]) for row in system.rows if not row.is_exact])
    F = Z @ np.linalg.pinv(roots[:, None] * (D[~exact] @ Z))
    found = nd.plan(system, outputs=["tau"]).monitor().check(q, qd, y)
    places = np.concatenate([np.arange(part.start, part.stop) for part in map(partial(system.column, "tau"), range(6))])
    assert_close(found.deviations["tau"], np.linalg.norm(F[places], axis=1), SOLVED)


def test_a_variable_of_two_components_and_a_payload_of_the_world_are_refused():
    tree = load("ur5")
    for component, name in ((UnknownPayload(link=LINK), f"payload:{LINK}"), (STICKY, "stiction:shoulder_pan_joint")):
        with pytest.raises(ModelError, match=f"robot .* has '{name}' by two components"):
            nd.System(tree.replace(components=[component] * 2), "inverse_dynamics")
    walled = tree.replace(frames={"wall": Frame(-1, Transform.identity()), **tree.frames})
    with pytest.raises(ModelError, match="'wall' is on the world, which carries nothing"):
        walled.replace(components=[UnknownPayload(link="wall")])


def test_its_entry_says_nothing_that_the_component_says():
    told = sensor_set(TORQUES | {"sigma": NOISE}, memory={"load": {"of": "payload", "walk": 0.1}})
    with pytest.raises(SensorConfigError, match=r"as its component says .mass, reach, change.: leave all but `of` and"):
        nd.System(arm(), told)


def test_lifting_and_putting_down_are_recognised_at_once():
    """Whether there is a payload is a contact: open, its parameters are about zero."""
    empty = {"type": "prior", "name": "empty", "variables": [f"payload:{LINK}"], "sigma": [0.02, *[0.01] * 9]}
    rows = ACCELERATIONS, {**TORQUES, "sigma": NOISE}, UNLOADED
    more = {"contacts": {"load": {"closed": [], "open": [empty]}}, "memory": {"load": {"of": "payload", "jump": 1.0}}}
    planned = nd.plan(arm(), sensor_set(*rows, **more), outputs=[f"payload:{LINK}"])
    tracker = nd.Tracker(planned, DT, hypotheses=nd.Hypotheses(rate=0.1, acceleration=1.0), backend="numpy")
    q, qd, y = recorded(600, lifted=200, put_down=400)
    found = tracker.over(None, q, qd, y)
    carried = (np.arange(600) >= 200) & (np.arange(600) < 400)
    wrong = np.flatnonzero((found.contacts["load"] > 0.5) != carried)
    assert set(wrong.tolist()) <= {200, 201, *range(400, 404)}
    assert found.contacts["load"][carried][3:].min() > 0.99
    off = np.abs(found.estimate[f"payload:{LINK}"][210:400] - TEN) / found.deviations[f"payload:{LINK}"][210:400]
    assert (off < 3).mean() > 0.98
    assert np.abs(found.estimate[f"payload:{LINK}"][410:, 0]).max() < 0.1
