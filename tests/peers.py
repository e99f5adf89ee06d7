"""The libraries that we are held against, imported when a test first asks for them; where one lacks, it is skipped."""

from typing import Any

import pytest


class Peer:
    """A library, in place of its module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest looks at all that a module has
            raise AttributeError(attribute)
        found = getattr(pytest.importorskip(self._name, exc_type=ImportError), attribute)
        setattr(self, attribute, found)
        return found


pin = Peer("pinocchio")
mujoco = Peer("mujoco")
idyn = Peer("idyntree.bindings")
casadi = Peer("casadi")
sympy = Peer("sympy")
