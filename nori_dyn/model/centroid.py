"""The centre of mass of a robot and its centroidal frame: axes of the world, at the centre of mass.

Source: Orin, Goswami and Lee, Centroidal dynamics of a humanoid robot, Autonomous Robots 35, 2013; own derivation
(tests/unit/recursions/test_centroidal.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nori_dyn.algebra.crossing import as_transform
from nori_dyn.algebra.spatial import Transform, add, cross_force, matmul, matvec, rigid_parts, spread, transpose
from nori_dyn.errors import ModelError
from nori_dyn.model.kinematics import Kinematics, world_transforms
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class CentroidalFrame:
    """The centroidal frame of a robot at a configuration.

    Attributes:
        at: the configuration.
        com: its origin, the centre of mass, in world coordinates (3, ...) [m].
        X: transform from this frame to each link's.
    """

    at: Kinematics
    com: Array
    X: tuple[Transform, ...]

    @property
    def momentum_matrix(self) -> Array:
        """A_G (6, nv, ...) of the momentum h_G = A_G qd, angular first."""
        tree, batch = self.at.tree, self.at.q.shape[1:]
        I_c = [spread(np.asarray(I), (6, 6), batch) for I in tree.I]
        A: list[Array] = []
        for i in reversed(range(tree.n_links)):
            S = spread(self.at.S[i], (6, tree.joints[i].nv), batch)
            A.insert(0, self.X[i].force_to_parent(matmul(I_c[i], S)))
            if not tree.is_root(i):
                parent = tree.parents[i]
                I_c[parent] = I_c[parent] + as_transform(self.at.X_up[i]).inertia_to_parent(I_c[i])
        return np.concatenate(A, axis=1)

    @property
    def momentum_bias(self) -> Array:
        """The rate of the momentum at rest of the joints' accelerations, dA_G/dt qd (6, ...)."""
        at, tree = self.at, self.at.tree
        a: list[Array] = []
        total = 0 * at.v[0]
        for i, parent in enumerate(tree.parents):
            a.append(at.c[i] if tree.is_root(i) else as_transform(at.X_up[i]).apply_motion(a[parent]) + at.c[i])
            I = np.asarray(tree.I[i])
            f = matvec(I, a[i]) + cross_force(at.v[i], matvec(I, at.v[i]))
            total = total + self.X[i].force_to_parent(f)
        return total


def centroidal_frame(at: Kinematics) -> CentroidalFrame:
    """The centroidal frame of a robot, exact to rounding wherever in the world it is.

    Raises:
        ModelError: the robot has no mass.
    """
    tree = at.tree
    mass = mass_of(tree)
    roots = {i: as_transform(X) for i, X in enumerate(at.X_up) if tree.is_root(i)}
    origin = next(iter(roots.values())).r
    near = {i: Transform(X.E, add(X.r, -origin)) for i, X in roots.items()}  # what follows is as small as the robot
    X_0 = world_transforms(tree, {i: near.get(i, X) for i, X in enumerate(at.X_up)})
    com = 0 * origin
    for i in range(tree.n_links):
        _, h, m = rigid_parts(np.asarray(tree.I[i]))
        com = add(com, add(m * X_0[i].r, matvec(transpose(X_0[i].E), h)) / mass)
    return CentroidalFrame(
        at, add(origin, com), tuple(Transform(X_0[i].E, add(X_0[i].r, -com)) for i in range(tree.n_links))
    )


def mass_of(tree: KinematicTree) -> float:
    """The mass of all links that move [kg].

    Raises:
        ModelError: it is zero.
    """
    mass = float(tree.I[:, 5, 5].sum())
    if not mass > 0:
        raise ModelError(f"robot '{tree.name}' has no mass.")
    return mass
