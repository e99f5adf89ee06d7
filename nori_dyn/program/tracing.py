"""A function of a robot as expressions: its inputs and outputs by name, and the derivatives of these by those."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from nori_dyn.algebra.derivatives import Direction, Mode, directional
from nori_dyn.algebra.expressions import Expr, Graph
from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.aba import aba
from nori_dyn.recursions.crba import crba, inertia_factors, inertia_forward_dynamics
from nori_dyn.recursions.derivatives import aba_derivatives, of_wrenches, rnea_derivatives
from nori_dyn.recursions.factorisation import solve_rows
from nori_dyn.recursions.minverse import minverse
from nori_dyn.recursions.rnea import rnea
from nori_dyn.recursions.sparsity import expanded_parents
from nori_dyn.recursions.state import shapes_of
from nori_dyn.system.trace import configuration_inputs, freedoms
from nori_dyn.typing import Array

Rule: TypeAlias = Callable[..., dict[str, Array]]


def of_inverse_dynamics(
    tree: KinematicTree, wrt: Collection[str], q: Array, qd: Any, qdd: Any, fx: Any = None
) -> dict[str, Array]:
    """The derivatives of `rnea`."""
    if not {"q", "qd"} & set(wrt):
        found = {"qdd": crba(tree, q)} if "qdd" in wrt else {}
    else:
        found = dict(zip(("q", "qd", "qdd"), rnea_derivatives(tree, q, qd, qdd, fx), strict=True))
    return found | ({"fx": -of_wrenches(tree, q)} if "fx" in wrt else {})


def of_forward_dynamics(
    tree: KinematicTree, wrt: Collection[str], q: Array, qd: Any, tau: Any, fx: Any = None
) -> dict[str, Array]:
    """The derivatives of `aba`."""
    if not {"q", "qd"} & set(wrt):
        found = {"tau": minverse(tree, q)} if "tau" in wrt else {}
    else:
        found = dict(zip(("q", "qd", "tau"), aba_derivatives(tree, q, qd, tau, fx), strict=True))
    if "fx" in wrt:
        lever = of_wrenches(tree, q)
        found["fx"] = solve_rows(inertia_factors(tree, q), expanded_parents(tree), lever.reshape(tree.nv, -1)).reshape(
            lever.shape
        )
    return found


ANALYTICAL: dict[Any, Rule] = {
    rnea: of_inverse_dynamics,
    aba: of_forward_dynamics,
    inertia_forward_dynamics: of_forward_dynamics,
}
"""The functions whose derivatives are known: by the inputs that the rule returns."""


Function = Callable[..., Any]
Shapes = Mapping[str, tuple[int, ...]]

RESULT = "result"
"""Name of the output of a function that returns one array."""


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
        rule: returns its derivatives, where they are known: see `analytical`.
        guards: quantities that must not be small where the outputs are to be trusted, and the least size of each.
        n_weights, n_noise_weights: how many of the last inputs are weights, and the first of these, of equations of
            motion.
    """

    name: str
    tree: KinematicTree
    graph: Graph
    inputs: dict[str, Array]
    outputs: dict[str, Array]
    kind: Callable[..., Any] | None
    rule: Rule | None
    guards: tuple[tuple[Expr, float], ...] = ()
    n_weights: int = 0
    n_noise_weights: int = 0

    @property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each input."""
        return {name: array.shape for name, array in self.inputs.items()}

    @property
    def output_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each output."""
        return {name: array.shape for name, array in self.outputs.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Untraced:
    """A function of a robot whose expressions are made only where the cache lacks its program.

    Attributes:
        name, tree, kind, input_shapes, output_shapes: see `Traced`.
        identity: all that its program depends on.
        trace: returns the expressions, the same each time.
    """

    name: str
    tree: KinematicTree
    input_shapes: Shapes
    output_shapes: Shapes
    identity: tuple[str, ...]
    trace: Callable[[], Traced]
    kind: Callable[..., Any] | None = None


def expressions_of(function: Traced | Untraced) -> Traced:
    """A function with its expressions."""
    return function if isinstance(function, Traced) else function.trace()


def traced(
    function: Function,
    tree: KinematicTree,
    inputs: Sequence[str] | None = None,
    shapes: Shapes | None = None,
    seed: int = 0,
) -> Traced:
    """A function over expressions.

    Args:
        function: takes the tree, then arrays; returns an array or a tuple of arrays.
        tree: the robot.
        inputs: names of the parameters that are inputs; those without a default when None.
        shapes: shapes of parameters other than q, qd, qdd, tau and fx, by name.
        seed: seed of the random point of the fingerprints.

    Raises:
        UnknownNameError: an input that the function does not have.
        InputError: an input is missing, or its shape not known; the function returns no array of expressions.
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
    return Traced(label, tree, graph, arrays, outputs, kind, ANALYTICAL.get(function))


def jacobian(of: Traced, wrt: Sequence[str], mode: Mode = "auto") -> Traced:
    """The derivatives of all outputs by some inputs: each output with further axes, of the input's numbers.

    For q these are the nv freedoms, along which a configuration can move: the derivatives along unit velocities qd, as
    only they exist where q has quaternions. What is known analytically is not made from the expressions, unless a mode
    asks for that.

    Args:
        of: the function.
        wrt: names of the inputs, one or more; for several, all outputs are derived by the first, and so on.
        mode: see `directional`.

    Raises:
        UnknownNameError: the function has no such input.
    """
    for name in wrt:
        if name not in of.inputs:
            raise UnknownNameError("input", name, of.inputs, f"function '{of.name}'")
    if not wrt:
        raise InputError(f"by which input? Those of '{of.name}' are {', '.join(of.inputs)}.")
    known = of.rule(of.tree, wrt, **of.inputs) if of.rule is not None and mode == "auto" else {}
    found: dict[str, Array] = {}
    for name in wrt:
        if name in known:
            found[f"{RESULT}/{name}"] = _expressions(of.graph, known[name])
        else:
            found.update({f"{output}/{name}": array for output, array in _by_input(of, name, mode).items()})
    name, kind = f"d {of.name} / d {', '.join(wrt)}", of.kind if len(wrt) == 1 else tuple
    return replace(of, name=name, outputs=found, kind=kind, rule=None, guards=())


def _by_input(of: Traced, wrt: str, mode: Mode) -> dict[str, Array]:
    array, graph = of.inputs[wrt], of.graph
    directions: list[Direction]
    if wrt == "q":
        directions, shape = list(freedoms(graph, of.tree, array)), (of.tree.nv,)
    else:
        directions, shape = [{x.index: graph.one} for x in array.flat], array.shape
    outputs = [x for array in of.outputs.values() for x in array.flat]
    flat = filled(graph, len(outputs), len(directions), directional(outputs, directions, mode))
    found, first = {}, 0
    for name, array in of.outputs.items():
        found[name] = flat[first : first + array.size].reshape(array.shape + shape)
        first += array.size
    return found


def filled(graph: Graph, rows: int, columns: int, entries: Mapping[tuple[int, int], Expr]) -> Array:
    """A matrix (rows, columns) of expressions, zero but for some entries."""
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
