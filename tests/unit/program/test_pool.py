"""Threads of batches: whoever computes a part, the result is the same; they survive forks, and other callers."""

from __future__ import annotations

import subprocess
import sys
import threading

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


@pytest.fixture(scope="module")
def inertia():
    return nd.compile(nd.crba, nd.autotree(4, skew=0.3), backend="native")


@pytest.mark.parametrize("N", [1, 31, 32, 33, 64, 127, 1000])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_number_of_threads_changes_no_digit(inertia, N, order):
    q = np.random.default_rng(N).normal(size=(N, 4))
    q[:: max(1, N // 3)] *= 1e7  # whose sines are computed otherwise, with those of their neighbours
    expected = inertia.batch(q, order=order)
    for threads in (2, 3, 7, 300):
        np.testing.assert_array_equal(inertia.batch(q, threads=threads, order=order), expected)


def test_many_callers_at_once():
    tree, wrong = nd.autotree(4, skew=0.3), []
    q = np.random.default_rng(0).normal(size=(700, 4))
    expected = nd.compile(nd.crba, tree, backend="native").batch(q)

    def work():
        own = nd.compile(nd.crba, tree, backend="native")
        wrong.extend(1 for _ in range(100) if not np.array_equal(own.batch(q, threads=3), expected))

    callers = [threading.Thread(target=work) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_what_is_wrong_is_found_in_every_part(inertia):
    for k in (0, 40, 999):
        q = np.zeros((1000, 4))
        q[k, 2] = np.nan
        with pytest.raises(nd.InputError, match=rf"q\[{k}, 2\] is nan"):
            inertia.batch(q, threads=3)


def test_a_forked_process_has_threads_of_its_own_and_both_end():
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, timeout=300)
    assert (found.returncode, found.stderr) == (0, "")
