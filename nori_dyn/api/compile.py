"""Compiled functions as users meet them: with progress on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from nori_dyn.model.tree import KinematicTree
from nori_dyn.program.functions import CompiledFunction, compiled
from nori_dyn.program.tracing import Function, Shapes
from nori_dyn.tables.progress import progress_bar


def compile(
    function: Function,
    tree: KinematicTree,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    shapes: Shapes | None = None,
    backend: str = "auto",
) -> CompiledFunction:
    """Return a function of a robot as a straight-line program, compiled: `nd.compile(nd.rnea, tree)`.

    Args:
        function: one of this package's, or any that takes the tree, then arrays over any scalar, and returns an array
            or a tuple of arrays; options are given with `functools.partial`.
        tree: the robot.
        inputs: names of the parameters that are inputs; those without a default when None.
        outputs: names of the fields wanted of a named tuple; all when None. What they do not need is not computed.
        shapes: shapes of parameters other than q, qd, qdd, tau and fx, by name.
        backend: "native", "numpy", or "auto" for the faster that can run here.

    Raises:
        UnknownNameError: an input, output or backend that does not exist.
        InputError: the shape of an input is not known.
        CompilerError: "native" was asked for and there is no C compiler, or it fails; "auto" warns and takes NumPy.

    Example:
        >>> inverse_dynamics = nd.compile(nd.rnea, nd.autotree(2))
        >>> print(np.round(inverse_dynamics(np.zeros(2), np.zeros(2), np.ones(2)), 2))
        [3.5  1.17]
    """
    return compiled(function, tree, inputs, outputs, shapes, backend, progress_bar)
