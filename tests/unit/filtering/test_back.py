"""Passes over many ticks say the same natively and through NumPy: two algorithms, forward and back."""

from __future__ import annotations

import numpy as np
import pytest

import nori_dyn as nd
from tests.compilers import needs_compiler
from tests.observers import observer

pytestmark = needs_compiler

N = 40
SLOW = {"quadruped": [pytest.mark.long], "humanoid": [pytest.mark.long], "arm": [], "arm_anywhere": []}

AGREES = 1e-10
"""By how much they may be apart, as a share of the largest of their kind."""


def over(name, backend, causal, lost=(), gap=None, unsteady=True):
    """Return what a filter says of ticks of a robot, with what is missing at some, in contact states by turns."""
    of = observer(name)
    one = nd.Filter(of.plans, of.dt, backend)
    rng, tree = np.random.default_rng(5), of.systems[0].tree
    steps = of.dt * (rng.choice([0.5, 1.0, 2.0], N) if unsteady else np.ones(N))
    if gap is not None:
        steps[gap] = 30 * of.dt
    Q = np.array([tree.random_configuration(5)] * N)
    Qd, Y = rng.normal(size=(N, tree.nv)), rng.normal(size=(N, len(one.inputs.y)))
    Y[np.ix_(list(lost), np.arange(0, Y.shape[1], 2))] = np.nan
    contacts = [of.states[k // 6 % len(of.states)] for k in range(N)] if len(of.states) > 1 else None
    T = np.cumsum(steps)
    return one.over(T, Q, Qd, Y, contacts, missing="drop", singular="nan", causal=causal)


def assert_same(found, expected):
    """Compare all that two histories say; what is not known is so in both."""
    pairs = [(found[name], expected[name]) for name in expected.estimate.values]
    pairs += [(found.deviations[name], expected.deviations[name]) for name in expected.deviations]
    pairs += [
        (getattr(found.memory, name), getattr(expected.memory, name)) for name in ("mean", "deviations", "shares")
    ]
    pairs += [(getattr(found, name), getattr(expected, name)) for name in ("nis", "log_likelihood", "degrees")]
    for own, other in pairs:
        np.testing.assert_array_equal(np.isfinite(own), np.isfinite(other))
        known = np.isfinite(other)
        scale = np.abs(other[known]).max(initial=0.0)
        np.testing.assert_allclose(own[known], other[known], rtol=0, atol=AGREES * scale)
    np.testing.assert_array_equal(found.estimate.singular, expected.estimate.singular)


CASES = {
    "an arm": {"name": "arm"},
    "an arm of which nothing is known at first, and little told": {"name": "arm_anywhere", "lost": range(3)},
    "readings that are missing": {"name": "arm", "lost": (7, 8, 20)},
    "a gap": {"name": "arm", "gap": 11},
    "a gap where contacts switch": {"name": "quadruped", "gap": 12},
    "feet that switch": {"name": "quadruped", "lost": (13,)},
    "no rates": {"name": "humanoid"},
}


@pytest.mark.parametrize("causal", [True, False], ids=["filter", "smoother"])
@pytest.mark.parametrize("case", [pytest.param(name, marks=SLOW[of["name"]]) for name, of in CASES.items()])
def test_native_and_numpy_agree(case, causal):
    assert_same(*(over(backend=backend, causal=causal, **CASES[case]) for backend in ("native", "numpy")))
