"""How late estimates follow what persists: the price of their being calm.

At rest the rows of a tick say H of the memory m, and s = L m + noise of what else is free: u = B m, B = [L; 1]. So m
goes on by F = T B, T being how it moves on by u, with a noise Q that those of s and of its walk make. Once the filter
has settled, P is the covariance before a tick's readings, and an error e of what is known before them leaves

    G e = B (1 + P H)^-1 e    after them,    e+ = T G e = Phi e    before the next.

Let a number of the memory step, and stay: its estimate follows, and the sum of what is missing, over the step, is the
mean delay,

    dt * sum_k G Phi^k = dt * G (1 - Phi)^-1.

For an exponential approach that is its time constant, for a pure delay the delay. Outputs follow likewise; what a step
of the memory does to them is given by B: what the others do for all readings to stay as they are.

Source: own derivation (tests/unit/filtering/test_delays.py). Mean delay: W. C. Elmore, The Transient Response of Damped
Linear Networks, J. Appl. Phys. 19, 1948.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from nori_dyn.errors import SingularSystemError
from nori_dyn.filtering.knowledge import places_of
from nori_dyn.filtering.riccati import steady_state
from nori_dyn.filtering.square_root import triangular
from nori_dyn.filtering.tick_programs import TickPrograms
from nori_dyn.tables import Shown, listed, number
from nori_dyn.typing import Booleans, Floats

NEVER = 1e-9
"""How close to 1 a factor of Phi is by which an error never goes away."""

ROUNDING = 1e-12
"""Delays [s] that are shown as none."""

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
        """The delay of a number of the memory [s], the largest where a variable of several is named.

        Raises:
            UnknownNameError: it does not persist.
        """
        return float(self.seconds[places_of(self.names, name)].max())

    @property
    def largest(self) -> dict[str, float]:
        """The largest of each output, by name [s]."""
        return {name: float(np.max(each)) for name, each in self.outputs.items()}

    def to_dict(self) -> dict[str, dict[str, float | None]]:
        """The figures as data [s]; None for inf."""
        memory = dict(zip(self.names, self.seconds.tolist(), strict=True))
        both = {"memory": memory, "outputs": self.largest}
        return {of: {name: s if np.isfinite(s) else None for name, s in each.items()} for of, each in both.items()}

    def __repr__(self) -> str:
        return f"Delays({len(self.names)} numbers, {', '.join(self.outputs)})"


def delays(tick: TickPrograms, q: Floats, dt: float) -> Delays:
    """How late estimates follow what persists.

    Args:
        tick: the programs of a contact state.
        q: configuration (nq,).
        dt: time between ticks [s].

    Raises:
        SingularSystemError: the readings of a tick do not determine all there, even if what persists were known.
    """
    tree, system = tick.system.tree, tick.system
    n_s, n_v, n_f = tick.sizes
    measured = tick.measured(q, np.zeros(tree.nv), np.zeros(system.ny))
    motion = tick.motion(measured, dt)
    # What never changes is known exactly in the end, and not followed.
    changes = np.concatenate([np.ones(n_v, dtype=bool), (motion.Q > 0)[n_v:] | (motion.decay < 1)[n_v:]])
    kept = np.concatenate([np.ones(n_s, dtype=bool), changes])
    rows = np.sqrt(system.weights[tick.coordinates.weight_of_rows])[:, None] * measured.A[:, kept]
    R, _, _ = triangular(np.column_stack([rows, np.zeros(len(rows))]))
    lost = np.flatnonzero(np.diagonal(R)[:n_s] == 0)
    if len(lost):
        names = [tick.coordinates.names[k] for k in lost.tolist()]
        raise SingularSystemError(f"{listed(names, 4)} not determined at this configuration by the readings of a tick.")
    k, S = int(changes.sum()), solve_triangular(R[:n_s, :n_s], np.eye(n_s))
    B = np.vstack([-S @ R[:n_s, n_s:], np.eye(k)])
    own = motion.decay[changes]
    T = np.column_stack([np.zeros((k, n_s)), np.diag(own)])
    T[:n_v, n_s : n_s + n_v] += dt * motion.X_v
    T[:n_v, :n_s], T[:n_v, n_s + n_v :] = dt * motion.X_s, dt * motion.X_f[:, changes[n_v:]]
    by_s, walk = T[:, :n_s] @ S, motion.Q[changes]
    H = R[n_s:, n_s:].T @ R[n_s:, n_s:]
    left = np.linalg.inv(np.eye(k) + steady_state(T @ B, by_s @ by_s.T + np.diag(walk), H)[0] @ H)
    missing, is_never = _sums(B @ left, T @ B @ left)
    seconds = np.full(n_v + n_f, np.inf)
    # A step is forgotten, not followed, where what is missing goes away no faster than what decays itself.
    is_forgotten = (own < 1) & ((1 - own) * np.diagonal(missing[n_s:]) > 1 - DEPENDS)
    seconds[changes] = np.where(is_never | is_forgotten, np.inf, dt * np.diagonal(missing[n_s:]))
    slopes = tick.slopes(q, np.zeros(tree.nv), np.zeros(system.ny))[:, kept]
    follows = slopes @ B
    steps = walk * follows  # of all steps as likely those that an output shows most
    moved, late = (follows * steps).sum(axis=1), ((slopes @ missing) * steps).sum(axis=1)
    depends = moved > DEPENDS**2 * moved.max(initial=0.0)
    of_outputs = np.divide(dt * late, moved, out=np.zeros(len(moved)), where=depends)
    of_outputs[depends & (steps[:, is_never] != 0).any(axis=1)] = np.inf
    named = {part.output.name: of_outputs[part.slice].reshape(part.shape) for part in tick.parts}
    return Delays(tick.memory_names, seconds, named, dt)


def _sums(G: Floats, Phi: Floats) -> tuple[Floats, Booleans]:
    """The sum of G Phi^k over all k >= 0 (n, k), and for which numbers it is not finite (k,)."""
    values, vectors = np.linalg.eig(Phi)
    stays = np.abs(1 - values) < NEVER
    weights = np.linalg.pinv(vectors)
    # Number i keeps a share of a step of its own for ever where it takes part in a mode that stays.
    share = np.abs(vectors[:, stays] * weights[stays].T).max(axis=1, initial=0.0)
    factors = np.where(stays, 0.0, 1 / np.where(stays, 1.0, 1 - values))
    return np.asarray((G @ (vectors * factors) @ weights).real), share > 1e-6


def shown_delay(seconds: float) -> str:
    """A delay [s] as people read it, in milliseconds."""
    if abs(seconds) < ROUNDING:
        return "0"
    return number(1e3 * seconds, 3) if np.isfinite(seconds) else "inf"
