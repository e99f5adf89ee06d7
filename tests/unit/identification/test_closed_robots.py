"""Robots with loops: accelerations by Pinocchio's constrained dynamics, ranks by its regressors on finite motions."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.components import Component, Loop
from nori_dyn.identification.parameters import Parameters
from nori_dyn.model.closure import gap_rate, gaps
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import Frame, KinematicTree
from tests import closed_robots, mechanisms
from tests.cassie import CASSIE_ROTORS, cassie
from tests.in_pinocchio import constrained_dynamics, in_pinocchio
from tests.peers import pin
from tests.systems import ACCELERATIONS, UNLOADED, sensor_set
from tests.unit.identification.simulated import drawn, errors_of, lasting

FAR = 0.003
"""Of the largest singular value of loops the least, at states that are far from singular ones."""


def sensors_of(tree: KinematicTree, actuated: list[str], **sigma: float) -> nd.SensorSet:
    """Accelerations of all joints, torques of some; the others are passive, and nothing is touched."""
    rows = [ACCELERATIONS, {"type": "joint_torque", "joints": actuated, **sigma}, UNLOADED]
    if len(actuated) < len(tree.joint_names):
        rows.append({"type": "joint_torque", "joints": {"except": actuated}, "value": 0})
    return sensor_set(*rows, name="motors")


def closed_states(tree: KinematicTree, n: int, spread: float, speed: float) -> tuple[np.ndarray, np.ndarray]:
    """Closed states (n, ...) about that at rest, far from singular ones, by steps of Newton's method."""
    rng, found = np.random.default_rng(0), []
    while len(found) < n:
        rest = mechanisms.at_rest(tree)
        Q = tree.integrate(np.tile(rest, (n, 1)).T, spread * rng.normal(size=(n, tree.nv)).T).T
        Qd = speed * rng.normal(size=(n, tree.nv))
        for _ in range(8):
            at = positions(tree, Q.T)
            J = np.moveaxis(gap_rate(at), 2, 0)
            step = -(np.linalg.pinv(J, rcond=1e-8) @ gaps(at).T[:, :, None])[:, :, 0]
            Q = tree.integrate(Q.T, step.T).T
        s = np.linalg.svd(J, compute_uv=False)
        s = np.where(s > 1e-8 * s[:, :1], s, np.inf)
        is_far = (np.abs(gaps(positions(tree, Q.T))).max(axis=0) < 1e-12) & (s.min(axis=1) > FAR * s[:, 0])
        Qd -= (np.linalg.pinv(J, rcond=1e-8) @ (J @ Qd[:, :, None]))[:, :, 0]
        found += [*zip(Q[is_far], Qd[is_far], strict=True)]
    Q, Qd = zip(*found[:n], strict=True)
    return np.array(Q), np.array(Qd)


def cassie_leg() -> KinematicTree:
    """The left leg of Cassie, whose pelvis is held."""
    whole = cassie()
    kept = whole.subtree(whole.link("left-hip-roll"))
    number = {i: k for k, i in enumerate(kept)}
    return whole.replace(
        name="cassie_leg",
        names=tuple(whole.names[i] for i in kept),
        joint_names=tuple(whole.joint_names[i] for i in kept),
        parents=tuple(number.get(whole.parents[i], -1) for i in kept),
        joints=tuple(whole.joints[i] for i in kept),
        X_tree=tuple(whole.X_tree[i] for i in kept),
        I=whole.I[list(kept)],
        frames={name: Frame(number[each.link], each.X) for name, each in whole.frames.items() if each.link in number},
        components=tuple(_of_left(each) for each in whole.components if "right" not in each.name),
        drives={},
    )


def _of_left(component: Component) -> Component:
    if isinstance(component, Loop):
        return component
    return component.model_copy(update={"joints": [name for name in component.joints if "left" in name]})


ROBOTS = {
    "four_bar": (mechanisms.four_bar, ["crank"], 20.0, 0.6),
    "delta": (mechanisms.delta, ["arm0", "arm1", "arm2"], 5.0, 0.15),
    "cassie_leg": (cassie_leg, [f"left-{joint}" for joint in CASSIE_ROTORS], 20.0, 0.1),
}


def errors(folder, robot: str, rho: float, seeds: range, n: int = 600, sigma: float = 0.05) -> np.ndarray:
    """Errors over their deviations of combinations that logs identify.

    Args:
        robot: which.
        rho: correlation of the noise of one sample with that of the next.
        seeds: one of each log, of a robot whose bodies are as far from those of its model as is expected of them.
        n: number of samples.
        sigma: of the noise.
    """
    make, actuated, size, spread = ROBOTS[robot]
    tree, read = make(), actuated
    if robot == "cassie_leg":  # at passive joints as well: more rows than its loops take, which would be exact
        read = list(tree.joint_names)
    Q, Qd = closed_states(tree, n, spread, 2.0)
    motors = [tree.v_slices[tree.joint(name)].start for name in actuated]
    wanted = [f"{k}:{name}{of}" for name in tree.names if "cross" not in name for k, of in KINDS]
    off = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        real, values = drawn(tree, rng, least=0.05)
        truth = dict(zip(Parameters.of(tree, ["inertias"]).names, values, strict=True))
        tau = np.zeros((n, tree.nv))
        tau[:, motors] = size * rng.normal(size=(n, len(motors)))
        qdd = np.array([constrained_dynamics(real, *state)[0] for state in zip(Q, Qd, tau, strict=True)])
        noisy = tau + sigma * lasting(rng, n, tree.nv, rho)
        parts = {f"tau:{name}": noisy[:, tree.v_slices[tree.joint(name)]] for name in read}
        columns = {name: part if part.shape[1] > 1 else part[:, 0] for name, part in parts.items()}
        np.savez(folder / "log.npz", t=0.01 * np.arange(n), q=Q, qd=Qd, qdd=qdd, **columns)
        found = nd.identify(
            folder / "log.npz",
            tree,
            wanted,
            sensors=sensors_of(tree, read, sigma=sigma),
            physical=False,
            held_out=0.0,
        )
        off += errors_of(found, truth)
    return np.array(off)


KINDS = ("m", ""), ("mc", ".*"), ("I", ".*")


def test_a_four_bar_is_identified_from_the_motor_of_its_crank(tmp_path):
    """Its passive joints feel the force of the loop only, which is eliminated."""
    off = errors(tmp_path, "four_bar", 0.0, range(3))
    assert len(off) >= 18
    assert 0.6 < off.std() < 1.4


@pytest.mark.long
@pytest.mark.parametrize("rho", [0.0, 0.9])
@pytest.mark.parametrize("robot", ROBOTS)
def test_nineteen_of_twenty_are_within_1_96_deviations(tmp_path, robot, rho):
    assert 0.93 < np.mean(np.abs(errors(tmp_path, robot, rho, range(100))) < 1.96) < 0.97


def rank_of_finite_motions(tree: KinematicTree) -> int:
    """Rank of the torques along closed motions over all inertias, by Pinocchio's regressor and singular values."""
    model, _, q_order, v_order = in_pinocchio(tree)
    data, h, rows, rng = model.createData(), 1e-5, [], np.random.default_rng(3)

    def J(q: np.ndarray) -> np.ndarray:
        return gap_rate(positions(tree, q))

    for q in tree.random_configurations(40 * tree.n_links, rng):
        _, s, Vt = np.linalg.svd(J(q))
        rank = int(np.sum(s > 1e-3 * s[0]))
        if (s[rank:] > 1e-12 * s[0]).any():
            continue  # next to a singular configuration
        T = Vt[rank:].T
        qd = T @ rng.normal(size=T.shape[1])
        turning = (J(tree.integrate(q, h * qd)) - J(tree.integrate(q, -h * qd))) / (2 * h) @ qd
        qdd = T @ rng.normal(size=T.shape[1]) - np.linalg.pinv(J(q), rcond=1e-6) @ turning
        Y = pin.computeJointTorqueRegressor(model, data, q[q_order], qd[v_order], qdd[v_order])
        ours = np.empty_like(Y)
        ours[v_order] = Y
        rows.append(T.T @ ours)
    W = np.vstack(rows)
    sizes = np.linalg.norm(W, axis=0)
    s = np.linalg.svd(W / np.where(sizes > 1e-7 * sizes.max(), sizes, np.inf), compute_uv=False)
    return int(np.sum(s > 1e-7 * s[0]))


@pytest.mark.parametrize("seeds", [(5, 21), pytest.param(range(40), marks=pytest.mark.long)], ids=["two", "forty"])
def test_ranks_are_those_of_finite_closed_motions(seeds):
    for seed in seeds:
        tree = closed_robots.random_mechanism(seed)
        found = nd.identifiability(nd.System(tree, sensors_of(tree, list(tree.joint_names))))
        assert found.rank == rank_of_finite_motions(tree), seed
        assert found.error is None
        assert found.base.gap > 1e6


def test_a_joint_that_stands_still_holds_all_of_a_four_bar():
    """What is left is its weight in the two postures in which it closes."""
    tree = mechanisms.four_bar()
    still = nd.identifiability(nd.System(tree, sensors_of(tree, ["crank"])), locked=["rocker"])
    assert still.rank == 2


def test_gains_of_a_four_bar_are_identifiable_up_to_one_factor():
    tree = mechanisms.four_bar()
    found = nd.identifiability(nd.System(tree, sensors_of(tree, ["crank"])), ["inertias", "gains"])
    without = nd.identifiability(nd.System(tree, sensors_of(tree, ["crank"])))
    assert [factor.name for factor in found.common_factors] == ["gain:tau:crank"]
    assert found.rank == without.rank
