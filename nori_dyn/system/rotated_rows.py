"""Weighed vectors read along the axes of the program's frames instead of a sensor's own: rows with fewer numbers.

Components that share a weight may be read along any axes: the sum of their squares is the same. Along those of the
internal frame of its link an accelerometer at r reads a point of a rigid body, a + alpha x r + w x (w x r).

Source: own derivation (tests/unit/system/test_rotated_rows.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nori_dyn.algebra.expressions import Expr
from nori_dyn.algebra.ranges import numbers, width
from nori_dyn.algebra.spatial import Transform, centripetal, cross, inertial_force, join, matvec
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.system.equation import Equation, Turnable
from nori_dyn.system.massless_frames import FrameBuilder
from nori_dyn.system.optimality import RotatedRow
from nori_dyn.system.variables import VariableKey
from nori_dyn.typing import Array


def rotated_rows(of: FrameBuilder, at: Kinematics) -> dict[int, RotatedRow]:
    """The rows in place of weighed rows of vectors, by the number of the row.

    Args:
        of: the frames of the program.
        at: the kinematics of the links' own frames.
    """
    found: dict[int, RotatedRow] = {}
    for block in of.system.sensor_rows:
        equation = block.equation
        if width(block.weights) != 1 or not isinstance(equation, Turnable):
            continue
        (key,) = equation.blocks(at)
        turned = equation.along(of.links[key.body].C) if key.kind in ("a", "f") else None
        if turned is not None:
            inner, turn = turned
            y = of.state.y[block.y]
            y = matvec(of.over_expressions(turn), y) if len(y) else y
            found |= zip(numbers(block.slice), _rows(of, inner, key, at, y), strict=True)
    return found


def _rows(of: FrameBuilder, equation: Equation, key: VariableKey, at: Kinematics, y: Array) -> Iterator[RotatedRow]:
    """Yield rows on a variable in the internal frame of its body.

    What they are beside it is first written for a body that turns on the spot, see `bias_of_components`.
    """
    i, J, zero = key.body, of.links[key.body].J, np.zeros(3)
    w, v, expr = of.w[i], of.v[i], of.state.graph.expr

    def bias(velocity: Array) -> Array:
        return equation.bias(replace(at, v=(*at.v[:i], velocity, *at.v[i + 1 :])), y)

    M, at_rest, _ = equation.blocks(at)[key], bias(np.zeros(6)), bias(join(w, zero))
    terms = [(of.a[i], M)]
    known = bias(join(w, v)) + matvec(M, join(zero, -cross(w, v)))
    if key.kind == "f":
        terms = [(of.f[i], M), (of.a[i], M @ J)]
        known = at_rest + matvec(M, inertial_force(J, w))
    for k in range(0, len(M), 3):
        vector = slice(k, k + 3)
        moves = [expr(x) - expr(y) for x, y in zip(known[vector], at_rest[vector], strict=True)]
        is_point = key.kind == "a" and _is_point(M[vector], moves, w)
        for row in range(k, k + 3):
            entries = {c: expr(x) for columns, M in terms for c, x in zip(columns, M[row].tolist(), strict=True) if x}
            yield RotatedRow(entries, expr(known[row]), expr(at_rest[row]) if is_point else None, i)


def _is_point(M: Array, moves: list[Expr], w: Array) -> bool:
    """Whether rows M (3, 6) of an acceleration and their bias read the acceleration of a point."""
    X = Transform(np.eye(3), np.array([M[1, 2], M[2, 0], M[0, 1]]))
    graph = moves[0].graph
    of_point = [graph.expr(x).index for x in centripetal(w, X.r)]
    return np.array_equal(M, X.motion_matrix()[3:]) and [x.index for x in moves] == of_point
