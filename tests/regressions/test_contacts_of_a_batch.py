"""Contacts of a batch mean one thing: ["A", "B", "A", "A"] for four states was read as A and B closed in all."""

from __future__ import annotations

import numpy as np
import pytest

from nori_dyn.errors import InputError
from tests.unit.solve.test_switching import data, planned


@pytest.mark.parametrize(
    "contacts",
    [["a", "b", "a", "a"], ("a", "b"), ["b"], ("a", "b", "c", "a"), [("a",), "b", ("a",), ()], {"a": 1}.keys()],
)
def test_a_sequence_of_names_is_refused_whatever_it_means(contacts):
    Q, Qd, Y, _ = data(planned(), 4)
    solver = planned().solver("numpy")
    if isinstance(contacts, type({}.keys())):  # a set, as names in a dictionary are
        assert solver.solve_batch(Q, Qd, Y, contacts).tau.shape == (4, 6)
        return
    with pytest.raises(InputError, match=r"with the name '.' in it.*closed in all 4 states, or one for each"):
        solver.solve_batch(Q, Qd, Y, contacts)


def test_no_states_are_not_no_contact():
    Q, Qd, Y, _ = data(planned(), 4)
    solver = planned().solver("numpy")
    with pytest.raises(InputError, match="contacts has 0 states, expected 4"):
        solver.solve_batch(Q, Qd, Y, [])
    expected = solver.solve_batch(Q, Qd, Y, [()] * 4)
    np.testing.assert_array_equal(solver.solve_batch(Q, Qd, Y, set()).tau, expected.tau)


def test_a_set_is_for_all_states_and_a_sequence_of_them_for_each():
    Q, Qd, Y, _ = data(planned(), 2)
    solver = planned().solver("numpy")
    both = solver.solve_batch(Q, Qd, Y, {"a", "b"})
    each = solver.solve_batch(Q, Qd, Y, [("a",), ("b",)])
    for k in range(2):
        np.testing.assert_array_equal(both.tau[k], solver.solve(Q[k], Qd[k], Y[k], ("b", "a")).tau)
        np.testing.assert_array_equal(each.tau[k], solver.solve(Q[k], Qd[k], Y[k], "ab"[k]).tau)
