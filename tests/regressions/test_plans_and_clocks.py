"""Plans came out otherwise on busy machines, as time ran out before all orderings were tried."""

from __future__ import annotations

import itertools
import time

import pytest

import nori_dyn as nd
from nori_dyn.io.plan_files import plan_to_text
from tests.robots import load

pytestmark = pytest.mark.usefixtures("own_cache")


def test_a_slow_clock_changes_no_plan(monkeypatch):
    system = nd.System(load("anymal", "floating"), nd.sensors("forward_dynamics"))
    quick = nd.plan(system, outputs=["qdd"], cache=False)
    ticks = itertools.count(step=1e4)
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))
    slow = nd.plan(system, outputs=["qdd"], cache=False)
    assert plan_to_text(slow, ["qdd"]) == plan_to_text(quick, ["qdd"])
    assert len(quick.tried) >= 3


def test_of_equal_programs_the_order_that_is_cheapest_on_D_is_taken():
    plan = nd.plan(nd.System(nd.autotree(6, skew=0.3), nd.sensors("inverse_dynamics")), cache=False)
    equal = [candidate for candidate in plan.tried if candidate.burden == plan.tried[0].burden]
    assert plan.tried[0].cost.total == min(candidate.cost.total for candidate in equal)
