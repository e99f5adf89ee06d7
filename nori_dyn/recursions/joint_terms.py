"""Terms of components at the joints, from the same parts as the system: J qdd + h(q, qd), see docs/design.md, 2.5.

The recursions include known terms at joints: the inertia of rotors, friction, springs, and passive tendons
over joints. What acts on bodies, or has a force that is to be found, such as a loop, goes beyond a recursion from joint
to joint.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nori_dyn.algebra.derivatives import directional
from nori_dyn.algebra.expressions import Expr, Graph
from nori_dyn.algebra.spatial import add, zeros
from nori_dyn.errors import UnsupportedComponentError
from nori_dyn.model.kinematics import positions, velocities
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.newton_euler import acting_on, added_bias
from nori_dyn.system.parts import Averaged, Part, parts_of
from nori_dyn.system.rows import NewtonEuler
from nori_dyn.system.trace import configuration_inputs, freedoms
from nori_dyn.system.variables import VariableKey
from nori_dyn.typing import Array, Floats


@dataclass(frozen=True, slots=True, eq=False)
class JointTerms:
    """The motor torques beside the joint torques, tau - tau_J = J qdd + h(q, qd).

    Attributes:
        tree: the robot.
        parts: the parts of its components.
        J: the inertia of rotors (nv, nv), constant, a block a joint.
    """

    tree: KinematicTree
    parts: tuple[Part, ...]
    J: Floats

    def with_rotors(self, M: Array) -> Array:
        """M + J for an inertia matrix M (nv, nv, ...) of rigid bodies."""
        return add(M, self.J) if self.parts else M

    def force(self, q: Array, qd: Array) -> Array:
        """The forces h (nv, ...) at q (nq, ...) and qd (nv, ...): friction and springs."""
        h = zeros((self.tree.nv,), qd)
        if not self.parts:
            return h
        at = velocities(self.tree, q, qd)
        for i, v in enumerate(self.tree.v_slices):
            on = NewtonEuler("tau", i)
            h[v] = added_bias(on, acting_on(on, self.parts), at, h[v])
        return h

    def force_rates(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """The derivatives of h by q, along the freedoms, and by qd, each (nv, nv, ...)."""
        n = self.tree.nv
        by_q, by_qd = (zeros((n, n), qd) for _ in range(2))
        if not self.parts:
            return by_q, by_qd
        graph, inputs, places, rates = _derived_forces(self)
        numbers = np.concatenate([q, qd])
        state = {i: numbers[k, ...] for k, i in enumerate(inputs)}  # an array, where it is a symbol as well
        for (row, column), rate in zip(places, graph.evaluate(rates, state), strict=True):
            (by_q if column < n else by_qd)[row, column % n] = rate
        return by_q, by_qd


@lru_cache(maxsize=16)
def _derived_forces(terms: JointTerms) -> tuple[Graph, list[int], list[tuple[int, int]], list[Expr]]:
    """The derivatives of h by q and then qd: the expressions, their inputs q and qd, their indices and values."""
    graph, tree = Graph(), terms.tree
    q = np.array(configuration_inputs(graph, tree), dtype=object)
    qd = np.array([graph.input(f"qd[{k}]") for k in range(tree.nv)], dtype=object)
    directions = [*freedoms(graph, tree, q), *({x.index: graph.one} for x in qd)]
    found = directional([graph.expr(x) for x in terms.force(q, qd)], directions, "forward")
    return graph, [x.index for x in (*q, *qd)], list(found), list(found.values())


@lru_cache(maxsize=16)
def joint_terms(tree: KinematicTree) -> JointTerms:
    """The terms of a robot's components at its joints.

    Raises:
        UnsupportedComponentError: a component does more than act on joints one by one: names it.
    """
    parts = tuple(part.on_average if isinstance(part, Averaged) else part for part in parts_of(tree))
    for part in parts:
        if part.unknowns or part.equations or any(on.gives != "tau" for on in part.acts_on):
            raise unsupported(tree, part, "The recursive algorithms include rotors, friction and springs in joints.")
    J = _inertia(tree, parts, tree.neutral_configuration())
    J.flags.writeable = False
    return JointTerms(tree, parts, J)


def check_components(tree: KinematicTree) -> None:
    """Check that the recursions know all components of a robot.

    Raises:
        UnsupportedComponentError: there is one that they do not.
    """
    joint_terms(tree)


def unsupported(tree: KinematicTree, part: Part, why: str) -> UnsupportedComponentError:
    """The error of a component that an algorithm does not take in."""
    return UnsupportedComponentError(
        f"robot '{tree.name}' has '{part.name}'. {why} Plan the robot instead, nd.plan(nd.System(tree, "
        "'forward_dynamics')) or with other sensors, which takes in all components; or leave this one out: "
        "tree.replace(components=...).",
        part.name,
    )


def _inertia(tree: KinematicTree, parts: tuple[Part, ...], q: Floats) -> Floats:
    """J, which must be that of each joint alone, and the same everywhere."""
    J = np.zeros((tree.nv, tree.nv))
    elsewhere = tree.random_configuration(np.random.default_rng(0)) if parts else q
    at, there = positions(tree, q), positions(tree, elsewhere)
    for part in parts:
        for on in part.acts_on:
            own, v = VariableKey("qdd", on.body), tree.v_slices[on.body]
            blocks, others = part.blocks(on, at), part.blocks(on, there)
            if set(blocks) - {own} or any(not np.array_equal(blocks[key], others[key]) for key in blocks):
                raise unsupported(tree, part, "The recursive algorithms include constant inertias of single joints.")
            J[v, v] += blocks.get(own, 0.0)
    return J
