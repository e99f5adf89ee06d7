"""What every algorithm makes of its arguments alike: batches, lists, refusals; and how its operations grow."""

import numpy as np
import pytest

from nori_dyn.errors import InputError
from nori_dyn.model.synthetic import autotree
from nori_dyn.program.functions import compile
from nori_dyn.recursions import aba, christoffel, coriolis, crba, minverse, rnea, times_C
from tests import covering
from tests.systems import random_states
from tests.tolerances import ROUNDING, assert_close
from tests.trees import FLOATING, TREES
from tests.unit.recursions.algorithms import ALGORITHMS, CENTRE, CHRISTOFFEL, OF_ARRAYS
from tests.unit.recursions.test_coriolis import SINGLE
from tests.unit.recursions.test_joint_terms import WITH_MOTORS

EVERY = ALGORITHMS | OF_ARRAYS | CHRISTOFFEL | CENTRE
MASSLESS = {"massless": TREES["massless"]}
HEAVY = {name: tree for name, tree in TREES.items() if name not in MASSLESS}
HEAVY |= {f"{name} with motors": tree for name, tree in WITH_MOTORS.items()}


def trees_of(name):
    """The trees on which an algorithm has an answer."""
    if name in CHRISTOFFEL:
        return SINGLE
    if name in CENTRE:
        return FLOATING
    return HEAVY if "aba" in name or "inver" in name or "forward" in name or "hybrid" in name else HEAVY | MASSLESS


def some_trees_of(name):
    """A third of these, another for each algorithm, and the one that has most; all of them with `--all`."""
    trees, first = list(trees_of(name).values()), list(EVERY).index(name) % 3
    chosen = [*trees[first::3], max(trees, key=lambda tree: len({joint.kind for joint in tree.joints}))]
    return trees if covering.ALL else {id(tree): tree for tree in chosen}.values()


@pytest.mark.parametrize("name", EVERY)
def test_a_batch_is_each_one_and_two_batch_axes_are_one(name):
    algorithm, n = EVERY[name], 4
    for tree in some_trees_of(name):
        states = random_states(tree, n, seed=8)
        values = [np.moveaxis(x, 0, -1) for x in (states.q, states.qd, states.qdd, states.fx)]
        batch = algorithm(tree, *values)
        for k in (0, n - 1):
            assert_close(batch[..., k], algorithm(tree, *(x[..., k] for x in values)), algorithm.tolerance)
        two = algorithm(tree, *(x.reshape(*x.shape[:-1], 2, 2) for x in values))
        assert_close(two, batch.reshape(*batch.shape[:-1], 2, 2), algorithm.tolerance)


def a_tree_of(name):
    return next(iter(FLOATING.values())) if name in CENTRE else TREES["autotree_chain"]


def state_of(tree):
    q = tree.random_configuration(1)
    still = np.zeros(tree.nv)
    return {"q": q, "qd": still, "qdd": still, "qd_r": still, "tau": still, "fx": np.ones((tree.n_links, 6))}


@pytest.mark.parametrize("name", [name for name in EVERY if not name.startswith("inverse_by")])
def test_lists_are_numbers_and_bad_arguments_are_named(name):
    algorithm, tree = EVERY[name], a_tree_of(name)
    state = state_of(tree)
    given = [state[of] for of in algorithm.arguments]
    for ours, expected in zip(
        algorithm.run(tree, *(x.tolist() for x in given)), algorithm.run(tree, *given), strict=True
    ):
        assert_close(ours, expected, ROUNDING)
    for k, (of, right) in enumerate(zip(algorithm.arguments, given, strict=True)):
        size = ", ".join(map(str, right.shape)) + ("," if right.ndim == 1 else "")
        bad, place = right.copy(), (0,) * right.ndim
        bad[place] = np.nan
        at = rf"\[{', '.join(map(str, place))}\]"
        for wrong, message in (
            (right[:-1], rf"^{of} has shape .*, expected \({size}\)"),
            (right[None], rf"^{of} has shape \(1, .*, expected \({size}\)"),
            (bad, rf"^{of}{at} is nan: values must be finite"),
            (np.where(np.isnan(bad), -np.inf, bad), rf"^{of}{at} is -inf"),
            ("none", rf"^{of}\b"),
            (["a"] * len(right), rf"^{of}\b"),
        ):
            with pytest.raises(InputError, match=message):
                algorithm.run(tree, *given[:k], wrong, *given[k + 1 :])
        if k:
            batches = [given[0][:, None] * np.ones(2), *given[1:k], right[..., None] * np.ones(3), *given[k + 1 :]]
            with pytest.raises(InputError, match=rf"batch axes: .*q \(2,\).*\b{of} \(3,\)"):
                algorithm.run(tree, *batches)


DEGREES = {
    "rnea": (rnea, 1),  # RBDA table 5.1
    "aba": (aba, 1),  # RBDA table 7.1
    "times_C": (times_C, 1),  # Niemeyer and Slotine
    "crba": (crba, 2),  # RBDA table 6.2
    "minverse": (minverse, 3),  # RBDA ch. 6.5: chains of these sizes take less by their factors
    "coriolis": (coriolis, 2),  # Echeandia and Wensing, algorithm 1
    "christoffel": (christoffel, 3),  # Echeandia and Wensing, algorithm 2
}
SIZES = range(4, 10)


@covering.covering(strength=1, name=[*DEGREES], taper=[1.0, 0.9])
def test_operations_of_a_chain_are_a_polynomial(name, taper):
    """Differences of its degree are a constant that is not zero: nothing is lost to rounding in any inertia."""
    function, degree = DEGREES[name]
    counts = [compile(function, autotree(n, skew=1.5, taper=taper), backend="numpy").cost.total for n in SIZES]
    differences = np.diff(counts, degree)
    assert differences[0] > 0
    assert len(set(differences.tolist())) == 1, counts
    if degree > 1:  # the depth counts, not the number of links alone
        bush = compile(function, autotree(SIZES[-1], branching=2, skew=1.5, taper=taper), backend="numpy").cost.total
        assert bush < counts[-1]
