"""The Pareto front of cost and deviation, against all subsets, each judged by the covariance of D as a whole."""

import numpy as np
import pytest

from nori_dyn.errors import InputError, NoPlacementError
from nori_dyn.placement import design
from nori_dyn.placement.cover import Found
from nori_dyn.placement.design import pareto_front
from nori_dyn.placement.selection import place
from tests.unit.placement.test_selection import Judge, random_candidates


@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 70), marks=pytest.mark.long)])
def test_the_front_of_all_subsets(seeds):
    found = 0
    for seed in seeds:
        tree, candidates, outputs = random_candidates(seed)
        outputs, survive, Q = outputs or ("a", "tau"), seed % 2, tree.random_configurations(2, seed)
        judge = Judge(tree, candidates, outputs, [tree.random_configuration(seed), *Q])
        judged = Judge(tree, candidates, outputs, Q)
        subsets = [(judge.choices.cost(some), judged.deviation(some)) for some in judge.allowed(survive)]
        expected = []
        for cost, deviation in sorted(subsets):
            if not expected or deviation < expected[-1][1] * (1 - 1e-5):
                expected.append((cost, deviation))
        if not expected:
            with pytest.raises(NoPlacementError):
                pareto_front(tree, candidates, outputs, survive=survive, where=Q)
            continue
        front = pareto_front(tree, candidates, outputs, survive=survive, where=Q)
        assert front.is_complete, seed
        points = [(point.cost, point.deviation) for point in front.points]
        np.testing.assert_allclose(points, expected, rtol=1e-5, err_msg=str(seed))
        deviations = [judged.deviation(point.chosen) for point in front.points]
        np.testing.assert_allclose(
            deviations, [point.deviation for point in front.points], rtol=1e-5, err_msg=str(seed)
        )
        found += 1
    assert found >= len(seeds) / 2


def test_a_point_is_the_cheapest_of_its_deviation():
    tree, candidates, _ = random_candidates(0)
    front = pareto_front(tree, candidates)
    for point in front.points:
        found = place(tree, candidates, deviation=point.deviation * (1 + 1e-6))
        assert (found.cost, found.is_optimal) == (point.cost, True)
    best = front.points[-1].deviation
    with pytest.raises(NoPlacementError, match="with all"):
        place(tree, candidates, deviation=0.99 * best)


def test_a_search_that_ends_early_says_so(monkeypatch):
    tree, candidates, _ = random_candidates(0)
    whole = pareto_front(tree, candidates)
    monkeypatch.setattr(design, "SHARE", 0.0)
    hasty = pareto_front(tree, candidates)
    assert not hasty.is_complete
    for point in hasty.points:
        assert point.bound <= min(p.deviation for p in whole.points if p.cost <= point.cost) <= point.deviation
    monkeypatch.setattr(design, "SHARE", 1.0)
    one = pareto_front(tree, candidates, effort=1)
    assert (len(one.points), one.is_complete) == (1, False)
    assert one.bound <= whole.points[-1].cost


def test_what_is_left_out_by_a_large_step_is_not_ruled_out(monkeypatch):
    tree, candidates, _ = random_candidates(0)
    whole = pareto_front(tree, candidates)
    monkeypatch.setattr(design, "BETTER_UNPROVEN", 0.3)
    monkeypatch.setattr(Found, "is_proven", property(lambda found: False))
    coarse = pareto_front(tree, candidates)
    assert len(coarse.points) < len(whole.points)
    assert not coarse.is_complete
    for point in coarse.points:
        best = min(p.deviation for p in whole.points if p.cost <= point.cost)
        assert point.bound <= best * (1 + 1e-9)
        assert 0 <= point.gap <= 0.3 + 1e-9
    further = [point.cost for point in whole.points if point.deviation < coarse.points[-1].deviation]
    assert coarse.bound <= min(further, default=np.inf)


def test_what_cannot_be_asked():
    tree, candidates, _ = random_candidates(0)
    with pytest.raises(InputError, match="effort"):
        pareto_front(tree, candidates, effort=0)
    with pytest.raises(InputError, match="survive is -1"):
        pareto_front(tree, candidates, survive=-1)
    with pytest.raises(InputError, match="deviation is 0"):
        place(tree, candidates, deviation=0)
