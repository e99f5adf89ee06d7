"""Joints of a robot that move, others that follow, and those that stand still."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nori_dyn.identification.dependent_joints import DependentJoints
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats


@dataclass(frozen=True, eq=False)
class MovingJoints:
    """Joints of one freedom that move independently, others that follow, and those of a robot that stand still.

    Attributes:
        tree: the robot.
        bodies: those whose joints move independently.
        still: the configuration (nq,) of those that stand still.
        dependents: the freedoms that follow; None where none do.
    """

    tree: KinematicTree
    bodies: tuple[int, ...]
    still: Floats
    dependents: DependentJoints | None = None

    @cached_property
    def of_q(self) -> list[int]:
        """Numbers in q of those that move independently."""
        return [self.tree.q_slices[i].start for i in self.bodies]

    @cached_property
    def of_v(self) -> list[int]:
        """Their freedoms."""
        return [self.tree.v_slices[i].start for i in self.bodies]

    @cached_property
    def moved(self) -> list[int]:
        """All freedoms that move, these first."""
        return self.of_v if self.dependents is None else self.dependents.moved.tolist()

    @cached_property
    def followers(self) -> tuple[int, ...]:
        """Bodies whose joints, of one freedom, follow."""
        single = [i for i, joint in enumerate(self.tree.joints) if (joint.nq, joint.nv) == (1, 1)]
        return tuple(i for i in single if self.tree.v_slices[i].start in self.moved and i not in self.bodies)

    def whole(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Floats, Floats]:
        """Motion q (N, nq), qd and qdd (N, nv) of the robot from that of independent joints (N, n_joints).

        Samples at which loops cannot be closed are no numbers.
        """
        n, nv = len(q), self.tree.nv
        every = np.tile(self.still, (n, 1)), np.zeros((n, nv)), np.zeros((n, nv))
        every[0][:, self.of_q], every[1][:, self.of_v], every[2][:, self.of_v] = q, qd, qdd
        return every if self.dependents is None else self.dependents.whole(*every)

    def pullback(self, q: Floats, qd: Floats, qdd: Floats, by: Floats) -> Floats:
        """Derivatives (3, N, n_joints) by independent joints, of those by all that move (3, N, n_moved)."""
        return by if self.dependents is None else self.dependents.pullback(q, qd, qdd, by)
