"""Do these sensors suffice? Rank and null space of a system, exactly for almost all q and numerically at special ones.

It reads the same system as planner and solver, and assembles nothing of its own. To add a special pose: one function in
`poses.py`, registered by name.

The package is called as its main function, `nori_dyn.observability(system)`: importing a module of it puts the package
where that function would be.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """A package that is called as the function of its name."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return `observability(...)` of `report.py`."""
        from nori_dyn.observability.report import observability

        return observability(*args, **options)


sys.modules[__name__].__class__ = _CallablePackage
