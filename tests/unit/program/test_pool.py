"""Threads of batches: whoever computes a part, the result is the same; they survive forks, and other callers."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nori_dyn as nd
from tests.compilers import needs_compiler

pytestmark = needs_compiler

FORKS = """
import os
import numpy as np
import nori_dyn as nd

rnea = nd.compile(nd.rnea, nd.autotree(3), backend="native")
states = np.random.default_rng(0).normal(size=(3, 999, 3))
expected = rnea.batch(*states)
assert np.array_equal(rnea.batch(*states, threads=3), expected)
child = os.fork()
if not child:
    try:
        same = all(np.array_equal(rnea.batch(*states, threads=n), expected) for n in (2, 5, 3))
    finally:
        os._exit(0 if same else 1)
assert os.waitpid(child, 0)[1] == 0
assert np.array_equal(rnea.batch(*states, threads=2), expected)
"""


def inertia():
    return nd.compile(nd.crba, nd.autotree(4, skew=0.3), backend="native")


def test_the_number_of_threads_changes_no_digit(lanes):
    own = inertia()
    for N in (1, 31, 32, 33, 64, 127, 1000):
        q = np.random.default_rng(N).normal(size=(N, 4))
        q[:: max(1, N // 3)] *= 1e7  # whose sines are computed otherwise, with those of their neighbours
        for order in "CF":
            expected = own.batch(q, order=order)
            for threads in (2, 3, 7, 300):
                np.testing.assert_array_equal(own.batch(q, threads=threads, order=order), expected)


def test_many_callers_at_once():
    """Each compiles its function itself, and calls it for one state and for many."""
    q = np.random.default_rng(0).normal(size=(700, 4))
    alone = inertia()
    expected, ones = alone.batch(q), np.array([alone(x) for x in q[:100]])

    def differing(k):
        own = inertia()
        many = sum(not np.array_equal(own.batch(q, threads=3), expected) for _ in range(100))
        return many + sum(not np.array_equal(own(q[(k + i) % 100]), ones[(k + i) % 100]) for i in range(200))

    with ThreadPoolExecutor(4) as callers:
        assert sum(callers.map(differing, range(4))) == 0


def test_what_is_wrong_is_found_in_every_part():
    own = inertia()
    for k in (0, 40, 999):
        q = np.zeros((1000, 4))
        q[k, 2] = np.nan
        with pytest.raises(nd.errors.InputError, match=rf"q\[{k}, 2\] is nan"):
            own.batch(q, threads=3)


def test_a_forked_process_has_threads_of_its_own_and_both_end():
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, timeout=300)
    assert (found.returncode, found.stderr) == (0, "")
