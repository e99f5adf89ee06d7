"""The identity of the planner: a hash of the code that decides which plan a system gets."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]

MODULES = ("algebra", "components", "measurements", "model", "planning", "system")
"""Subpackages that a plan depends on: what equations there are, and the order in which they are eliminated."""


@cache
def planner_identity() -> str:
    """Return a hash of the names and texts of all Python files that a plan depends on."""
    hasher = hashlib.sha256()
    for name in MODULES:
        for path in sorted((PACKAGE / name).rglob("*.py")):
            text = path.read_bytes()
            hasher.update(f"{path.relative_to(PACKAGE).as_posix()} {len(text)}\n".encode() + text)
    return hasher.hexdigest()
