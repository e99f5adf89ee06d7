"""Surfaces of links: points spread evenly over boxes, solids of revolution and meshes, with their outward normals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nori_dyn.typing import Booleans, Floats

SIDES = 32
"""Sides of a solid of revolution."""

TOGETHER = 40_000
"""Pairs of a point and a triangle that are looked at together: their numbers stay in a cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """Points on the surface of a link, each of which stands for as much of its area.

    Attributes:
        points: where they are (n, 3) [m].
        normals: unit normals outwards (n, 3).
        triangles: what they are on (m, 3, 3) [m], counter-clockwise from outside.

    Frame: that of the link.

    Example:
        >>> square = np.array([[[0, 0, 0], [1, 0, 0], [1, 1, 0]], [[0, 0, 0], [1, 1, 0], [0, 1, 0]]], dtype=float)
        >>> surface = nd.tools.Surface.of(square, spacing=0.1)
        >>> surface.points.shape, surface.area, surface.normals[0]
        ((100, 3), 1.0, array([0., 0., 1.]))
    """

    points: Floats
    normals: Floats
    triangles: Floats

    @staticmethod
    def of(triangles: Floats, spacing: float, seed: int = 0) -> Surface:
        """Points on triangles, about so far apart.

        Args:
            triangles: corners (m, 3, 3) [m], counter-clockwise from outside.
            spacing: how far apart [m].
            seed: of where points are within their share of the area.
        """
        a, b, c = np.moveaxis(triangles, 1, 0)
        crossed = np.cross(b - a, c - a)
        doubled = np.linalg.norm(crossed, axis=1)
        keep = doubled > 0
        a, b, c, crossed, doubled = a[keep], b[keep], c[keep], crossed[keep], doubled[keep]
        area = float(doubled.sum()) / 2
        n, rng = max(1, round(area / spacing**2)), np.random.default_rng(seed)
        shares = (np.arange(n) + rng.uniform(size=n)) / n
        k = np.minimum(np.searchsorted(np.cumsum(doubled) / doubled.sum(), shares), len(a) - 1)
        u, v = rng.uniform(size=(2, n, 1))
        u, v = np.where(u + v > 1, 1 - u, u), np.where(u + v > 1, 1 - v, v)
        points = a[k] + u * (b[k] - a[k]) + v * (c[k] - a[k])
        return Surface(points, crossed[k] / doubled[k, None], triangles)

    @property
    def area(self) -> float:
        """Area [m^2]."""
        a, b, c = np.moveaxis(self.triangles, 1, 0)
        return float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()) / 2

    def encloses(self, points: Floats) -> Booleans:
        """Whether points (n, 3) are inside: by the solid angle under which they see the surface.

        Source: van Oosterom and Strackee, IEEE Trans. Biomedical Engineering 30, 1983.
        """
        corners = np.moveaxis(self.triangles, 1, 0)
        a, b, c = corners
        pairs = [(one, other) for k, one in enumerate(corners) for other in corners[k:]]
        products = [(np.sum(one * other, axis=1), (one + other).T) for one, other in pairs]
        normals = np.cross(b - a, c - a)
        heights = np.sum(a * normals, axis=1)

        def is_inside(x: Floats) -> Booleans:
            # products of what leads from each point to two corners
            aa, ab, ac, bb, bc, cc = (at - x @ sums + np.sum(x * x, axis=1)[:, None] for at, sums in products)
            la, lb, lc = (np.sqrt(np.maximum(square, 0.0)) for square in (aa, bb, cc))
            halves = np.arctan2(heights - x @ normals.T, la * lb * lc + ab * lc + bc * la + ac * lb)
            return np.asarray(halves.sum(axis=1) > np.pi)  # 2 pi inside, 0 outside

        inside = ((points > corners.min(axis=(0, 1))) & (points < corners.max(axis=(0, 1)))).all(axis=1)
        places = np.flatnonzero(inside)
        for part in np.array_split(places, len(places) * len(normals) // TOGETHER + 1):
            inside[part] = is_inside(points[part])
        return np.asarray(inside)

    def keeping(self, kept: Booleans) -> Surface:
        """The surface with some of its points (n,) only."""
        return replace(self, points=self.points[kept], normals=self.normals[kept])


def box(size: Sequence[float] | Floats) -> Floats:
    """The triangles (12, 3, 3) of a box about the origin, of its edges [m]."""
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * size
    sides = (0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)
    return corners[[corner for i, j, k, l in sides for corner in ((i, j, k), (i, k, l))]]


def revolved(radii: Floats, heights: Floats) -> Floats:
    """The triangles (m, 3, 3) of a profile turned about z: radii and heights (n,) [m], from below upwards."""
    angles = np.linspace(0.0, 2 * np.pi, SIDES + 1)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    level = np.broadcast_to(heights[:, None, None], (len(radii), SIDES + 1, 1))
    rings = np.concatenate([radii[:, None, None] * around, level], axis=-1)
    low, high, left, right = rings[:-1, :-1], rings[1:, :-1], rings[:-1, 1:], rings[1:, 1:]
    halves = np.stack([low, left, right], axis=2), np.stack([low, right, high], axis=2)
    return np.concatenate([half.reshape(-1, 3, 3) for half in halves])


def cylinder(radius: float, length: float) -> Floats:
    """The triangles of a cylinder along z about the origin [m]."""
    return revolved(np.array([0.0, radius, radius, 0.0]), np.array([-1.0, -1.0, 1.0, 1.0]) * length / 2)


def sphere(radius: float) -> Floats:
    """The triangles of a sphere about the origin [m]."""
    return capsule(radius, 0.0)


def capsule(radius: float, length: float) -> Floats:
    """The triangles of a capsule along z about the origin, of the length between its ends' centres [m]."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, SIDES)
    shifts = np.where(angles < 0, -length / 2, length / 2)
    return revolved(radius * np.cos(angles), radius * np.sin(angles) + shifts)
