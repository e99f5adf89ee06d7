"""The identity of code: a hash of the sources that determine the plan of a system, and the program of a plan."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]

PLANNER = ("algebra", "components", "measurements", "model", "planning", "system")
"""Subpackages that a plan depends on: the equations, and the order in which they are eliminated."""


@cache
def code_identity(modules: tuple[str, ...] = (".",)) -> str:
    """A hash of the names and texts of all Python files of some subpackages; of the whole package by default."""
    hasher = hashlib.sha256()
    for name in modules:
        for path in sorted((PACKAGE / name).rglob("*.py")):
            text = path.read_bytes()
            hasher.update(f"{path.relative_to(PACKAGE).as_posix()} {len(text)}\n".encode() + text)
    return hasher.hexdigest()


def planner_identity() -> str:
    """The identity of the planner."""
    return code_identity(PLANNER)
