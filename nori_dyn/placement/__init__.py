"""Which sensors to buy: what there is to choose from, the cheapest set that suffices, and the most precise one.

candidates = nd.placement.load_candidates("shop.yaml")
nd.place(tree, candidates, outputs=("tau",)).chosen     the cheapest, proven where it can be
nd.place(tree, candidates, survive=1).chosen            any one of them may fail
nd.placement.best_sensors(tree, candidates, k=8).chosen           the most precise for their number
nd.placement.pareto_front(tree, candidates).points      those of which no other is both cheaper and more precise

Example:
    >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
    >>> motion = {"type": "joint_acceleration", "joints": "all"}
    >>> shop = {"name": "shop", "measurements": [unloaded], "candidates": {"measurements": [motion]}}
    >>> nd.placement.place(nd.autotree(2), nd.placement.Candidates.from_dict(shop)).chosen
    ('qdd:joint1', 'qdd:joint2')
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "Candidates": "candidates",
    "Design": "design",
    "ParetoFront": "design",
    "Placement": "selection",
    "Purchase": "selection",
    "best_sensors": "design",
    "load_candidates": "candidates",
    "pareto_front": "design",
    "place": "selection",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: what reads candidates needs no search for the best of them."""
    if name not in _HOME:
        raise AttributeError(f"module 'nori_dyn.placement' has no attribute '{name}'")
    return getattr(importlib.import_module(f"nori_dyn.placement.{_HOME[name]}"), name)
