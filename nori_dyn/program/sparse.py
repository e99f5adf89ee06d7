"""Functions that compute the numbers of sparse matrices: which of these are not zero, the user's cache keeps.

So a function that was compiled before is loaded without tracing its equations again; see `kernel.record`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict

from nori_dyn.model.tree import KinematicTree
from nori_dyn.program.compiler import find_compiler
from nori_dyn.program.functions import identity_of
from nori_dyn.program.kernel.record import recall, record_key, remember
from nori_dyn.program.tracing import Traced, Untraced

Places: TypeAlias = tuple[tuple[int, int], ...]
"""The row and column of each number that is not zero."""


@dataclass(frozen=True, slots=True, eq=False)
class SparseFunction:
    """A function of a robot, and where the numbers that it computes lie in its matrices.

    Attributes:
        places: for each matrix the places of its numbers.
        function: computes the numbers.
    """

    places: Mapping[str, Places]
    function: Traced | Untraced


class SparseRecord(BaseModel):
    """A sparse function without its expressions.

    Attributes:
        places: see `SparseFunction`.
        inputs, outputs: the shape of each.
        identity: see `Untraced`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    places: dict[str, Places]
    inputs: dict[str, tuple[int, ...]]
    outputs: dict[str, tuple[int, ...]]
    identity: tuple[str, ...]


def sparse_function(
    name: str, tree: KinematicTree, identity: Sequence[str], trace: Callable[[], tuple[Mapping[str, Places], Traced]]
) -> SparseFunction:
    """A function as the user's cache knows it, or as it is traced; then the cache knows it from now on.

    Args:
        name: of the function.
        tree: the robot.
        identity: all that it depends on, beside the source of this package.
        trace: returns where its numbers lie, and the function; the same each time.
    """
    compiler = find_compiler()
    if compiler is None:  # NumPy runs the expressions
        return SparseFunction(*trace())
    key = record_key(compiler, name, *identity)
    known = recall(key, SparseRecord)
    if known is not None:
        without = Untraced(name, tree, known.inputs, known.outputs, known.identity, lambda: trace()[1])
        return SparseFunction(known.places, without)
    places, traced = trace()
    shapes = {"inputs": traced.input_shapes, "outputs": traced.output_shapes}
    is_nothing = all(0 in shape for shape in traced.output_shapes.values())  # of which there is no program
    identity = () if is_nothing else identity_of(traced)
    remember(key, SparseRecord(places=dict(places), **shapes, identity=identity))
    return SparseFunction(places, traced)
