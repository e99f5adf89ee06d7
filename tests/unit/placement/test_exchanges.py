"""What could be had instead of a chosen sensor: exactly those others with which the outputs are determined."""

import contextlib

import pytest

from nori_dyn.errors import NoPlacementError
from nori_dyn.observe.report import observability
from nori_dyn.placement import exchanges
from nori_dyn.placement.cover import CoverProblem
from nori_dyn.placement.selection import place
from nori_dyn.system.builder import System
from tests.unit.placement.test_selection import random_candidates


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 24), marks=pytest.mark.long)])
def test_exchanges_are_all_that_suffice(seeds):
    judged = 0
    for seed in seeds:
        tree, candidates, outputs = random_candidates(seed)
        with contextlib.suppress(NoPlacementError):
            found = place(tree, candidates, outputs, seed=seed)
            choices = candidates.on(tree)
            assert found.exchanges.keys() == set(found.chosen), seed
            for name, others in found.exchanges.items():
                kept = [sensor for sensor in found.chosen if sensor != name]
                costs = [choices.costs[other] for other in others]
                assert costs == sorted(costs), seed
                for other in set(choices.sensors) - set(found.chosen):
                    report = observability(System(tree, choices.sensor_set([*kept, other])), where=None)
                    open_ = [each for each in report.unobservable if outputs is None or each.startswith(outputs)]
                    is_allowed = choices.is_allowed([*kept, other]) and name not in choices.must
                    assert (other in others) == (is_allowed and not open_), seed
                    judged += 1
    assert judged > len(seeds)


def test_what_takes_too_long_is_left_out(monkeypatch):
    tree, candidates, outputs = random_candidates(0)
    problem = CoverProblem.of(candidates.on(tree), outputs, 0)
    monkeypatch.setattr(exchanges, "MOST_LOOKS", 1)
    assert exchanges.exchanges(problem, list(problem.rows)) == {}
