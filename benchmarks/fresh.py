"""Measuring what happens the first time: with an empty cache, and in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

VARIABLE = "NORI_DYN_CACHE"
"""The environment variable that says where the cache is."""


@contextmanager
def fresh_cache() -> Iterator[None]:
    """Have plans and compiled code made anew."""
    before = os.environ.get(VARIABLE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[VARIABLE] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[VARIABLE]
            else:
                os.environ[VARIABLE] = before


def alone(function: Callable[..., T], *args: object) -> T:
    """Return what a function returns in a process of its own, with an empty cache.

    Args:
        function: one at the top of a module.
        args: its arguments; they and the result are copied between the processes.
    """
    with fresh_cache(), multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, args)
