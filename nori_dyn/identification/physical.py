"""Inertias that a body can have: the pseudo-inertia of ten parameters, and the metric that it gives.

With the second moments Sigma = tr(I)/2 1 - I of the mass and its first moments h = m c, all at the link's frame, the
pseudo-inertia is

    P = [[Sigma, h], [h^T, m]],

the integral of [r; 1] [r; 1]^T over the mass. It is linear in the ten parameters, and some distribution of mass has
them where P is positive semidefinite. With the prior P_0 = L L^T, the inertia relative to it is X = L^-1 P L^-T: the
unit matrix at the prior, whatever the units and the frame.

Source: Wensing, Kim and Slotine, Linear matrix inequalities for physically consistent inertial parameter
identification, 2018; Lee, Wensing and Park, Geometric robot dynamic identification, 2020.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nori_dyn.identification.parameters import Parameters, ten_of
from nori_dyn.model.inertia import (
    check_inertia,
    nearest_physical,
    rotational_inertia,
    second_moments,
)
from nori_dyn.typing import Array, Floats, Indices

THIN = 1e-6
"""Second moment of mass, as a share of the largest of the body, up to which a prior has no extent in a direction."""

LEAST_SHARE = 1e-3
"""Second moment, as a share of the largest of the body, that a prior without extent in a direction is given."""

LEAST_GYRATION = 1e-2
"""[m] Radius of gyration that a prior without any extent is given."""

LEAST_MASS = 1e-3
"""Mass that a prior without any is given, as a share of the mean of the robot's links, or of 1 kg."""

ROUNDING = 1e-14
"""Share of a pseudo-inertia that is lost in rounding, as where a small body is far from the origin of its frame."""

NEWTON, AHEAD, NEAR, SETTLED = 500, 1.0, 0.25, 1e-9
"""Steps of Newton's method at most; lengths, in the metric of the body: how far a step goes towards values that it does
not have yet, up to which it is taken whole, and up to which nothing is left to do."""

LOWER = np.tril_indices(4)
"""Where the ten numbers of a symmetric matrix (4, 4) are."""

WEIGHTS = np.where(LOWER[0] == LOWER[1], 1.0, np.sqrt(2.0))
"""What they are multiplied by, so that their scalar product is that of matrices."""


@dataclass(frozen=True, slots=True, eq=False)
class RelativeInertia:
    """The inertia of one link relative to its prior, X = 1 + the symmetric matrix of D (phi - phi_0).

    Attributes:
        link: its name.
        places: indices of its free parameters among all (k,).
        which: which of the ten they are (k,).
        prior: its ten parameters by the model, or the nearest that a body with extent in all directions can have (10,).
        is_mended: whether they are not those of the model.
        D: derivative of the ten numbers of X by the free parameters (10, k), off the diagonal times sqrt(2).
    """

    link: str
    places: Indices
    which: Indices
    prior: Floats
    is_mended: bool
    D: Floats

    def of(self, values: Floats) -> Floats:
        """X (4, 4) for values (n,) of all parameters."""
        return np.eye(4) + symmetric(self.D @ (values[self.places] - self.prior[self.which]))


def pseudo_inertia(ten: Sequence[Any] | Array) -> Array:
    """Pseudo-inertia (4, 4, ...) of the ten parameters (10, ...) of a link, over any scalar.

    Source: Wensing, Kim and Slotine, 2018.
    """
    m, x, y, z, xx, xy, yy, xz, yz, zz = ten
    return np.array(
        [
            [(yy + zz - xx) / 2, -xy, -xz, x],
            [-xy, (xx + zz - yy) / 2, -yz, y],
            [-xz, -yz, (xx + yy - zz) / 2, z],
            [x, y, z, m],
        ]
    )


def ten_of_pseudo_inertia(P: Array) -> Array:
    """Ten parameters (10, ...) of a pseudo-inertia (4, 4, ...)."""
    xx, yy, zz = P[0, 0], P[1, 1], P[2, 2]
    return np.array([P[3, 3], P[0, 3], P[1, 3], P[2, 3], yy + zz, -P[0, 1], xx + zz, -P[0, 2], -P[1, 2], xx + yy])


def symmetric(numbers: Array) -> Array:
    """Symmetric matrix (4, 4, ...) of ten numbers (10, ...), whose norm is theirs."""
    X = np.zeros((4, 4, *np.shape(numbers)[1:]))
    X[LOWER] = (numbers.T / WEIGHTS).T
    X[LOWER[::-1]] = X[LOWER]
    return X


def ten_numbers(X: Array) -> Array:
    """Ten numbers (10, ...) of a symmetric matrix (4, 4, ...), whose norm is theirs."""
    numbers: Array = (X[LOWER].T * WEIGHTS).T
    return numbers


def relative_inertias(parameters: Parameters) -> list[RelativeInertia]:
    """Inertia relative to the prior of each link with free inertial parameters.

    Parameters of a link that are not free stay as they are in the prior.
    """
    tree = parameters.tree
    masses = tree.I[:, 5, 5]
    least_mass = LEAST_MASS * (masses[masses > 0].mean() if (masses > 0).any() else 1.0)
    found = []
    for i, at in parameters.links().items():
        before = ten_of(tree.I[i])
        P, is_mended = _with_extent(pseudo_inertia(before), least_mass)
        which = np.flatnonzero(np.array(at) >= 0)
        L = np.linalg.cholesky(P)
        moved = np.linalg.solve(L, np.moveaxis(pseudo_inertia(np.eye(10)), -1, 0))
        moved = np.linalg.solve(L, np.swapaxes(moved, 1, 2))
        D = ten_numbers(np.moveaxis(moved, 0, -1))[:, which]
        prior = ten_of_pseudo_inertia(P) if is_mended else before
        found.append(RelativeInertia(tree.names[i], np.array(at)[which], which, prior, is_mended, D))
    return found


def mended_prior(parameters: Parameters) -> tuple[Floats, tuple[str, ...]]:
    """Prior values (n,) of the robot's model, with inertias that a body with extent can have, and notes.

    A model may hold inertias that no distribution of mass has, or links without mass or extent. Nearest to them, in the
    Frobenius norm of the pseudo-inertia about the centre of mass, is one without extent in some direction; it gets a
    small one, from which one sees how much larger another is.
    """
    values = parameters.prior.copy()
    mended = []
    for body in relative_inertias(parameters):
        if body.is_mended:
            values[body.places] = body.prior[body.which]
            mended.append(f"'{body.link}'")
    note = (
        f"no body with mass and extent in all directions has the inertia that the model gives {', '.join(mended)}: the "
        "nearest that one has is taken as known before."
    )
    return values, (note,) if mended else ()


def with_known(parameters: Parameters, known: Mapping[str, float]) -> tuple[Floats, dict[str, list[str]]]:
    """Values (n,) of the bodies nearest to the model's that have some known ones, and what no body has.

    Of a link of which something is known, the parameters that are not known are those with the least entropic
    divergence from the model; those that are not free stay as the model has them. Where no body has all of that,
    they stay too, and the known ones are returned by the name of the link.
    """
    values, _ = mended_prior(parameters)
    impossible: dict[str, list[str]] = {}
    for body in relative_inertias(parameters):
        names = [parameters.names[k] for k in body.places]
        own = [name for name in names if name in known]
        if own:
            goal = np.array([known.get(name, np.nan) for name in names])
            nearest = _nearest(body, goal)
            values[body.places] = np.where(np.isnan(goal), values[body.places], goal) if nearest is None else nearest
            if nearest is None:
                impossible[body.link] = own
    for name in known:
        values[parameters.place[name]] = known[name]
    return values, impossible


def _nearest(body: RelativeInertia, goal: Floats) -> Floats | None:
    """Free parameters of a link (k,), of the nearest body with some values; None where there is none.

    The values go from those of the prior to the goal along a line. All before the goal are those of some body where
    the goal is, and Newton's method follows the nearest: it goes on only as far as it is near.

    Args:
        body: the link.
        goal: what parameters have to be (k,); nan of those that are free.

    Source: Boyd and Vandenberghe, Convex Optimization, 10.2; the length of steps: 9.6; following a path: 11.5.
    """
    before, free = body.prior[body.which], np.isnan(goal)
    ten, values, last = body.prior.copy(), before, np.inf
    try:
        for _ in range(NEWTON):
            L = np.linalg.cholesky(np.eye(4) + symmetric(body.D @ (values - before)))
            inverse = np.linalg.inv(L)
            changes = ten_numbers(np.einsum("ij,jkn,lk->iln", inverse, symmetric(body.D), inverse))
            Q, R = np.linalg.qr(changes[:, free])
            ahead = changes[:, ~free] @ (goal - values)[~free]
            beside, along = Q.T @ ten_numbers(L.T @ L - np.eye(4)), Q.T @ ahead
            off, far = float(np.linalg.norm(beside)), float(np.linalg.norm(ahead - Q @ along))
            room = math.sqrt(max(AHEAD**2 - off**2, 0.0))
            share = min(room / far, 1.0) if far else 1.0
            step = np.where(free, 0.0, share * (goal - values))
            step[free] = np.linalg.solve(R, -beside - share * along)
            length = math.hypot(off, share * far)
            values = values + step / (1.0 if length < NEAR else 1.0 + length)
            if share == 1.0 and (length <= SETTLED or last / 2.0 < length < NEAR):  # or as near as rounding lets it
                ten[body.which] = values = np.where(free, values, goal)
                np.linalg.cholesky(pseudo_inertia(ten))
                return values
            last = length
    except np.linalg.LinAlgError:
        pass
    return None


def pull_back(parameters: Parameters) -> Floats:
    """Rows B (10 n_links, n) of the metric of inertias at the prior.

    |B dphi|^2 is the sum of tr((P_0^-1 dP)^2) over links, and B^T B the Hessian of the entropic divergence at the
    prior. It has no units: 1 is a change as large as the body's own inertia. Columns of what is no inertia are zero.

    Source: Lee, Wensing and Park, 2020, where it is the constant pull-back of the affine-invariant metric.
    """
    bodies = relative_inertias(parameters)
    B = np.zeros((10 * len(bodies), len(parameters)))
    for k, body in enumerate(bodies):
        B[10 * k : 10 * (k + 1), body.places] = body.D
    return B


def is_physical(parameters: Parameters, values: Floats) -> bool:
    """Whether bodies can have the inertias of parameters.

    Args:
        parameters: which parameters; other links are not looked at, and others of a link are those of the model.
        values: what they are (n,).
    """
    I = parameters.inertias(np.asarray(values, dtype=float))
    return all(_is_of_a_body(ten_of(I[i])) for i in parameters.links())


def _is_of_a_body(ten: Floats) -> bool:
    """Whether some distribution of mass, or none at all, has ten parameters."""
    if not ten[0] > 0 or not np.isfinite(ten).all():
        return not ten.any()
    m, h, P = ten[0], ten[1:4], pseudo_inertia(ten)
    I_com = rotational_inertia(P[:3, :3] - np.outer(h, h) / m)
    return bool(check_inertia("", m, h / m, I_com) or np.linalg.eigvalsh(P)[0] >= -ROUNDING * np.trace(P))


def _with_extent(P: Floats, least_mass: float) -> tuple[Floats, bool]:
    """Positive definite pseudo-inertia (4, 4), and whether it is another than the one given."""
    m, h = P[3, 3], P[:3, 3]
    c = h / m if m > 0 else np.zeros(3)
    S = P[:3, :3] - max(m, 0.0) * np.outer(c, c)
    moments = np.linalg.eigvalsh(S)
    if m > 0 and moments[0] > THIN * moments[-1]:
        return P, False
    m = max(m, least_mass)
    least = max(LEAST_SHARE * moments[-1], m * LEAST_GYRATION**2)
    about_com = np.zeros((4, 4))
    about_com[:3, :3] = second_moments(nearest_physical(rotational_inertia(S), least))
    about_com[3, 3] = m
    T = np.eye(4)
    T[:3, 3] = c
    return T @ about_com @ T.T, True
