"""Copies of compiled objects: made anew, from the arguments of the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Self

import numpy as np

from nori_dyn.errors import InputError


class Remade:
    """An object with compiled code and its arrays, neither of which can be copied.

    `copy` and `pickle` make another from the same arguments, with the same numbers in its `inputs`; the two share
    nothing. Where it is unpickled, the code is compiled, or found in the cache.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        made._arguments = args, kwargs
        return made

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __reduce__(self) -> tuple[Callable[..., Remade], tuple[Any, ...], Mapping[str, Any]]:
        inputs = getattr(self, "inputs", SimpleNamespace())
        return _remade, (type(self), *self._arguments), {name: np.array(x) for name, x in vars(inputs).items()}

    def __setstate__(self, inputs: Mapping[str, Any]) -> None:
        for name, values in inputs.items():
            vars(vars(self)["inputs"])[name][...] = values


class Uncopied:
    """An object with compiled code and a state from tick to tick, which cannot be copied."""

    def __reduce__(self) -> Any:
        name = type(self).__name__
        raise InputError(
            f"a {name} holds its state in arrays of compiled code, and cannot be copied or pickled. Make "
            "another of the same plan, and let it go on from there by its `reset`."
        )


def _remade(kind: type[Remade], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Remade:
    return kind(*args, **kwargs)
