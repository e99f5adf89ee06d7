"""Batches that write where they are told, and what they refuse."""

import numpy as np
import pytest

import nori_dyn as nd
from tests.compilers import needs_compiler
from tests.tolerances import SOLVED, assert_close
from tests.trees import TREES

BACKENDS = [pytest.param("native", marks=needs_compiler), "numpy"]
N = 41


@pytest.fixture(scope="module")
def plan():
    tree = TREES["three_children"]
    return nd.plan(nd.System(tree, "inverse_dynamics"), outputs=["tau", f"f:{tree.names[1]}"])


@pytest.fixture(params=BACKENDS)
def solver(plan, request):
    return plan.solver(request.param)


def states(solver, seed=0, n=N):
    rng = np.random.default_rng(seed)
    tree = solver.system.tree
    return tree.random_configurations(n, rng), rng.normal(size=(n, tree.nv)), rng.normal(size=(n, solver.system.ny))


def size(solver):
    return sum(values.size for values in vars(solver.outputs).values())


class TestOut:
    def test_an_estimate_is_used_again(self, solver):
        first = solver.solve_batch(*states(solver))
        tau, expected = first.tau, solver.solve_batch(*states(solver, 1))
        assert solver.solve_batch(*states(solver, 1), out=first) is first
        assert np.shares_memory(first.tau, tau)
        for name in expected.values:
            np.testing.assert_array_equal(first[name], expected[name])

    def test_what_was_wrong_before_is_forgotten(self, solver):
        Q, Qd, Y = states(solver)
        estimate = solver.solve_batch(Q, Qd, Y)
        with pytest.raises(nd.errors.InputError, match=r"Y\[3, 0\] .* is inf"):
            solver.solve_batch(Q, Qd, np.where(np.arange(N)[:, None] == 3, np.inf, Y), out=estimate)
        expected = solver.solve_batch(Q, Qd, Y)
        np.testing.assert_array_equal(solver.solve_batch(Q, Qd, Y, out=estimate).tau, expected.tau)
        assert not estimate.singular.any()
        assert not estimate.fell_back.any()

    def test_an_estimate_of_another_solver_of_the_plan_and_of_something_else(self, solver, plan):
        expected = solver.solve_batch(*states(solver)).tau
        estimate = plan.solver("numpy").solve_batch(*states(solver, 1))
        assert_close(solver.solve_batch(*states(solver), out=estimate).tau, expected, SOLVED)
        other = nd.plan(plan.system, outputs=["tau"]).solver("numpy")
        with pytest.raises(nd.errors.InputError, match=r"out is an estimate of tau of .*, and here are tau, f:.* of"):
            solver.solve_batch(*states(solver), out=other.solve_batch(*states(other)))
        with pytest.raises(nd.errors.InputError, match=r"out has shape \(4, 15\)"):
            solver.solve_batch(*states(solver), out=solver.solve_batch(*states(solver, n=4)))


def test_quaternions_are_brought_to_unit_length_and_left_as_they_are(solver):
    Q, Qd, Y = states(solver)
    longer = Q.copy()
    longer[:, solver.system.tree.quaternions[0]] *= 1 + 8e-4 * np.linspace(-1, 1, N)[:, None]
    kept = longer.copy()
    expected = solver.solve_batch(Q, Qd, Y).tau
    assert_close(solver.solve_batch(longer, Qd, Y).tau, expected, SOLVED)
    assert_close(solver.solve(longer[0], Qd[0], Y[0]).tau, expected[0], SOLVED)
    np.testing.assert_array_equal(longer, kept)


def test_quaternions_of_other_lengths_are_refused_by_joint(solver):
    for length in (0.0, 0.99, 1.002, 1e3):
        Q, Qd, Y = states(solver)
        Q[17, solver.system.tree.quaternions[0]] *= length
        message = rf"quaternion .* of joint 'joint1'.* has length {length:.6g} instead of 1"
        for singular in ("refuse", "nan"):
            with pytest.raises(nd.errors.InputError, match=message):
                solver.solve_batch(Q, Qd, Y, singular=singular)
        with pytest.raises(nd.errors.InputError, match=message):
            solver.solve(Q[17], Qd[17], Y[17])


class TestOutOfFunctions:
    @pytest.fixture(params=BACKENDS)
    def both(self, request):
        def function(tree, q, qd):
            return nd.crba(tree, q), nd.rnea(tree, q, qd, 0 * qd)

        return nd.compile(function, nd.autotree(3), backend=request.param)

    def test_a_tuple_and_what_cannot_be_written(self, both):
        q, qd = np.random.default_rng(0).normal(size=(2, N, 3))
        H, c = both.batch(q, qd)
        for order in ("C", "F"):
            out = both.batch(qd, q, order=order)
            assert both.batch(q, qd, out=out) is out
            for found, array in zip(out, (H, c), strict=True):
                np.testing.assert_array_equal(found, array)
        for out, words in [
            ((H,), "out is a tuple, expected a tuple of 2 arrays"),
            (H, "out is a ndarray, expected a tuple of 2 arrays"),
            ((H, H), r"out\[1\] has shape \(41, 3, 3\)"),
            ((H, H[:, 0]), r"out\[1\] and out\[0\] share memory"),
            ((H, qd), r"out\[1\] and qd share memory"),
            ((np.empty((N, 3, 6))[:, :, ::2][:, ::-1], c), r"out\[0\] has its numbers at uneven steps"),
        ]:
            with pytest.raises(nd.errors.InputError, match=words):
                both.batch(q, qd, out=out)
