"""A system over expressions whose rotations are exactly orthogonal, so that ranks that hang on it are right.

The rotations of a model file are orthogonal only to rounding. In exact arithmetic that is not orthogonal at all, and a
null vector that exists because a force and a couple across it do no work on each other would be lost. So each constant
rotation is taken to be the exact one next to it: turns in a plane by rational points of the circle.

Source: own derivation (tests/agreement/test_observability.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import reduce

import numpy as np

from nori_dyn.algebra.expressions import Expr, Graph
from nori_dyn.algebra.planar import is_signed_permutation, planar_factors, turns_onto_z
from nori_dyn.algebra.spatial import Transform, blocks, matmul, transpose
from nori_dyn.model.joints import Joint
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.trace import SymbolicState, symbolic_state, traced_entries
from nori_dyn.typing import Array

Z_AXIS = (0.0, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class ExactTree(KinematicTree):
    """A tree whose constant transforms turn by exact rotations.

    Attributes:
        arena: the expressions that they are made of.
    """

    arena: Graph = field(kw_only=True)

    @staticmethod
    def of(tree: KinematicTree, graph: Graph) -> ExactTree:
        """A tree with exact rotations."""
        return ExactTree(**{part.name: getattr(tree, part.name) for part in fields(tree)}, arena=graph)

    def constant(self, X: Transform) -> Transform:
        """A transform with the exact rotation next to its own."""
        return Transform(exact_rotation(self.arena, planar_factors(X.E)), X.r)


def exact_rotation(graph: Graph, turns: tuple[Array, ...]) -> Array:
    """The product (3, 3) of turns in a plane, the first to be applied first, as an exactly orthogonal matrix.

    Args:
        graph: where its expressions live.
        turns: rotations (3, 3) that relabel the axes or turn about one, as `planar_factors` returns them.
    """
    return reduce(lambda E, turn: matmul(_exact_turn(graph, turn), E), turns, np.eye(3))


def _exact_turn(graph: Graph, turn: Array) -> Array:
    if is_signed_permutation(turn):
        return turn
    i, j = map(int, np.argwhere(turn - np.diag(np.diag(turn)))[0])  # a cosine may round to 1 where its sine is not 0
    c, s = graph.fixed_turn(float(turn[i, i]), float(turn[i, j]))
    exact = turn.astype(object)
    exact[i, i], exact[i, j], exact[j, i], exact[j, j] = c, s, -s, c
    return exact


def exact_positions(tree: ExactTree, q: Array) -> Kinematics:
    """The transforms and motion subspaces at a configuration q (nq,) of expressions, exactly orthogonal."""
    X_up, S = [], []
    for i, joint in enumerate(tree.joints):
        X_J, S_i = _exact_joint(tree.arena, joint, q[tree.q_slices[i]])
        X_up.append(X_J @ tree.constant(tree.X_tree[i]))
        S.append(S_i)
    return Kinematics(tree, tuple(X_up), tuple(S), q)


def _exact_joint(graph: Graph, joint: Joint, q: Array) -> tuple[Transform, Array]:
    """The transform and the motion subspace of a joint: one with an axis moves about z, between fixed turns."""
    axis = getattr(joint, "axis", None)
    turns = () if axis is None else turns_onto_z(np.array(axis))
    if not turns:
        return joint.transform(q), joint.S(q)
    C = exact_rotation(graph, turns)
    about_z = replace(joint, axis=Z_AXIS)  # type: ignore[type-var]
    X = Transform(transpose(C), np.zeros(3)) @ about_z.transform(q) @ Transform(C, np.zeros(3))
    zero = np.zeros((3, 3))
    return X, matmul(blocks(transpose(C), zero, zero, transpose(C)), about_z.S(q))


@dataclass(frozen=True, slots=True, eq=False)
class ExactSystem:
    """The entries of D that are not zero for all q, as expressions with exact rotations.

    Attributes:
        state: the inputs.
        shape: number of rows and columns.
        entries: by row and column.
    """

    state: SymbolicState
    shape: tuple[int, int]
    entries: dict[tuple[int, int], Expr]


def exact_system(system: System, seed: int = 0) -> ExactSystem:
    """A system over expressions, all rows of it, weighed or not, with exact rotations.

    Args:
        system: the system; it may have any number of rows.
        seed: seed of the random point of the fingerprints.
    """
    state = symbolic_state(system, seed)
    graph = state.graph
    tree = ExactTree.of(system.tree, graph)
    entries = traced_entries(system.replace(tree), exact_positions(tree, state.q), graph)
    return ExactSystem(state, system.shape, entries)
