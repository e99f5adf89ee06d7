"""Checked arguments of the algorithms, and all bodies over their scalar and batch.

Every algorithm takes the numbers of one state, or of many with batch axes last (q is (nq,) or (nq, N)), or symbols:
arrays of objects, or vectors of CasADi's SX or of SymPy, or expressions of ours, from which programs are made.
"""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nori_dyn.algebra.arrays import checked, is_masked, numeric
from nori_dyn.algebra.scalars import is_numeric
from nori_dyn.algebra.spatial import matvec, spread
from nori_dyn.errors import InputError
from nori_dyn.model.internal_frames import InternalLink, internal_links
from nori_dyn.model.kinematics import Kinematics, moving
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.joint_terms import check_components
from nori_dyn.system.given import check_tree
from nori_dyn.typing import Array

NO_SYMBOLS = (str, list, complex, timedelta)
"""Things that can be multiplied all the same."""


def shapes_of(tree: KinematicTree) -> dict[str, tuple[int, ...]]:
    """The shapes of the arguments of the algorithms, by name."""
    v = (tree.nv,)
    return {"q": (tree.nq,), "qd": v, "qd_r": v, "qdd": v, "tau": v, "fx": (tree.n_links, 6)}


def arguments(tree: KinematicTree, **values: Any) -> tuple[Array, ...]:
    """Arguments as arrays over the same batch axes, the quaternions in q of unit length.

    Args:
        tree: the robot.
        values: q, qd, qd_r, qdd, tau, fx by name, of the shapes of `shapes_of`, with or without batch axes after it;
            None is zero, but for q.

    Raises:
        InputError: a wrong shape, batch axes that differ, a number that is not finite, a quaternion far from unit
            length.
        WrongKindError: the robot is something else.
    """
    check_tree(tree, "the function", ", ".join(values))
    shapes = {name: shapes_of(tree)[name] for name in values}
    arrays = {
        name: np.zeros(shapes[name]) if value is None and name != "q" else scalars(name, value, shapes[name])
        for name, value in values.items()
    }
    if "q" in arrays and is_numeric(arrays["q"]):
        arrays["q"] = np.moveaxis(tree.normalised(np.moveaxis(arrays["q"], 0, -1)), -1, 0)
    if not all(map(is_numeric, arrays.values())):  # symbols and numbers mix as objects
        arrays = {name: x.astype(object) for name, x in arrays.items()}
    batches = {name: x.shape[len(shapes[name]) :] for name, x in arrays.items()}
    batch = max(batches.values(), key=len, default=())
    if not set(batches.values()) <= {(), batch}:
        listed = ", ".join(f"{name} {axes}" for name, axes in batches.items())
        raise InputError(f"the arguments differ in their batch axes: {listed}.")
    return tuple(spread(x, shapes[name], batch) for name, x in arrays.items())


def scalars(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """A value as an array of a shape, with or without batch axes after it: of floats, or objects for symbols.

    Args:
        name: its name in messages.
        value: numbers or symbols.
        shape: the shape expected.

    Raises:
        InputError: another shape, neither numbers nor symbols, or a number that is not finite.
    """
    array = _array(name, value)
    if array.shape == (*shape, 1) and (hasattr(value, "elements") or not is_numeric(array)):
        array = array[..., 0]  # a column of a computer algebra
    if array.shape[: len(shape)] != shape:
        raise InputError(f"{name} has shape {array.shape}, expected {shape}, or batch axes after that.")
    return checked(name, array, array.shape) if is_numeric(array) else array


class Bodies(NamedTuple):
    """The bodies of a tree in cheaper frames than those of the links, in which the algorithms work.

    What joints feel does not depend on them. A wrench does, and is turned.

    Attributes:
        at: positions and, where they were asked for, velocities.
        I: inertia of each body (6, 6, ...).
        fx: external wrench on each body (6, ...).
    """

    at: Kinematics
    I: list[Array]
    fx: list[Array]


def bodies(
    tree: KinematicTree, q: Array, qd: Array | None = None, fx: Array | None = None, regroup: bool = False
) -> Bodies:
    """The bodies, everything but the link transforms over the batch axes of q.

    Args:
        tree: the robot.
        q: (nq, ...).
        qd: (nv, ...); without it, positions only.
        fx: (n_links, 6, ...) in link coordinates; none when None.
        regroup: whether to move inertia without effect on the joints towards the base.

    Raises:
        UnsupportedComponentError: the robot has a loop, or another component that the recursions do not take in.
    """
    check_components(tree)
    links, batch = _links(tree, regroup), q.shape[1:]
    X_up = tuple(link.crossing(q[s]) for link, s in zip(links, tree.q_slices, strict=True))
    parts = zip(links, tree.q_slices, strict=True)
    S = tuple(spread(link.joint.S(q[s]), (6, link.joint.nv), batch) for link, s in parts)
    at = Kinematics(tree, X_up, S, q)
    turned = [] if fx is None else [_turned(link.C, wrench) for link, wrench in zip(links, fx, strict=True)]
    inertias = [_over_scalar_of(q, spread(link.I, (6, 6), batch)) for link in links]
    return Bodies(at if qd is None else moving(at, qd), inertias, turned)


def _over_scalar_of(q: Array, M: Array) -> Array:
    """Constants as those of the scalar of q: an expression knows that Izz (1 / Izz) is 1, a double may not."""
    return M if is_numeric(q) or not q.size else M + 0 * q[:1]


@lru_cache(maxsize=16)
def _links(tree: KinematicTree, regroup: bool) -> tuple[InternalLink, ...]:
    return internal_links(tree, regroup)


def _turned(C: Array, wrench: Array) -> Array:
    return np.concatenate([matvec(C, wrench[:3]), matvec(C, wrench[3:])])


def _array(name: str, value: Any) -> Array:
    if is_masked(value):
        return numeric(name, value)  # which refuses it
    try:
        if hasattr(value, "elements"):  # CasADi, by columns
            array = np.empty(value.numel(), dtype=object)
            array[:] = value.elements()
            array = array.reshape(value.shape, order="F")
        else:
            array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not an array of numbers or symbols: {error}") from None
    if is_numeric(array) or all(isinstance(x, int | float) for x in array.flat):
        return numeric(name, value)
    if not all(hasattr(x, "__mul__") and not isinstance(x, NO_SYMBOLS) for x in array.flat):
        raise InputError(f"{name} is not an array of numbers or symbols.")
    return array
