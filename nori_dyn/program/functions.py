"""Functions of a robot as native programs: `nd.compile`.

Source: docs/design.md, 4.8; the functions are those of `recursions`, or anybody's over any scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import numpy as np

from nori_dyn.algebra.arrays import DOUBLE, SINGLE, checked, checked_out, counted, shaped
from nori_dyn.algebra.counting import Cost
from nori_dyn.algebra.derivatives import Mode
from nori_dyn.errors import InputError, SingularSystemError, UnknownNameError
from nori_dyn.model.limbs import Limbs, corresponding, isomorphic_limbs
from nori_dyn.model.tree import KinematicTree
from nori_dyn.program.compiled import Arrays, Compiled, Order, Solved, Watch, unwatched
from nori_dyn.program.compiler import needed_compiler
from nori_dyn.program.kernel.base import NATIVE, NUMPY, Kernel, chosen, is_refused
from nori_dyn.program.kernel.batches import aligned
from nori_dyn.program.kernel.native import NativeKernel
from nori_dyn.program.kernel.numpy import NumpyKernel
from nori_dyn.program.kernel.record import record_key
from nori_dyn.program.program import Program
from nori_dyn.program.row_plan import row_plan
from nori_dyn.program.tracing import Function, Shapes, Traced, Untraced, expressions_of, jacobian, traced
from nori_dyn.system.limbs import of_joints
from nori_dyn.tables.progress import progress_bar
from nori_dyn.typing import Floats


class CompiledFunction(Compiled):
    """A function of a robot as a straight-line program. Not to be shared between threads.

    Attributes:
        inputs: the arrays that `tick` reads, by name: write into them, as in `inputs.q[:] = ...`.
        outputs: the outputs of `tick`: an array to read, or a tuple of arrays as the function returns.
        tick: computes the outputs from `inputs`, which it does not check; returns 0, or a number that says
            why not to trust them, see `kernel.base.Outcome`. With the native backend it is one call of C.
        backend: name of the backend.
        kernel: the kernel that runs the program.

    Example:
        >>> inertia = nd.compile(nd.crba, nd.autotree(2))
        >>> inertia.inputs.q[:] = 0.0, 0.5
        >>> _ = inertia.tick()
        >>> print(np.round(inertia.outputs, 2))
        [[2.55 0.77]
         [0.77 0.33]]
    """

    def __init__(self, function: Traced | Untraced, backend: str = "auto", watch: Watch = unwatched) -> None:
        self._function, self._tree, self._watch = function, function.tree, watch
        self._kind = function.kind
        ways: dict[str, Callable[[], Kernel]] = {
            NATIVE: self._native,
            NUMPY: lambda: NumpyKernel(self._straight, _limits(self._traced)),
        }
        shapes = function.input_shapes
        places, self._parts = _parts(shapes), _parts(function.output_shapes)
        size = self._parts[-1][0].stop
        super().__init__(chosen(backend, ways, "The function"), shapes, size)
        state, values = aligned(places[-1][0].stop if places else 0), aligned(size)
        self.inputs = Arrays(**{k: state[part].reshape(shape) for k, (part, shape) in zip(shapes, places, strict=True)})
        if "q" in shapes:
            self.inputs.q[:] = function.tree.neutral_configuration()
        self.tick: Callable[[], int] = self.kernel.bound(self.kernel.bind(state, values))
        values = values.view()
        values.flags.writeable = False
        self.outputs = self._formed(values)

    @cached_property
    def _traced(self) -> Traced:
        """The expressions."""
        return expressions_of(self._function)

    @property
    def _no_result(self) -> str:
        """Why outputs are not trusted."""
        return "is not finite, or loses its digits," if len(self.kernel.limits) else "is not finite"

    @cached_property
    def _straight(self) -> Program:
        """The program without row operations."""
        return program_of(self._traced)

    @cached_property
    def _program(self) -> Program:
        """The program: by rows, where that takes fewer instructions."""
        it = self._straight
        return replace(it, rows=row_plan(it.graph, [*it.outputs, *it.pivots], it.limb_nodes))

    @cached_property
    def cost(self) -> Cost:
        """Counted operations of a tick, sines and cosines not counted."""
        return (self._program if self.backend == NATIVE else self._straight).cost

    def __repr__(self) -> str:
        names = ", ".join(self._shapes)
        return (
            f"{type(self).__name__}({self._function.name}({names}) of '{self._function.tree.name}', "
            f"{self.cost.total} operations, backend='{self.backend}')"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs of one state, from inputs by position or by name.

        Raises:
            InputError: a wrong shape, a number that is not finite, an input missing or too many.
            SingularSystemError: the result is not finite at this state.
        """
        given: Sequence[Any] = args if not kwargs and len(args) == len(self._shapes) else self._named(args, kwargs)
        outcome = self._solve(*given)
        if not outcome:
            return self._formed(self._copy())
        state = self._check(given)
        return self._formed((self.solved(*state) if is_refused(outcome) else self._otherwise(state, "this state"))[0])

    def batch(
        self,
        *args: Any,
        threads: int = 1,
        order: Order = "C",
        out: Any = None,
        dtype: Any = "float64",
        **kwargs: Any,
    ) -> Any:
        """The outputs of N states: inputs and outputs with a leading N.

        Args:
            args: inputs by position.
            threads: number of threads, where the backend can use them; results do not depend on it.
            order: how the outputs lie in memory: "C" state by state, "F" number by number.
            out: where to write, so that no memory is allocated: the result of an earlier call, or arrays of the same
                type and shapes. It is returned. It is overwritten, even where the batch is refused.
            dtype: "float64", or "float32" for single precision, twice as many states an instruction: inputs are taken
                as floats, outputs are floats. On arms and humanoids these differ from doubles by 3e-6 of the largest
                number of a state at most where nothing is divided by (`rnea`, `crba`), by 1e-4 after forward dynamics.
                A state whose outputs are not finite in floats, or whose pivots or residual are not trusted, is computed
                in doubles.
            kwargs: inputs by name.

        Raises:
            InputError: a wrong shape, a number that is not finite, an input missing or too many, no whole number of
                threads; another type, or floats where there are weights; `out` does not fit the
                function's outputs, cannot be written, or shares memory with an input.
            SingularSystemError: the result is not finite at one of the states; names the first.

        Example:
            >>> inertia = nd.compile(nd.crba, nd.autotree(2))
            >>> H = inertia.batch(np.zeros((100, 2)))
            >>> H.shape, inertia.batch(np.ones((100, 2)), out=H) is H
            ((100, 2, 2), True)
        """
        quickly, number_type = self._batch_quickly, DOUBLE
        if dtype != "float64" and (number_type := self._number_type(dtype)) == SINGLE:
            quickly = self._singles_quickly
        if not kwargs and len(args) == len(self._shapes) and (out is None or self._is_whole(out)):
            found = quickly(args, threads, order, None if out is None else out.reshape(len(out), -1))
            if found is not None:
                return self._formed(found[0]) if out is None else out
        given = self._named(args, kwargs)
        if not given or np.ndim(given[0]) == 0 or len(given[0]) == 0:
            raise InputError("a batch needs a leading axis of N states, with N at least 1.")
        N = len(given[0])
        named = zip(given, self._shapes.items(), strict=True)
        arrays = [shaped(name, value, (N, *shape)) for value, (name, shape) in named]
        values = np.empty((N, self._n_outputs), number_type, order) if out is None else None
        results = [values] if values is not None else self._places(out, given, N, number_type)
        self.solved_batch(arrays, results, counted("threads", threads))
        return out if values is None else self._formed(values)

    def _is_whole(self, out: Any) -> bool:
        """Whether an `out` is one contiguous array of the function's outputs."""
        if self._kind is not None or type(out) is not np.ndarray:
            return False
        return out.ndim > 0 and out.shape[1:] == self._parts[0][1] and out.flags.c_contiguous

    def _otherwise(self, state: Sequence[Floats], which: str) -> Solved:
        raise SingularSystemError(f"{self._function.name} {self._no_result} at {which}.")

    def _write(self, values: Floats, states: Sequence[Floats], threads: int) -> None:
        self.batch(*states, threads=threads, out=self._formed(values), dtype=values.dtype)

    def _derivative(self, wrt: Sequence[str]) -> Compiled:
        return self.derivative(*wrt)

    def _places(self, out: Any, given: Sequence[Any], N: int, dtype: np.dtype[Any]) -> list[Floats]:
        """The arrays of an `out` as rows (N, size), one an output.

        Raises:
            InputError: they do not fit the function's outputs, cannot be written, or share memory.
        """
        one = self._kind is None
        if not one and (not isinstance(out, tuple) or len(out) != len(self._parts)):
            raise InputError(f"out is a {type(out).__name__}, expected a tuple of {len(self._parts)} arrays.")
        read, found = dict(zip(self._shapes, given, strict=True)), []
        for k, ((_, shape), given_out) in enumerate(zip(self._parts, (out,) if one else out, strict=True)):
            name = "out" if one else f"out[{k}]"
            read[name] = array = checked_out(name, given_out, (N, *shape), read, dtype)
            rows = array.reshape(N, -1)
            if rows.size and not np.may_share_memory(rows, array):
                raise InputError(f"{name} has its numbers at uneven steps, {array.strides} bytes: give a copy.")
            found.append(rows)
        return found

    def derivative(self, *wrt: str, mode: Mode = "auto") -> CompiledFunction:
        """The function whose outputs are the derivatives of this one's by one of its inputs, or by several.

        Each output has further axes, of the input's shape. For q that is (nv,): derivatives along the freedoms, whose
        directions are those of qd, as Pinocchio's.

        Args:
            wrt: names of the inputs; for several, the result is a tuple, of all outputs for the first, and so on.
            mode: "forward" or "reverse" over the expressions; "auto" takes the analytical derivatives of `rnea` and
                `aba`, and of another function whichever of the two needs fewer operations.

        Raises:
            UnknownNameError: there is no such input.

        Example:
            >>> by_qdd = nd.compile(nd.rnea, nd.autotree(2)).derivative("qdd")
            >>> print(np.round(by_qdd(np.zeros(2), np.zeros(2), np.zeros(2)), 2))  # the inertia matrix
            [[2.67 0.83]
             [0.83 0.33]]
        """
        with self._watch(f"compiling derivatives of {self._function.name}") as stage:
            stage("differentiating")
            found = jacobian(self._traced, wrt, mode)
            stage("compiling")
            return CompiledFunction(found, self.backend, self._watch)

    def _check(self, given: Sequence[Any], batch: tuple[int, ...] = ()) -> list[Floats]:
        """Inputs as arrays, quaternions of unit length.

        Raises:
            InputError: a wrong shape, a number that is not finite, a quaternion far from unit length.
        """
        found = []
        for value, (name, shape) in zip(given, self._shapes.items(), strict=True):
            array = checked(name, value, batch + shape)
            found.append(self._function.tree.normalised(array) if name == "q" else array)
        return found

    def _formed(self, values: Any) -> Any:
        batch = values.shape[:-1]
        if self._kind is None:
            return values.reshape(batch + self._parts[0][1])
        return self._kind([values[..., part].reshape(batch + shape) for part, shape in self._parts])

    def _native(self) -> NativeKernel:
        compiler = needed_compiler("a native function")
        before_batch = partial(self._watch, "compiling for batches")
        of = self._function
        key = record_key(compiler, *(of.identity if isinstance(of, Untraced) else identity_of(of)))
        return NativeKernel(lambda: self._program, lambda: _limits(self._traced), compiler, key, before_batch)


def identity_of(function: Traced) -> tuple[str, ...]:
    """All that the program of a function depends on."""
    return program_of(function).digest, _limits(function).tobytes().hex()


def _limits(function: Traced) -> Floats:
    """The least size of each guarded quantity."""
    return np.array([least for _, least in function.guards])


def program_of(function: Traced) -> Program:
    """The program of a function, without row operations."""
    inputs = {f"x{k}": tuple(array.flat) for k, array in enumerate(function.inputs.values())}
    scalars = [x.index for array in inputs.values() for x in array]
    pivots, q = tuple(guarded for guarded, _ in function.guards), function.inputs.get("q")
    return Program(
        inputs=inputs,
        outputs=tuple(x for array in function.outputs.values() for x in array.flat),
        pivots=pivots,
        quaternions=() if q is None else tuple(scalars.index(q[s.start].index) for s in function.tree.quaternions),
        n_weights=function.n_weights,
        n_noise_weights=function.n_noise_weights,
        constants_once=True,
        limbs=_limbs(function),
    )


def _limbs(function: Traced) -> Limbs:
    """The corresponding inputs of isomorphic limbs: of arrays with numbers for each joint or each link."""
    tree, first = function.tree, 0
    found: list[tuple[int, int, Hashable]] = []
    for name, array in function.inputs.items():
        if name == "q" or array.shape == (tree.nv,):
            found += of_joints(tree, first, name)
        elif array.shape[:1] == (tree.n_links,):
            found += [(first + k, k * tree.n_links // array.size, name) for k in range(array.size)]
        first += array.size
    return corresponding(isomorphic_limbs(tree), found)


def _parts(shapes: Shapes) -> list[tuple[slice, tuple[int, ...]]]:
    """Where arrays lie, one after the other, and their shapes."""
    edges = pairwise(accumulate(map(prod, shapes.values()), initial=0))
    return [(slice(*ends), shape) for ends, shape in zip(edges, shapes.values(), strict=True)]


def compile(
    function: Function,
    tree: KinematicTree,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    shapes: Shapes | None = None,
    backend: str = "auto",
) -> CompiledFunction:
    """Compile a function of a robot to a straight-line program: `nd.compile(nd.rnea, tree)`.

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
    with progress_bar(f"compiling {tree.name}") as stage:
        stage("tracing")
        found = traced(function, tree, inputs, shapes)
        if outputs is not None:
            for name in outputs:
                if name not in found.outputs:
                    raise UnknownNameError("output", name, found.outputs, f"function '{found.name}'")
            wanted = {name: found.outputs[name] for name in outputs}
            found = replace(found, outputs=wanted, kind=None if len(wanted) == 1 else tuple)
        stage("compiling")
        return CompiledFunction(found, backend, progress_bar)
