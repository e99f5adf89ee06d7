"""A function of a robot as expressions: its inputs and outputs by name, and the derivatives of these by those."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nori_dyn.algebra.derivatives import Direction, Mode, directional, replaced
from nori_dyn.algebra.expressions import Expr, Graph
from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.aba import aba
from nori_dyn.recursions.crba import inertia_forward_dynamics
from nori_dyn.recursions.minverse import inverse_by_bodies, inverse_by_factors
from nori_dyn.recursions.rnea import rnea
from nori_dyn.recursions.state import shapes_of
from nori_dyn.system.trace import configuration_inputs
from nori_dyn.typing import Array

Function = Callable[..., Any]
Shapes = Mapping[str, tuple[int, ...]]

RESULT = "result"
"""Name of what a function returns that returns one array."""


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """A function of a robot, as expressions.

    Attributes:
        name: the function's name, for people.
        tree: the robot.
        graph: the expressions.
        inputs: each input array by name.
        outputs: each output array by name.
        kind: the type of tuple that the function returns; None where it returns one array.
        implicit: the equation that the function solves, where it is known.
        guards: what must not be small where the outputs are to be trusted, and the least size of each.
    """

    name: str
    tree: KinematicTree
    graph: Graph
    inputs: dict[str, Array]
    outputs: dict[str, Array]
    kind: Callable[..., Any] | None
    implicit: Implicit | None
    guards: tuple[tuple[Expr, float], ...] = ()


def traced(
    function: Function,
    tree: KinematicTree,
    inputs: Sequence[str] | None = None,
    shapes: Shapes | None = None,
    seed: int = 0,
) -> Traced:
    """Return a function over expressions.

    Args:
        function: takes the tree, then arrays; returns an array or a tuple of arrays.
        tree: the robot.
        inputs: names of the parameters that are inputs; those without a default when None.
        shapes: shapes of parameters other than q, qd, qdd, tau and fx, by name.
        seed: seed of the random point of the fingerprints.

    Raises:
        UnknownNameError: an input that the function does not have.
        InputError: an input is missing, or its shape not known; what the function returns is no array of expressions.
    """
    parameters = dict(list(inspect.signature(function).parameters.items())[1:])
    label = getattr(getattr(function, "func", function), "__name__", "function")
    needed = [name for name, p in parameters.items() if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    inputs = needed if inputs is None else inputs
    missing = [name for name in needed if name not in inputs]
    if missing:
        raise InputError(f"function '{label}' needs the inputs {', '.join(needed)}: {', '.join(missing)} left out.")
    graph, known = Graph(seed), {**shapes_of(tree), **(shapes or {})}
    arrays: dict[str, Array] = {}
    for name in inputs:
        if name not in parameters:
            raise UnknownNameError("input", name, parameters, f"function '{label}'")
        if name not in known:
            raise InputError(f"the shape of input '{name}' is not known: pass shapes={{'{name}': (...)}}.")
        arrays[name] = _inputs(graph, tree, name, known[name])
    result = function(tree, **arrays)
    parts = result if isinstance(result, tuple) else (result,)
    names = getattr(result, "_fields", None) or [RESULT if len(parts) == 1 else str(k) for k in range(len(parts))]
    kind = None if not isinstance(result, tuple) else getattr(type(result), "_make", tuple)
    outputs = {name: _expressions(graph, part) for name, part in zip(names, parts, strict=True)}
    return Traced(label, tree, graph, arrays, outputs, kind, IMPLICIT.get(function))


def jacobian(of: Traced, wrt: Sequence[str], mode: Mode = "auto") -> Traced:
    """Return the derivatives of all outputs by some inputs: each output with further axes, of the input's numbers.

    For q these are the nv freedoms, along which a configuration can move: the derivatives along unit velocities qd, as
    only they exist where q has quaternions.

    Args:
        of: the function.
        wrt: names of the inputs, one or more; for several, all outputs are derived by the first, and so on.
        mode: see `directional`.

    Raises:
        UnknownNameError: the function has no such input.
    """
    found: dict[str, Array] = {}
    for name in wrt:
        if name not in of.inputs:
            raise UnknownNameError("input", name, of.inputs, f"function '{of.name}'")
        found.update({f"{output}/{name}": array for output, array in _by_input(of, name, mode).items()})
    if not found:
        raise InputError(f"by which input? Those of '{of.name}' are {', '.join(of.inputs)}.")
    name, kind = f"d {of.name} / d {', '.join(wrt)}", of.kind if len(wrt) == 1 else tuple
    return replace(of, name=name, outputs=found, kind=kind, implicit=None, guards=())


def _by_input(of: Traced, wrt: str, mode: Mode) -> dict[str, Array]:
    directions, shape = _directions(of, wrt)
    if of.implicit is not None and "q" in of.inputs:
        flat = _implicit(of, of.implicit, directions, mode)
    else:
        outputs = [x for array in of.outputs.values() for x in array.flat]
        flat = _matrix(of.graph, len(outputs), len(directions), directional(outputs, directions, mode))
    found, first = {}, 0
    for name, array in of.outputs.items():
        found[name] = flat[first : first + array.size].reshape(array.shape + shape)
        first += array.size
    return found


@dataclass(frozen=True, slots=True)
class Implicit:
    """What a function solves: x = function(p) is where residual(x, p) = 0.

    So dx/dp = -(dr/dx)^-1 dr/dp, which is cheaper than the derivative of the way to x.

    Attributes:
        unknown: the name of x among the residual's parameters.
        known: the name of the parameter that only the residual's right-hand side has.
        residual: the left-hand side, as a function of the tree and of x and the other parameters.
        inverse: (dr/dx)^-1 as a function of the tree and q.
    """

    unknown: str
    known: str
    residual: Function
    inverse: Function


IMPLICIT: dict[Function, Implicit] = {
    aba: Implicit("qdd", "tau", rnea, inverse_by_bodies),
    inertia_forward_dynamics: Implicit("qdd", "tau", rnea, inverse_by_factors),
}
"""Functions that solve an equation: forward dynamics solves inverse dynamics. Source: Carpentier and Mansard (2018)."""


def _implicit(of: Traced, rule: Implicit, directions: list[Direction], mode: Mode) -> Array:
    """Return the derivatives (outputs, directions) of a function that solves an equation."""
    graph, tree = of.graph, of.tree
    free = _inputs(graph, tree, rule.unknown, shapes_of(tree)[rule.unknown])
    parameters = {name: array for name, array in of.inputs.items() if name != rule.known}
    left = [graph.expr(x) for x in rule.residual(tree, **parameters, **{rule.unknown: free})]
    rates = _matrix(graph, len(left), len(directions), directional(left, directions, mode))
    (solution,) = of.outputs.values()
    values = {x.index: value for x, value in zip(free, solution, strict=True)}
    rates = np.reshape(np.array(replaced(list(rates.flat), values), dtype=object), rates.shape)
    given = of.inputs.get(rule.known)
    if given is not None:
        right = _matrix(graph, len(left), len(directions), directional(list(given), directions, "forward"))
        rates = rates - right
    return -np.asarray(rule.inverse(tree, of.inputs["q"])) @ rates


def _directions(of: Traced, wrt: str) -> tuple[list[Direction], tuple[int, ...]]:
    array, graph, tree = of.inputs[wrt], of.graph, of.tree
    if wrt != "q":
        return [{x.index: graph.one} for x in array.flat], array.shape
    directions: list[Direction] = []
    for joint, s in zip(tree.joints, tree.q_slices, strict=True):
        for unit in np.eye(joint.nv):
            rates = [graph.expr(rate) for rate in joint.rates(array[s], unit)]
            directions.append({x.index: rate for x, rate in zip(array[s], rates, strict=True) if not rate.is_zero})
    return directions, (tree.nv,)


def _matrix(graph: Graph, rows: int, columns: int, entries: Mapping[tuple[int, int], Expr]) -> Array:
    matrix = np.full((rows, columns), graph.zero, dtype=object)
    for place, entry in entries.items():
        matrix[place] = entry
    return matrix


def _inputs(graph: Graph, tree: KinematicTree, name: str, shape: tuple[int, ...]) -> Array:
    array = np.empty(shape, dtype=object)
    if name == "q":
        array[:] = configuration_inputs(graph, tree)
    else:
        for index in np.ndindex(shape):
            array[index] = graph.input(f"{name}[{', '.join(map(str, index))}]")
    return array


def _expressions(graph: Graph, part: Any) -> Array:
    array = np.asarray(part)
    result = np.empty(array.shape, dtype=object)
    for index, value in np.ndenumerate(array):
        try:
            result[index] = graph.expr(value)
        except (TypeError, ValueError) as error:
            raise InputError(f"the function returns {value!r}, which is no number and no expression: {error}") from None
    return result
