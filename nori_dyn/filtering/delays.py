"""How late estimates follow what persists: the price of their being calm.

At rest, and once the filter has settled, an error e of what is known of the memory before a tick's readings leaves an
error G e of what is free after them, with R the square-root information before and P the covariance after,

    G = P[:, m] R^T R,    e+ = T G e = Phi e,

T being how the memory moves on. Let a number of the memory step, and stay: its estimate follows, and the sum of what is
missing, over the step, is the mean delay,

    dt * sum_k G Phi^k = dt * G (I - Phi)^-1.

For an exponential approach that is its time constant, for a pure delay the delay. Outputs follow likewise; what a step
of the memory does to them is told by what the other unknowns must do for all readings to stay as they are.

Source: own derivation (tests/unit/filtering/test_delays.py); the mean delay of a step is that of W. C. Elmore, The
Transient Response of Damped Linear Networks, J. Appl. Phys. 19, 1948.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nori_dyn.filtering.knowledge import places_of
from nori_dyn.filtering.square_root import Information, Motion, propagated, updated
from nori_dyn.filtering.tick import Tick
from nori_dyn.program.layout import output_parts
from nori_dyn.tables import Document, Paragraph, Shown, Table, number
from nori_dyn.typing import Booleans, Floats

SETTLED = 1e-10
"""Relative change of Phi in a tick from which on a filter has settled."""

MOST_TICKS = 20_000
"""Ticks after which it is taken as it is."""

NEVER = 1e-9
"""How close to 1 a factor of Phi is by which an error never goes away."""

DEPENDS = 1e-9
"""The share of the largest from which on an output depends on what persists."""


@dataclass(frozen=True, eq=False)
class Delays(Shown):
    """How late estimates follow a step of what persists, at rest, once the filter has settled [s].

    Attributes:
        names: the name of each number of the memory (k).
        seconds: the mean delay of each (k,) [s]; inf for what is constant, and for what no reading tells there.
        outputs: that of the outputs by name, in their shapes [s]: 0 for what does not depend on what persists.
        dt: time between ticks [s].
    """

    names: tuple[str, ...]
    seconds: Floats
    outputs: Mapping[str, Floats]
    dt: float

    def __getitem__(self, name: str) -> float:
        """Return the delay of a number of the memory [s], the largest where a variable of several is named.

        Raises:
            UnknownNameError: it does not persist.
        """
        return float(self.seconds[places_of(self.names, name)].max())

    def __repr__(self) -> str:
        return f"Delays({len(self.names)} numbers, {', '.join(self.outputs)})"

    def shown(self) -> Document:
        rows = [(name, _shown(seconds)) for name, seconds in zip(self.names, self.seconds.tolist(), strict=True)]
        memory = Table("Delays of what persists", ("of", "mean delay [ms]"), tuple(rows), left=(0,), most=60)
        worst = tuple((name, _shown(float(np.max(each)))) for name, each in self.outputs.items())
        outputs = Table("Delays of outputs", ("of", "largest mean delay [ms]"), worst, left=(0,), most=60)
        words = "At rest, after a step of what persists, once the filter has settled; inf where nothing follows."
        return Document((memory, outputs, Paragraph(words)))


def delays(tick: Tick, q: Floats, dt: float) -> Delays:
    """Return how late estimates follow what persists.

    Args:
        tick: the programs of a contact state.
        q: configuration (nq,).
        dt: time between ticks [s].
    """
    tree, system = tick.system.tree, tick.system
    n_s, n_v, n_f = tick.sizes
    said = tick.said(q, np.zeros(tree.nv), np.zeros(system.ny))
    weights, motion = system.weights[tick.freed.weight_of_rows], tick.motion(said, dt)
    goes = np.concatenate([np.ones(n_s + n_v, dtype=bool), (motion.Q > 0)[n_v:] | (motion.decay < 1)[n_v:]])
    kept = goes[n_s:]
    own = Motion(dt, motion.X_s, motion.X_f[:, kept[n_v:]], motion.x, motion.decay[kept], motion.Q[kept])
    A = said.A[:, goes]
    start = tick.beginning()
    G, Phi = _settled(Information(start.R[np.ix_(kept, kept)], np.zeros(kept.sum())), A, weights, own)
    missing, is_never = _sums(G, Phi)
    # What the other unknowns do for all readings to stay as they are.
    roots = np.sqrt(weights)[:, None]
    others = -np.linalg.pinv(roots * A[:, :n_s]) @ (roots * A[:, n_s:])
    B = np.vstack([others, np.eye(own.n_v + len(own.Q) - own.n_v)])
    seconds = np.full(n_v + n_f, np.inf)
    seconds[kept] = np.where(is_never, np.inf, dt * np.diagonal(missing[n_s:]))
    slopes = tick.slopes(q)[:, goes]
    follows = slopes @ B
    steps = own.Q * follows
    moved, late = (follows * steps).sum(axis=1), ((slopes @ missing) * steps).sum(axis=1)
    depends = moved > DEPENDS**2 * moved.max(initial=0.0)
    of_outputs = np.divide(dt * late, moved, out=np.zeros(len(moved)), where=depends)
    of_outputs[depends & (steps[:, is_never] != 0).any(axis=1)] = np.inf
    parts = output_parts(tick.freed.plan.system, tick.freed.plan.outputs)
    named = {part.output.name: of_outputs[part.slice].reshape(part.shape) for part in parts}
    return Delays(tick.memory_names, seconds, named, dt)


def _settled(before: Information, A: Floats, weights: Floats, motion: Motion) -> tuple[Floats, Floats]:
    """Return G (n, k) and Phi (k, k) of a filter that has settled."""
    n, k = A.shape[1], len(motion.Q)
    n_s, n_v = n - k, motion.n_v
    T = np.zeros((k, n))
    T[:, n_s:] = np.diag(motion.decay)
    T[:n_v, :n_s], T[:n_v, n_s + n_v :] = motion.dt * motion.X_s, motion.dt * motion.X_f
    c, last = np.zeros(len(A)), np.full((k, k), np.inf)
    G = Phi = np.zeros((n, k))
    for _ in range(MOST_TICKS):
        after = updated(before, A, c, weights, n_s)
        P = after.covariance()
        G = np.where(np.isnan(P[:, n_s:]), 0.0, P[:, n_s:]) @ (before.R.T @ before.R)
        Phi = T @ G
        if np.abs(Phi - last).max(initial=0.0) <= SETTLED * max(np.abs(Phi).max(initial=0.0), 1.0):
            break
        last, before = Phi, propagated(after, motion)
    return G, Phi


def _sums(G: Floats, Phi: Floats) -> tuple[Floats, Booleans]:
    """Return the sum of G Phi^k over all k >= 0 (n, k), and for which numbers it is not finite (k,)."""
    values, vectors = np.linalg.eig(Phi)
    stays = np.abs(1 - values) < NEVER
    weights = np.linalg.pinv(vectors)
    # Number i keeps a share of a step of its own for ever where it takes part in a mode that stays.
    share = np.abs(vectors[:, stays] * weights[stays].T).max(axis=1, initial=0.0)
    factors = np.where(stays, 0.0, 1 / np.where(stays, 1.0, 1 - values))
    return np.asarray((G @ (vectors * factors) @ weights).real), share > 1e-6


def _shown(seconds: float) -> str:
    return number(1e3 * seconds, 3) if np.isfinite(seconds) else "inf"
