"""What NumPy turns into floats in silence is no number: refused by one checker, wherever numbers are given."""

from __future__ import annotations

import datetime
from functools import lru_cache

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.arrays import numeric
from nori_dyn.api.plan import Plan
from nori_dyn.errors import InputError
from tests.systems import sensor_set
from tests.unit.solve.test_switching import planned as contact_plans

TREE = nd.autotree(3, skew=0.4)
N = TREE.nv


@lru_cache
def planned() -> Plan:
    """Return the plan of a chain whose readings are N accelerations, then N torques; as many weights."""
    rows = [{"type": kind, "joints": "all", "sigma": 1} for kind in ("joint_acceleration", "joint_torque")]
    return nd.plan(nd.System(TREE, sensor_set(*rows, {"type": "external_wrench", "links": "all", "value": 0})))


def zeros() -> np.ndarray:
    return np.zeros(N)


def twice(x) -> list:
    return [x, x]


def solve(**given) -> None:
    planned().solver("numpy").solve(**({"q": zeros(), "qd": zeros(), "y": np.zeros(2 * N)} | given))


def solve_batch(**given) -> None:
    state = {"Q": np.zeros((2, N)), "Qd": np.zeros((2, N)), "Y": np.zeros((2, 2 * N))}
    planned().solver("numpy").solve_batch(**(state | given))


def long(x) -> object:
    """Return numbers for N joints twice over, of the same kind."""
    return [*x, *x] if isinstance(x, list) else (np.ma if isinstance(x, np.ma.MaskedArray) else np).concatenate([x, x])


TAKERS = {
    "q": lambda x: solve(q=x),
    "qd": lambda x: solve(qd=x),
    "y": lambda x: solve(y=long(x)),
    "y by name": lambda x: solve(y={f"{kind}:{j}": x[k] for kind in ("qdd", "tau") for k, j in names()}),
    "weights": lambda x: solve(weights=long(x)),
    "Q": lambda x: solve_batch(Q=twice(x)),
    "Qd": lambda x: solve_batch(Qd=twice(x)),
    "Y": lambda x: solve_batch(Y=twice(long(x))),
    "weights of a batch": lambda x: solve_batch(weights=twice(long(x))),
    "D": lambda x: planned().system.D(x),
    "q of b": lambda x: planned().system.b(x, zeros(), np.zeros(2 * N)),
    "y of b": lambda x: planned().system.b(zeros(), zeros(), long(x)),
    "monitor": lambda x: planned().monitor("numpy").check(zeros(), zeros(), long(x)),
    "rnea": lambda x: nd.rnea(TREE, x, zeros(), zeros()),
    "aba": lambda x: nd.aba(TREE, zeros(), zeros(), x),
    "crba": lambda x: nd.crba(TREE, x),
    "wrenches": lambda x: nd.rnea(TREE, zeros(), zeros(), zeros(), twice(x)),
    "compiled": lambda x: nd.compile(nd.recursions.gravity_force, TREE, backend="numpy")(x),
    "observability": lambda x: nd.observability(planned().system, configurations=twice(x)),
    "contacts": lambda x: contact_plans().solver("numpy").solve_batch(twice(x), twice(x), twice(x)),
}


def names() -> list[tuple[int, str]]:
    return list(enumerate(TREE.joint_names))


GIVEN = {
    "masked": (np.ma.masked_array(np.zeros(N), [False, True, False]), "is a masked array"),
    "masked rows in a list": ([np.ma.masked_array(0.0, True)] * N, "is a masked array"),
    "complex": (np.zeros(N, dtype=complex), "holds complex numbers"),
    "text": (["0"] * N, "holds text"),
    "dates": (np.zeros(N, dtype="datetime64[s]"), "holds dates"),
    "time spans": (np.zeros(N, dtype="timedelta64[s]"), "holds time spans"),
    "booleans": (np.zeros(N, dtype=bool), "holds booleans"),
    "objects": ([datetime.timedelta(0)] * N, "holds datetime.timedelta|numbers or symbols"),
    "nothing": ([0.0] * (N - 1) + [None], "holds None|numbers or symbols"),
}


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("taker", TAKERS)
def test_no_number_is_made_of_what_is_none(taker, kind):
    given, message = GIVEN[kind]
    with pytest.raises(InputError, match=message):
        TAKERS[taker](given)


@pytest.mark.parametrize(
    "given", [[0, 1, 2], (0.0, 1, 2), np.arange(3, dtype=np.uint8), np.arange(3, dtype=np.float32)]
)
def test_all_real_numbers_are_taken(given):
    assert numeric("x", given).tolist() == [0.0, 1.0, 2.0]
    assert numeric("x", given).dtype == np.float64
    assert numeric("x", np.array(given, dtype=object)).tolist() == [0.0, 1.0, 2.0]


def test_ragged_lists_are_refused_in_words():
    for taker in (numeric, lambda _, x: solve_batch(Q=x), lambda _, x: solve_batch(weights=x)):
        with pytest.raises(InputError, match="is not an array of numbers"):
            taker("x", [[0.0, 1.0], [0.0]])


@pytest.mark.parametrize("threads", [2.5, 0, -1, "2", None, True])
def test_threads_are_a_whole_number(threads):
    state = np.zeros((2, N)), np.zeros((2, N))
    compiled = nd.compile(nd.recursions.gravity_force, TREE, backend="numpy")
    contacts = contact_plans().solver("numpy")
    calls = (
        lambda: solve_batch(threads=threads),
        lambda: planned().monitor("numpy").check_batch(*state, np.zeros((2, 2 * N)), threads=threads),
        lambda: compiled.batch(state[0], threads=threads),
        lambda: contacts.solve_batch(np.zeros((2, 6)), np.zeros((2, 6)), np.zeros((2, contacts.ny)), threads=threads),
    )
    for call in calls:
        with pytest.raises(InputError, match=r"threads is .*must be a whole number, at least 1"):
            call()


@pytest.mark.parametrize(
    "contacts", [5, 2.5, np.float64(1), np.array(True), np.ma.masked_array([True] * 3, [True] * 3)]
)
def test_contacts_that_are_no_names_are_refused_in_words(contacts):
    solver = contact_plans().solver("numpy")
    state = np.zeros(6), np.zeros(6), np.zeros(solver.ny)
    calls = (
        lambda: solver.switch(contacts),
        lambda: solver.solve(*state, contacts),
        lambda: solver.solve_batch(*(x[None] for x in state), contacts),
    )
    for call in calls:
        with pytest.raises(InputError, match=r"contacts is .*expected names, or booleans"):
            call()
