"""Robots that move as sums of sines, with other inertias than their model says; torques are those of the recursion."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

import nori_dyn as nd
from nori_dyn.identification.parameters import Parameters, ten_of
from nori_dyn.identification.regression import Regression
from nori_dyn.model.inertia import inertia_of_ten
from tests.systems import ACCELERATIONS, TORQUES, WRENCHES, sensor_set
from tests.unit.identification.inertias import pseudo_inertia_of, ten_of_pseudo_inertia

ARM = sensor_set(ACCELERATIONS, {**TORQUES, "joints": "actuated"}, {**WRENCHES, "value": 0.0}, name="arm")


def motion(nv: int, n: int, dt: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Times (n,), positions, velocities and accelerations (n, nv) of joints of one freedom each."""
    rng = np.random.default_rng(seed)
    t = np.arange(n) * dt
    size = rng.uniform(0.2, 0.8, size=(3, nv, 1))
    w, phase = rng.uniform(0.5, 5.0, size=(3, nv, 1)), rng.uniform(0, 6.3, size=(3, nv, 1))
    angle = w * t + phase
    q = np.sum(size * np.sin(angle), axis=0).T
    qd = np.sum(size * w * np.cos(angle), axis=0).T
    qdd = np.sum(-size * w**2 * np.sin(angle), axis=0).T
    return t, q, qd, qdd


def changed(tree: nd.KinematicTree, seed: int, share: float = 0.3) -> tuple[np.ndarray, nd.KinematicTree]:
    """The ten parameters of all links of another robot, whose bodies have other densities, and that robot."""
    rng = np.random.default_rng(seed)
    parameters = Parameters.of(tree, ["inertias"])
    values = parameters.prior.copy()
    for places in parameters.links().values():
        values[places] *= 1 + share * rng.uniform(-1, 1)
    return values, parameters.applied(values)


def drawn(
    tree: nd.KinematicTree, rng: np.random.Generator, least: float = -np.inf
) -> tuple[nd.KinematicTree, np.ndarray]:
    """A robot whose inertias are as far from those of a model as is expected of them, and its ten parameters.

    The pseudo-inertia [[S, h], [h^T, m]] of each link is L (1 + E) L^T, where that of the model is L L^T, and E has
    symmetric entries of variance 1 on the diagonal, 1/2 off it. A body need not have it, unless `least` is above zero:
    the least eigenvalue of 1 + E. Massless links stay so.
    """
    I = tree.I.copy()
    for i in np.flatnonzero(tree.I[:, 5, 5]):
        sizes, axes = np.linalg.eigh(pseudo_inertia_of(np.array(ten_of(tree.I[i]))))
        L, E = axes * np.sqrt(np.maximum(sizes, 0.0)), rng.normal(size=(4, 4))
        while np.linalg.eigvalsh(np.eye(4) + (E + E.T) / 2)[0] < least:
            E = rng.normal(size=(4, 4))
        I[i] = inertia_of_ten(ten_of_pseudo_inertia(L @ (np.eye(4) + (E + E.T) / 2) @ L.T))
    return tree.replace(I=I), np.concatenate([ten_of(each) for each in I])


def lasting(rng: np.random.Generator, n: int, readings: int, rho: float) -> np.ndarray:
    """Noise (n, readings) of variance 1, of which each sample has a correlation rho with the next."""
    fresh = rng.normal(size=(n, readings))
    fresh[1:] *= np.sqrt(1.0 - rho**2)
    return np.asarray(lfilter([1.0], [1.0, -rho], fresh, axis=0))


def errors_of(found: nd.results.Identification, truth: Mapping[str, float]) -> list[float]:
    """Errors over their deviations of the combinations that logs identify."""
    return [
        (each.value - sum(factor * truth[name] for name, factor in each.terms.items())) / each.deviation
        for each in found.combinations
        if each.left < 0.1
    ]


def saved_log(
    path: Path, tree: nd.KinematicTree, n: int = 2000, dt: float = 0.01, sigma: float = 0.0, seed: int = 0
) -> Path:
    """Write the log of a robot of joints of one freedom each, with torques of the recursion and white noise on them."""
    t, q, qd, qdd = motion(tree.nv, n, dt, seed)
    tau = nd.rnea(tree, q.T, qd.T, qdd.T).T
    tau = tau + sigma * np.random.default_rng(seed + 1).normal(size=tau.shape)
    np.savez(path, t=t, q=q, qd=qd, qdd=qdd, tau=tau)
    return path


def at_motions(found: Regression, Q, Qd, Qdd, Y=None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W, N and c at some motions (N, ...), every reading zero where none are given."""
    state = {"q": Q, "qd": Qd, "qdd": Qdd, "y": np.zeros((len(Q), found.system.ny)) if Y is None else Y}
    values = {x.index: state[name][:, k] for name, array in found.inputs.items() for k, x in enumerate(array)}
    layout, entries = found.entries(range(len(found.parameters)))
    return layout.dense(np.broadcast_to(found.graph.evaluate(entries, values), (len(entries), len(Q))).T)
