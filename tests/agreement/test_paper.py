"""What the paper claims and what was found about it: Property 1, zero fill-in, and its counts of operations."""

import csv
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from nori_dyn.descriptions.sensor_configs import sensors
from nori_dyn.estimation.plan import plan
from nori_dyn.model.joints import MOTION
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.planning.cost import RULES
from nori_dyn.planning.elimination import FIELD, Elimination
from nori_dyn.planning.orderings.problem import OrderingProblem, ordering_problem
from nori_dyn.planning.orderings.registry import ORDERINGS
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.system.builder import System
from nori_dyn.system.trace import trace
from nori_dyn.system.variables import KINDS
from tests.covering import covering
from tests.oracles import refined_solution
from tests.systems import FORWARD, INVERSE, Figure2, paper_chain

COUNTS = Path(__file__).parents[1] / "data" / "paper_counts"

needs_umfpack = pytest.mark.skipif(not has_umfpack(), reason="the extra 'umfpack' is not installed")


# ------------------------------------------------------------------------------------- Property 1


def permutation_10(system: System) -> np.ndarray:
    """q of (10): fx_1 qdd_1 ... fx_N qdd_N, a_1 ... a_N, f_N tau_N ... f_1 tau_1."""
    n = system.tree.n_links
    order = [(kind, i) for i in range(n) for kind in ("fx", "qdd")]
    order += [("a", i) for i in range(n)]
    order += [(kind, i) for i in reversed(range(n)) for kind in ("f", "tau")]
    return np.concatenate([np.arange(system.shape[1])[system.column(kind, i)] for kind, i in order])


def permutation_11(system: System) -> np.ndarray:
    """p_id of (11): the measurements of fx_1 qdd_1 ..., (3a) up the tree, then (3f) (3tau) down it."""
    tree = system.tree
    rows = {row.name: row.slice for row in system.rows}
    order = []
    for name, joint in zip(tree.names, tree.joint_names, strict=True):
        order += [f"fx:{name}", f"qdd:{joint}"]
    order += [f"3a:{name}" for name in tree.names]
    for i in reversed(range(tree.n_links)):
        order += [f"3f:{tree.names[i]}", f"3tau:{tree.joint_names[i]}"]
    return np.concatenate([np.arange(system.shape[0])[rows[name]] for name in order])


SOME = ((1, 1), (2, 1), (3, 2), (10, 2), (30, 1.5), (100, 1.5))
PROPERTY_1 = {f"{n}-{branching}": partial(autotree, n, branching, 1.0, 0.9) for n, branching in SOME}
PROPERTY_1 |= {f"random-{seed}": partial(random_tree, 15, seed) for seed in range(2)}


@pytest.mark.parametrize("make", PROPERTY_1.values(), ids=PROPERTY_1)
def test_property_1(make):
    tree = make()
    system = System(tree, INVERSE)
    P, Q = permutation_11(system), permutation_10(system)
    permuted = trace(system).pattern[P][:, Q]
    assert sp.triu(permuted, 1).nnz == 0
    D = system.D(tree.random_configuration(1))[P][:, Q]
    assert sp.triu(D, 1).nnz == 0
    np.testing.assert_array_equal(np.abs(D.diagonal()), 1.0)
    done = Elimination(trace(system), FIELD).run(P, Q)
    assert done.fill_in == 0
    assert not any(step.u for step in done.pivots)


# --------------------------------------------------------------------------------- zero fill-in


@covering(n=[1, 2, 3, 10, 30, 100], branching=[1, 1.5, 2], name=["umfpack", "recursive", "markowitz"])
def test_inverse_dynamics_has_no_fill_in(n, branching, name):
    if name == "umfpack" and not has_umfpack():
        pytest.skip("the extra 'umfpack' is not installed")
    problem = inverse_problem(n, branching)
    order = ORDERINGS[name](problem)
    pattern = problem.symbolic.pattern
    done = Elimination(problem.symbolic, FIELD).run(order.rows, order.columns)
    assert done.fill_in == 0
    assert done.nonzeros == pattern.nnz
    assert all(step.is_unit for step in done.pivots)
    permuted = pattern[order.rows][:, order.columns]
    assert sp.triu(permuted, 1).nnz == 0 or sp.tril(permuted, -1).nnz == 0


@lru_cache(maxsize=1)
def inverse_problem(n: int, branching: float) -> OrderingProblem:
    system = System(autotree(n, branching, 1.0, 0.9), INVERSE)
    return ordering_problem(system, trace(system), seed=0, n_samples=3)


# ------------------------------------------------------------------- the published operation counts
#
# UMFPACK's permutation depends on the values that it is given, and so do the counts; the published ones come from
# one draw of them. On forward dynamics the draws differ by up to 12 %, on figure 2 by a factor of up to 1.6. So three
# things are held: each N_B against the nearest of the draws, each N_B against their median, and the sum over all N_B
# of the medians. The nearest draw is within 6 % at every N_B but for the honest count of figure 2.
# Where a bound is wider, that is the scatter of UMFPACK's orders, ours and theirs, and not of the counting, which is
# exact on inverse dynamics, where every order is as good.


class Bounds(NamedTuple):
    """How far counts may be off: from the nearest draw, from the median, and summed over all N_B."""

    nearest: float
    median: float
    total: float


BOUNDS = {
    ("fig1_fd", "published_fig1"): Bounds(0.04, 0.07, 0.01),
    ("fig1_fd", "textbook_without_units"): Bounds(0.04, 0.13, 0.04),
    ("id", "published_fig2"): Bounds(0.03, 0.03, 0.02),
    ("id", "textbook_without_units"): Bounds(0.0, 0.0, 0.0),
    ("fig2_loadcell", "published_fig2"): Bounds(0.06, 0.2, 0.04),
    ("fig2_loadcell", "textbook_without_units"): Bounds(0.15, 0.4, 0.12),
}

DRAWS = {"fig1_fd": 15, "id": 3, "fig2_loadcell": 31}

CHAINS = {
    "fig1_fd": (0.9, FORWARD, "published_fig1", range(2, 31)),
    "id": (0.9, INVERSE, "published_fig2", range(2, 31)),
    "fig2_loadcell": (1.0, Figure2(), "published_fig2", range(4, 21)),
}


def published(figure: str, method: str) -> dict[int, tuple[int, int]]:
    """Additions and multiplications by N_B, from the counts made with the paper's scripts."""
    with (COUNTS / f"{figure}.csv").open() as file:
        return {
            int(row["nb"]): (int(row["additions"]), int(row["multiplications"]))
            for row in csv.DictReader(file)
            if row["method"] == method
        }


@cache
def counted(figure: str, n: int) -> dict[str, np.ndarray]:
    """By each rule the additions and the rest (draws, 2) of UMFPACK's orders, one a draw of its values."""
    taper, sensors, _, _ = CHAINS[figure]
    system = System(paper_chain(n, taper), sensors)
    symbolic = trace(system)
    problem = ordering_problem(system, symbolic, seed=0, n_samples=DRAWS[figure])
    counts: dict[str, list[tuple[int, int]]] = {rule: [] for rule in RULES}
    for k in range(DRAWS[figure]):
        order = ORDERINGS["umfpack"](replace(problem, samples=problem.samples[[k]]))
        done = Elimination(symbolic, FIELD).run(order.rows, order.columns)
        for rule, count in RULES.items():
            cost = count(done)
            counts[rule].append((cost.additions, cost.multiplications + cost.divisions))
    return {rule: np.array(each) for rule, each in counts.items()}


@needs_umfpack
@pytest.mark.parametrize(
    "sizes", [pytest.param(slice(2, None, 9), id="some"), pytest.param(slice(None), id="every", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("figure", CHAINS)
def test_counts(figure, sizes):
    _, _, shipped, every = CHAINS[figure]
    for rule, method in ((shipped, "shipped_port"), ("textbook_without_units", "correct_free1")):
        bounds, theirs = BOUNDS[figure, rule], published(figure, f"paper20_permLU_{method}")
        medians = []
        for n in every[sizes]:
            draws, expected = counted(figure, n)[rule], np.array(theirs[n])
            off = np.abs(draws / expected - 1)
            assert off.max(axis=1).min() <= bounds.nearest, f"{rule}, N_B = {n}"
            medians.append(np.median(draws, axis=0))
            assert np.abs(medians[-1] / expected - 1).max() <= bounds.median, f"{rule}, N_B = {n}"
        if sizes == slice(None):
            total = np.sum([theirs[n] for n in every], axis=0)
            assert np.abs(sum(medians) / total - 1).max() <= bounds.total, rule


def test_variables_are_those_of_the_paper():
    assert set(KINDS) == {"a", "f", "tau", "fx", "qdd"}
    assert MOTION[:3] == ("wx", "wy", "wz")
    for n in (4, 9):
        system = System(autotree(n), Figure2())
        assert system.shape == (20 * n, 20 * n)
        assert system.ny == 7 * n


def test_the_set_of_the_published_code_is_that_of_figure_2():
    """Its rows, in another order, and so what `test_reused_pivots_are_exact_on_the_load_cell_robot` says of it."""
    q = (tree := autotree(10, skew=1.5, taper=0.95)).random_configuration(0)
    shipped, by_hand = (System(tree, each).D(q).toarray().tolist() for each in (sensors("nori_code"), Figure2()))
    assert sorted(shipped) == sorted(by_hand)


# ------------------------------------------------------------------------------------- reused pivots


@pytest.mark.parametrize("n", [8, pytest.param(12, marks=pytest.mark.long)])
def test_reused_pivots_are_exact_on_the_load_cell_robot(n):
    tree = autotree(n, 1, 1.5, 1.0).replace(gravity=(0.0, -9.81, 0.0))
    system = System(tree, Figure2())
    solver = plan(system).solver()
    rng = np.random.default_rng(0)
    Q = np.array([tree.random_configuration(rng) for _ in range(2000)])
    Qd, Y = rng.normal(size=(2000, tree.nv)), rng.normal(size=(2000, system.ny))
    estimate = solver.solve_batch(Q, Qd, Y)
    near_singular = np.argsort(-estimate.residual)[:20]
    for k in {*near_singular.tolist(), *range(20), *np.flatnonzero(estimate.fell_back).tolist()}:
        expected = refined_solution(system, Q[k], Qd[k], Y[k])
        for kind in KINDS:
            found = estimate[kind][k].reshape(-1)
            part = np.concatenate([expected[system.column(kind, i)] for i in range(n)])
            assert np.abs(found - part).max() <= 1e-9 * np.abs(expected).max()
    assert estimate.fell_back.mean() < 0.01
