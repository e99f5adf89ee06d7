"""Functions whose derivatives are known, and need not be made operation by operation.

Each rule is given the tree, the names of the inputs to derive by, and the function's inputs by name; it returns the
derivative by each of these that it knows: the axes of the output, then those of the input, for q the nv freedoms.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeAlias

from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.aba import aba
from nori_dyn.recursions.crba import crba, inertia_factors, inertia_forward_dynamics
from nori_dyn.recursions.derivatives import aba_derivatives, of_wrenches, rnea_derivatives
from nori_dyn.recursions.factorisation import solve_rows
from nori_dyn.recursions.minverse import minverse
from nori_dyn.recursions.rnea import rnea
from nori_dyn.recursions.sparsity import expanded_parents
from nori_dyn.typing import Array

Rule: TypeAlias = Callable[..., dict[str, Array]]


def of_inverse_dynamics(
    tree: KinematicTree, wrt: Collection[str], q: Array, qd: Any, qdd: Any, fx: Any = None
) -> dict[str, Array]:
    """Return the derivatives of `rnea`."""
    if not {"q", "qd"} & set(wrt):
        found = {"qdd": crba(tree, q)} if "qdd" in wrt else {}
    else:
        found = dict(zip(("q", "qd", "qdd"), rnea_derivatives(tree, q, qd, qdd, fx), strict=True))
    return found | ({"fx": -of_wrenches(tree, q)} if "fx" in wrt else {})


def of_forward_dynamics(
    tree: KinematicTree, wrt: Collection[str], q: Array, qd: Any, tau: Any, fx: Any = None
) -> dict[str, Array]:
    """Return the derivatives of `aba`."""
    if not {"q", "qd"} & set(wrt):
        found = {"tau": minverse(tree, q)} if "tau" in wrt else {}
    else:
        found = dict(zip(("q", "qd", "tau"), aba_derivatives(tree, q, qd, tau, fx), strict=True))
    if "fx" in wrt:
        lever = of_wrenches(tree, q)
        found["fx"] = solve_rows(inertia_factors(tree, q), expanded_parents(tree), lever.reshape(tree.nv, -1)).reshape(
            lever.shape
        )
    return found


ANALYTICAL: dict[Any, Rule] = {
    rnea: of_inverse_dynamics,
    aba: of_forward_dynamics,
    inertia_forward_dynamics: of_forward_dynamics,
}
"""The functions whose derivatives are known: by the inputs that the rule returns."""
