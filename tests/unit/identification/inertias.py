"""Inertias by their definition: sums over points that have mass."""

import numpy as np


def pseudo_inertia_of(ten: np.ndarray) -> np.ndarray:
    """The pseudo-inertia (4, 4) of ten parameters m, m c, xx, xy, yy, xz, yz, zz, over any scalar."""
    m, h, (xx, xy, yy, xz, yz, zz) = ten[0], ten[1:4], ten[4:]
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return np.block([[np.trace(I) / 2 * np.eye(3) - I, h[:, None]], [h[None], np.array([[m]])]])


def ten_of_pseudo_inertia(P: np.ndarray) -> np.ndarray:
    """The ten parameters of a pseudo-inertia (4, 4)."""
    I = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
    return np.array([P[3, 3], *P[3, :3], I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]])


def cloud(masses: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ten parameters and the pseudo-inertia of points (n, 3) with masses (n,)."""
    x, y, z = points.T
    moments = [y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y]
    homogeneous = np.column_stack([points, np.ones(len(points))])
    P = (homogeneous.T * masses) @ homogeneous
    return np.array([masses.sum(), *(masses @ points), *(masses @ np.transpose(moments))]), P


def random_body(rng: np.random.Generator) -> np.ndarray:
    """The ten parameters of a random body."""
    return cloud(rng.uniform(0.1, 1.0, 12), rng.normal(size=3) * 0.2 + rng.normal(size=(12, 3)) * 0.1)[0]


def divergence(P: np.ndarray, P0: np.ndarray) -> float:
    """The entropic divergence."""
    X = np.linalg.solve(P0, P)
    return float(np.trace(X) - np.log(np.linalg.det(X)) - 4)
