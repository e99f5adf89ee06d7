"""Compiled functions in PyTorch and JAX: batches, and their exact derivatives.

With dq/dt = T(q) qd, the derivative along the freedoms is that by the numbers of q times T. The columns of T are
orthogonal, so of what normalises its quaternions the derivative by q is J T^+ / |q|, T^+ = (T^T T)^-1 T^T.

Source: own derivation (tests/unit/program/test_learning.py).
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, reduce
from itertools import accumulate, pairwise
from math import prod
from threading import Lock
from typing import Any, NoReturn

import numpy as np

from nori_dyn.algebra.arrays import counted
from nori_dyn.errors import InputError, MissingExtraError
from nori_dyn.model.tree import KinematicTree
from nori_dyn.program.kernel.batches import aligned
from nori_dyn.typing import Floats


class Differentiable:
    """A compiled function that PyTorch and JAX can differentiate."""

    _shapes: Mapping[str, tuple[int, ...]]
    _n_outputs: int
    _tree: KinematicTree

    def _named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the inputs given by position or by name, those that may be left out at their defaults."""
        raise NotImplementedError

    def _write(self, values: Floats, states: Sequence[Floats], threads: int) -> None:
        """Write the outputs of N states (N, n_outputs), all numbers of a state one after the other."""
        raise NotImplementedError

    def _formed(self, values: Any) -> Any:
        """Return outputs (..., n_outputs), an array of any library, in the form that users get."""
        raise NotImplementedError

    def _derivative(self, wrt: Sequence[str]) -> Differentiable:
        """Return the function of the derivatives (n_outputs, n) by each of some inputs, one after the other."""
        raise NotImplementedError

    def torch(self, threads: int = 1) -> Callable[..., Any]:
        """A function of PyTorch's tensors on the CPU, with exact derivatives.

        It is called with the inputs, by position or by name, with any leading axes, which broadcast: q (T, B, nq) and
        qd (nv,). It returns what the compiled function does, of a solver a named tuple of its outputs. It computes in
        doubles; inputs of less precision are converted, and so are results. Contiguous doubles are read where they
        lie. Derivatives are compiled when they are first needed, by the inputs that require a gradient; second
        derivatives are refused.

        The gradient by a quaternion is that of the function of q / |q|, tangent to the unit sphere.

        Args:
            threads: number of threads of a batch.

        Raises:
            MissingExtraError: PyTorch is not installed.

        Example:
            >>> import torch
            >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
            >>> inverse_dynamics = plan.solver().torch()
            >>> q = torch.zeros(3, 2, requires_grad=True)
            >>> inverse_dynamics(q, torch.zeros(2), torch.ones(2)).tau.square().sum().backward()
            >>> q.grad.shape
            torch.Size([3, 2])
        """
        torch = _library("torch")
        batches, function_of_torch = _Batches(self, threads, torch), torch.autograd.Function

        def operation(run: Callable[..., Any], backward: Callable[..., Any]) -> Any:
            class Operation(function_of_torch):  # type: ignore[misc,valid-type]
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
                    found = Operation.apply(*every)
                    return found, (0,) * len(found)

            return Operation.apply

        def gradients(needed: Sequence[bool], states: Sequence[Any], by_values: Any) -> list[Any]:
            wrt = tuple(name for name, is_needed in zip(self._shapes, needed, strict=True) if is_needed)
            found, g = iter(jacobians(wrt)(*states)), by_values[..., None, :]
            pairs = zip(states, needed, strict=True)
            return [(g @ next(found)).reshape(x.shape) if is_needed else None for x, is_needed in pairs]

        @cache
        def jacobians(wrt: tuple[str, ...]) -> Any:
            return operation(partial(batches.jacobians, wrt), _refuse)

        values = operation(batches.values, gradients)

        def function(*args: Any, **kwargs: Any) -> Any:
            given = [torch.as_tensor(x) for x in self._named(args, kwargs)]
            for name, x in zip(self._shapes, given, strict=True):
                if x.device.type != "cpu":
                    raise InputError(f"{name} is on {x.device}, and this is computed on the CPU: give {name}.cpu().")
            dtype = reduce(torch.promote_types, (x.dtype for x in given[: len(args) + len(kwargs)]))
            return self._formed(values(*(x.double() for x in batches.broadcast(given)))[0].to(dtype))

        return function

    def jax(self, threads: int = 1) -> Callable[..., Any]:
        """A function of JAX's arrays, with exact derivatives; otherwise as `torch` has it.

        It works under `jit`, `vmap`, `grad`, `jacfwd` and `jacrev`; compiled code of JAX calls it on the CPU.

        Args:
            threads: number of threads of a batch.

        Raises:
            MissingExtraError: JAX is not installed.
            InputError: JAX is without doubles.
        """
        jax = _library("jax")
        if not jax.config.jax_enable_x64:
            raise InputError(
                'JAX has single precision only: jax.config.update("jax_enable_x64", True) before any other use of it.'
            )
        jnp, zero = jax.numpy, jax.custom_derivatives.SymbolicZero
        batches = _Batches(self, threads, jnp)

        def call(run: Callable[..., Any], states: Sequence[Any], *shapes: tuple[int, ...]) -> Any:
            if not any(isinstance(x, jax.core.Tracer) for x in states):
                return [jax.dlpack.from_dlpack(np.ascontiguousarray(found)) for found in run(*states)]
            results = [jax.ShapeDtypeStruct((*batches.lead(states), *shape), float) for shape in shapes]
            return jax.pure_callback(run, results, *states, vmap_method="broadcast_all")

        values = jax.custom_jvp(lambda *states: call(batches.values, states, (self._n_outputs,))[0])

        @partial(values.defjvp, symbolic_zeros=True)
        def _(states: Sequence[Any], directions: Sequence[Any]) -> Any:
            given = zip(self._shapes, directions, strict=True)
            moving = {name: x for name, x in given if not isinstance(x, zero)}
            sizes = [prod(self._shapes[name]) for name in moving]
            run = partial(batches.jacobians, tuple(moving))
            jacobians = jax.custom_jvp(lambda *states: call(run, states, *((self._n_outputs, n) for n in sizes)))
            jacobians.defjvp(_refuse)
            flat = [x.reshape(*batches.lead(states), n) for x, n in zip(moving.values(), sizes, strict=True)]
            return values(*states), sum(map(partial(jnp.einsum, "...od,...d->...o"), jacobians(*states), flat))

        def function(*args: Any, **kwargs: Any) -> Any:
            given = [jnp.asarray(x) for x in self._named(args, kwargs)]
            dtype = jnp.result_type(*given[: len(args) + len(kwargs)])
            return self._formed(values(*(x.astype(float) for x in batches.broadcast(given))).astype(dtype))

        return function


class _Batches:
    """A compiled function, and its Jacobians, of states with any leading axes.

    Args:
        of: the function.
        threads: number of threads.
        xp: the library of its callers.
    """

    def __init__(self, of: Differentiable, threads: int, xp: Any) -> None:
        self._of, self._threads, self._xp = of, counted("threads", threads), xp
        self._shapes = of._shapes
        self._derivatives: dict[tuple[str, ...], Differentiable] = {}
        self._lock = Lock()  # JAX may call from several threads

    def lead(self, states: Sequence[Any]) -> tuple[int, ...]:
        """The leading axes of states that share them."""
        return tuple(states[0].shape[: states[0].ndim - len(next(iter(self._shapes.values())))])

    def broadcast(self, given: Sequence[Any]) -> list[Any]:
        """Inputs with the same leading axes.

        Raises:
            InputError: an input has another shape or type, or is not on the CPU.
        """
        leads = []
        for x, (name, shape) in zip(given, self._shapes.items(), strict=True):
            n = x.ndim - len(shape)
            if n < 0 or tuple(x.shape[n:]) != shape:
                sizes = ", ".join(map(str, ("...", *shape)))
                raise InputError(f"{name} has shape {tuple(x.shape)}, expected ({sizes}).")
            if "float" not in str(x.dtype):
                raise InputError(f"{name} is of {x.dtype}, expected floating point numbers.")
            leads.append(tuple(x.shape[:n]))
        try:
            lead = np.broadcast_shapes(*leads)
        except ValueError:
            found = ", ".join(map(str, leads))
            raise InputError(f"the leading axes {found} of {', '.join(self._shapes)} do not broadcast.") from None
        whole = [(*lead, *shape) for shape in self._shapes.values()]
        pairs = zip(given, whole, strict=True)
        return [x if tuple(x.shape) == shape else self._xp.broadcast_to(x, shape) for x, shape in pairs]

    def values(self, *states: Any) -> list[Floats]:
        """The outputs (..., n_outputs)."""
        return self._run(self._of, states, [self._of._n_outputs])

    def jacobians(self, wrt: tuple[str, ...], *states: Any) -> list[Floats]:
        """The derivatives (..., n_outputs, n) by each of some inputs, all its numbers in a row."""
        of, tree, n = self._of, self._of._tree, self._of._n_outputs
        if wrt not in self._derivatives:
            self._derivatives[wrt] = of._derivative(wrt)
        freedoms = {**{name: prod(shape) for name, shape in self._shapes.items()}, "q": tree.nv}
        found = self._run(self._derivatives[wrt], states, [n * freedoms[name] for name in wrt])
        found = [J.reshape(*self.lead(states), n, J.shape[-1] // n) for J in found]
        if "q" in wrt and tree.quaternions:
            k = wrt.index("q")
            found[k] = _by_coordinates(tree, np.asarray(states[[*self._shapes].index("q")]), found[k])
        return found

    def _run(self, of: Differentiable, states: Sequence[Any], sizes: Sequence[int]) -> list[Floats]:
        lead = self.lead(states)
        pairs = zip(states, self._shapes.values(), strict=True)
        rows = [np.asarray(x).reshape(prod(lead), *shape) for x, shape in pairs]
        found, ends = aligned(prod(lead) * sum(sizes)).reshape(-1, sum(sizes)), [0, *accumulate(sizes)]
        if found.size:
            with self._lock:
                of._write(found, rows, self._threads)
        return [found[:, a:b].reshape(*lead, b - a) for a, b in pairwise(ends)]


def _by_coordinates(tree: KinematicTree, q: Floats, J: Floats) -> Floats:
    """Derivatives (..., n, nq) by the numbers of q (..., nq), of those along the freedoms (..., n, nv)."""
    unit, T = np.moveaxis(tree.normalised(q), -1, 0), np.zeros((*q.shape, tree.nv))
    for joint, s, v in zip(tree.joints, tree.q_slices, tree.v_slices, strict=True):
        for k, direction in enumerate(np.eye(joint.nv)):
            velocity = np.broadcast_to(direction.reshape(-1, *[1] * (q.ndim - 1)), (joint.nv, *q.shape[:-1]))
            T[..., s, v.start + k] = np.moveaxis(joint.rates(unit[s], velocity), 0, -1)
    found = np.asarray(J @ np.swapaxes(T / (T * T).sum(axis=-2, keepdims=True), -1, -2))
    for part in tree.quaternions:
        found[..., part] /= np.linalg.norm(q[..., part], axis=-1)[..., None, None]
    return found


def _refuse(*_: Any) -> NoReturn:
    """Refuse second derivatives.

    Raises:
        InputError: always.
    """
    raise InputError("functions of nori_dyn have first derivatives only: these cannot be differentiated again.")


def _library(name: str) -> Any:
    """The library.

    Raises:
        MissingExtraError: it is not installed.
    """
    if importlib.util.find_spec(name) is None:
        raise MissingExtraError(f"a function for {name}", name)
    return importlib.import_module(name)
