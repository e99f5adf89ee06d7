"""Which sensors to buy: what there is to choose from, the cheapest set that suffices, and the most precise one.

candidates = nd.load_candidates("shop.yaml")
nd.place(tree, candidates, outputs=("tau",)).chosen     the cheapest, proven where it can be
nd.best_sensors(tree, candidates, k=8).chosen           the most precise for their number

Example:
    >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
    >>> motion = {"type": "joint_acceleration", "joints": "all"}
    >>> shop = {"name": "shop", "measurements": [unloaded], "candidates": {"measurements": [motion]}}
    >>> nd.placement.place(nd.autotree(2), nd.placement.Candidates.from_dict(shop)).chosen
    ('qdd:joint1', 'qdd:joint2')
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "candidates": ["Candidates"],
        "design": ["Design", "best_sensors"],
        "purchase": ["Purchase"],
        "selection": ["Placement", "place"],
    },
)
