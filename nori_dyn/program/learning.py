"""Compiled functions in PyTorch and JAX: batches, and their exact derivatives.

With dq/dt = T(q) qd, the derivative along the freedoms is that by the numbers of q times T. The columns of T are
orthogonal, so of what normalises its quaternions the derivative by q is J T^+ / |q|, T^+ = (T^T T)^-1 T^T.

Source: own derivation (tests/unit/program/test_learning.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial, reduce
from importlib import import_module
from itertools import accumulate, pairwise
from math import prod
from threading import Lock
from typing import Any, NoReturn

import numpy as np

from nori_dyn.algebra.arrays import DOUBLE, counted
from nori_dyn.errors import InputError
from nori_dyn.io.extras import needed
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats


class Differentiable:
    """A compiled function that PyTorch and JAX can differentiate.

    It sorts its inputs, `_named`, writes the outputs of N states one after the other, `_write`, gives outputs their
    names, `_formed`, and has a function of the derivatives (n_outputs, n) by each of some inputs, `_derivative`.
    """

    def torch(self: Any, threads: int = 1, dtype: Any = "float64") -> Callable[..., Any]:
        """A function of PyTorch's tensors on the CPU, with exact derivatives.

        It is called with the inputs, by position or by name, with any leading axes, which broadcast: q (T, B, nq) and
        qd (nv,). It returns what the compiled function does, of a solver a dictionary of its outputs. Inputs of another
        precision than it computes in are converted, and so are results; others are read where they lie, if contiguous.
        Derivatives are compiled when they are first needed, by the inputs that require a gradient; second derivatives
        are refused.

        The gradient by a quaternion is that of the function of q / |q|, tangent to the unit sphere.

        Args:
            threads: number of threads of a batch.
            dtype: "float64", or "float32" to compute in single precision, see `CompiledFunction.batch`.

        Raises:
            MissingExtraError: PyTorch is not installed.
            InputError: another type, or floats where there are weights.

        Example:
            >>> import torch
            >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
            >>> inverse_dynamics = plan.solver().torch()
            >>> q = torch.zeros(3, 2, requires_grad=True)
            >>> inverse_dynamics(q, torch.zeros(2), torch.ones(2))["tau"].square().sum().backward()
            >>> q.grad.shape
            torch.Size([3, 2])
        """
        torch = needed("a function of tensors", "torch", "torch")
        batches = _Batches(self, threads, dtype, torch, torch.as_tensor, torch.Tensor.to)

        def operation(run: Callable[..., Any], backward: Callable[..., Any]) -> Any:
            class TensorFunction(torch.autograd.Function):  # type: ignore[misc,name-defined]
                @staticmethod
                def forward(*states: Any) -> Any:
                    return tuple(map(torch.from_numpy, run(*(x.detach().numpy() for x in states))))

                @staticmethod
                def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                    ctx.save_for_backward(*inputs)

                @staticmethod
                def backward(ctx: Any, *by_outputs: Any) -> Any:
                    return tuple(backward(ctx.needs_input_grad, ctx.saved_tensors, *by_outputs))

                @staticmethod
                def vmap(info: Any, in_dims: Any, *states: Any) -> Any:
                    pairs = zip(states, in_dims, strict=True)
                    every = [x.expand(info.batch_size, *x.shape) if k is None else x.movedim(k, 0) for x, k in pairs]
                    return TensorFunction.apply(*every), 0

            def call(*states: Any) -> Any:
                if not (torch.is_grad_enabled() and any(x.requires_grad for x in states)):
                    with suppress(RuntimeError):  # within functions of torch.func tensors have no numbers yet
                        if all(torch.autograd.forward_ad.unpack_dual(x).tangent is None for x in states):
                            return tuple(map(torch.from_numpy, run(*(x.numpy() for x in states))))
                return TensorFunction.apply(*states)  # which looks for a while at what it is called with

            return call

        jacobians = cache(lambda wrt: operation(partial(batches.jacobians, wrt), _refuse))

        def gradients(wanted: Sequence[bool], states: Sequence[Any], by_values: Any) -> list[Any]:
            wrt = tuple(name for name, is_wanted in zip(batches.names, wanted, strict=True) if is_wanted)
            found = iter(jacobians(wrt)(*states))
            return [(by_values[..., None, :] @ next(found))[..., 0, :] if is_wanted else None for is_wanted in wanted]

        return batches.function(operation(batches.values, gradients))

    def jax(self: Any, threads: int = 1, dtype: Any = "float64") -> Callable[..., Any]:
        """A function of JAX's arrays, with exact derivatives; otherwise as `torch` has it.

        It works under `jit`, `vmap`, `grad`, `jacfwd` and `jacrev`; JAX compiles it for each shape that it is called
        with. On the CPU compiled code lends it its arrays; on other devices, and before JAX 0.6.1, they are copied.
        Under `jit` its errors are raised as `jax.errors.JaxRuntimeError`, in the same words.

        Args:
            threads: number of threads of a batch.
            dtype: see `torch`.

        Raises:
            MissingExtraError: JAX is not installed.
            InputError: JAX is without doubles, and these are wanted; as `torch`.
        """
        jax = needed("a function of its arrays", "jax", "jax")
        if dtype == DOUBLE and not jax.config.jax_enable_x64:
            raise InputError('JAX is without doubles: jax.config.update("jax_enable_x64", True) before it is used.')
        jnp, zero, failed = jax.numpy, jax.custom_derivatives.SymbolicZero, list[Exception]()
        batches = _Batches(self, threads, dtype, jnp, jnp.asarray, jnp.astype)

        def run(function: Callable[..., Any], shapes: Sequence[tuple[int, ...]], *states: Any) -> Any:
            results = [jax.ShapeDtypeStruct((*states[0].shape[:-1], *shape), batches.dtype) for shape in shapes]
            return jax.lax.platform_dependent(*states, **_callbacks(jax, function, results, failed))

        values = jax.custom_jvp(partial(run, batches.values, [(self._n_outputs,)]))

        @partial(values.defjvp, symbolic_zeros=True)
        def _(states: Sequence[Any], directions: Sequence[Any]) -> Any:
            moving = {name: x for name, x in zip(batches.names, directions, strict=True) if not isinstance(x, zero)}
            shapes = [(self._n_outputs, x.shape[-1]) for x in moving.values()]
            jacobians = jax.custom_jvp(partial(run, partial(batches.jacobians, tuple(moving)), shapes))
            jacobians.defjvp(_refuse)
            moved = map(partial(jnp.einsum, "...od,...d->...o"), jacobians(*states), moving.values())
            return values(*states), [sum(moved)]

        return _compiled(jax, batches.function(values), failed)


def _callbacks(jax: Any, function: Callable[..., Any], results: Any, failed: list[Exception]) -> dict[str, Any]:
    """Functions of JAX that compiled code calls a function by, for each platform.

    Args:
        jax: the library.
        function: takes arrays, and where its results may go, `into`; returns these.
        results: their shapes and types.
        failed: takes its last error, of which JAX passes on the words.
    """

    def run(*arrays: Any, into: Sequence[Floats] = ()) -> Any:
        try:
            return function(*map(np.asarray, arrays), into=into)
        except Exception as error:
            failed[:] = [error]
            raise

    def in_place(_: Any, out: Any, *arrays: Any) -> None:
        into = [*map(np.asarray, out)]
        for own, found in zip(into, run(*arrays, into=into), strict=True):
            if own is not found and not np.may_share_memory(own, found):
                own[...] = found

    ways = {"default": partial(jax.pure_callback, run, results, vmap_method="broadcast_all")}
    with suppress(ImportError):
        buffers = import_module("jax.experimental.buffer_callback")
        ways["cpu"] = buffers.buffer_callback(in_place, results, vmap_method="broadcast_all")
    return ways


def _compiled(jax: Any, traced: Callable[..., Any], failed: Sequence[Exception]) -> Callable[..., Any]:
    """A function compiled by JAX, which waits for its results, and raises errors that functions in it failed with."""
    names: list[str] = []

    def values(*args: Any, **kwargs: Any) -> Any:
        found = traced(*args, **kwargs)
        names[:] = found if isinstance(found, dict) else ()
        return (*found.values(),) if names else found  # JAX sorts dictionaries

    compiled = jax.jit(values)

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            found = jax.block_until_ready(compiled(*args, **kwargs))
        except jax.errors.JaxRuntimeError as error:
            raise next((own.with_traceback(None) for own in failed if str(own) in str(error)), error) from None
        return dict(zip(names, found, strict=True)) if names else found

    return function


class _Batches:
    """A compiled function and its Jacobians, of states with any leading axes, each input (..., n).

    Attributes:
        names: names of the inputs.
        dtype: type of the numbers that it computes in.

    Args:
        of: the function.
        threads: number of threads.
        dtype: see above.
        xp: the library of its callers.
        as_array: makes an array of anything.
        cast: changes the type of an array.
    """

    def __init__(self, of: Any, threads: int, dtype: Any, xp: Any, as_array: Any, cast: Callable[..., Any]) -> None:
        self._of, self._threads, self.names = of, counted("threads", threads), (*of._shapes,)
        self._xp, self._as_array, self._cast, self.dtype = xp, as_array, cast, of._number_type(dtype)
        self._mine, self._kind = getattr(xp, self.dtype.name), getattr(xp, "Tensor", None)
        self._derivative, self._lock = cache(of._derivative), Lock()  # JAX may call from several threads

    def function(self, values: Callable[..., Any]) -> Callable[..., Any]:
        """The function that users call, of one that takes and returns numbers of its type."""
        mine = self._mine

        def of_type(x: Any, dtype: Any) -> Any:
            return x if x.dtype == dtype else self._cast(x, dtype)

        def function(*args: Any, **kwargs: Any) -> Any:
            if not kwargs and self._are_rows(args):
                return self._of._formed(values(*args)[0])
            given = [self._as_array(x) for x in self._of._named(args, kwargs)]
            dtype = reduce(self._xp.promote_types, {x.dtype for x in given[: len(args) + len(kwargs)]})
            return self._of._formed(of_type(values(*(of_type(x, mine) for x in self._broadcast(given)))[0], dtype))

        return function

    def _are_rows(self, given: Sequence[Any]) -> bool:
        """Whether inputs are tensors that need no change, each state one row: the rest takes as long as 500 states."""
        shapes, kind, mine = self._of._shapes.values(), self._kind, self._mine
        if len(given) != len(shapes) or type(given[0]) is not kind:
            return False
        lead, pairs = given[0].shape[:-1], zip(given, shapes, strict=True)
        return all(
            type(x) is kind and x.dtype is mine and x.is_cpu and len(shape) == 1 and x.shape == lead + shape
            for x, shape in pairs
        )

    def _broadcast(self, given: Sequence[Any]) -> list[Any]:
        """Inputs with the same leading axes.

        Raises:
            InputError: an input has another shape or type, or is not on the CPU.
        """
        shapes, leads = self._of._shapes, []
        for x, (name, shape) in zip(given, shapes.items(), strict=True):
            leads.append(tuple(x.shape[: max(x.ndim - len(shape), 0)]))
            is_as_wanted = (*leads[-1], *shape) == tuple(x.shape) and "float" in str(x.dtype)
            if not is_as_wanted or not getattr(x, "is_cpu", True):
                sizes = ", ".join(map(str, ("...", *shape)))
                on = f"{x.dtype} {tuple(x.shape)} on {getattr(x, 'device', 'cpu')}"  # what JAX traces is on none
                raise InputError(f"{name} is {on}, expected floating point numbers ({sizes}) on the CPU.")
        try:
            lead = leads[0] if len({*leads}) == 1 else np.broadcast_shapes(*leads)
        except ValueError:
            axes = ", ".join(map(str, leads))
            raise InputError(f"the leading axes {axes} of {', '.join(shapes)} do not broadcast.") from None
        pairs = zip(given, ((*lead, *shape) for shape in shapes.values()), strict=True)
        every = (x if x.shape == whole else self._xp.broadcast_to(x, whole) for x, whole in pairs)
        return [x if x.ndim == len(lead) + 1 else x.reshape(*lead, prod(x.shape[len(lead) :])) for x in every]

    def values(self, *states: Any, into: Sequence[Floats] = ()) -> list[Floats]:
        """The outputs (..., n_outputs), in the first of some arrays if there are any."""
        out = into[0] if into else np.empty((*states[0].shape[:-1], self._of._n_outputs), self.dtype)
        return [self._run(self._of, states, out)]

    def jacobians(self, wrt: tuple[str, ...], *states: Any, into: Sequence[Floats] = ()) -> list[Floats]:
        """The derivatives (..., n_outputs, n) by each of some inputs, in `into` where they are computed as they are."""
        tree, n, lead = self._of._tree, self._of._n_outputs, states[0].shape[:-1]
        sizes = [tree.nv if name == "q" else prod(self._of._shapes[name]) for name in wrt]
        ends, turns = [0, *accumulate(n * size for size in sizes)], "q" in wrt and bool(tree.quaternions)
        shape, is_room = (*lead, ends[-1]), into and len(wrt) == 1 and not turns
        found = np.reshape(into[0], shape) if is_room else np.empty(shape, self.dtype)
        self._run(self._derivative(wrt), states, found)
        parts = (found[..., a:b] for a, b in pairwise(ends))
        J = {name: x.reshape(*lead, n, size) for name, x, size in zip(wrt, parts, sizes, strict=True)}
        if turns:
            J["q"] = _by_coordinates(tree, states[self.names.index("q")], J["q"])
        return [*J.values()]

    def _run(self, of: Any, states: Sequence[Any], out: Floats) -> Floats:
        """Fill an array (..., size)."""
        N, shapes = prod(out.shape[:-1]), self._of._shapes.values()
        if N:
            rows = [x.reshape(N, *shape) for x, shape in zip(states, shapes, strict=True)]
            with self._lock:
                of._write(out.reshape(N, -1), rows, self._threads)
        return out


def _by_coordinates(tree: KinematicTree, q: Floats, J: Floats) -> Floats:
    """Derivatives (..., n, nq) by the numbers of q (..., nq), of those along the freedoms (..., n, nv)."""
    unit, T = np.moveaxis(tree.normalised(q), -1, 0), np.zeros((*q.shape, tree.nv))
    for joint, s, v in zip(tree.joints, tree.q_slices, tree.v_slices, strict=True):
        for k, direction in enumerate(np.eye(joint.nv)):
            T[..., s, v.start + k] = np.moveaxis(joint.rates(unit[s], direction), 0, -1)
    found = np.asarray(J @ np.swapaxes(T / (T * T).sum(axis=-2, keepdims=True), -1, -2), dtype=J.dtype)
    for part in tree.quaternions:
        found[..., part] /= np.linalg.norm(q[..., part], axis=-1)[..., None, None]
    return found


def _refuse(*_: Any) -> NoReturn:
    """Refuse second derivatives.

    Raises:
        InputError: always.
    """
    raise InputError("functions of nori_dyn have first derivatives only: these cannot be differentiated again.")
