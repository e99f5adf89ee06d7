"""What `print` says of sensors that were chosen."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.placement.candidates import Candidates
from nori_dyn.placement.design import Design, best_sensors
from nori_dyn.placement.selection import Placement, place
from nori_dyn.report.json_figures import placement_json
from tests.words import plain

TREE = nd.autotree(12)
CANDIDATES = Candidates.from_dict(
    {
        "name": "c",
        "measurements": [{"type": "external_wrench", "links": "all", "value": 0}],
        "candidates": {
            "measurements": [
                {"type": "joint_acceleration", "joints": "all", "sigma": 0.1},
                {"type": "joint_torque", "joints": "all", "sigma": 1.0},
            ]
        },
        "costs": {"joint_acceleration": 250.5},
    }
)


@cache
def cheapest() -> Placement:
    return place(TREE, CANDIDATES)


@cache
def best() -> Design:
    return best_sensors(TREE, CANDIDATES, 12)


def test_the_cheapest_as_text():
    found = cheapest()
    text = plain(found)
    assert text.startswith("12 sensors for 12: the cheapest there is. They determine tau at almost every pose.")
    assert "Found among 24 candidates by: greedy, which is exact:" in text
    assert repr(found) == "Placement(12 sensors, cost 12, bound 12)"
    assert "the cheapest costs at least 10" in plain(replace(found, bound=10.0))
    assert "They determine everything" in plain(replace(found, outputs=("all",)))


@pytest.mark.parametrize("found", [cheapest, best])
def test_precision_stands_beside_the_price(found):
    bought = found().bought
    expected = nd.conditioning(bought.system, bought.expected.configurations, ("tau",), workers=1)
    np.testing.assert_array_equal(expected.sigma, bought.expected.sigma)
    k = int(np.argmax(expected.worst_sigma))
    text = plain(found())
    assert f"Known least: {expected.outputs[k]}, " in text
    assert "Expected standard deviations" in text
    figures = placement_json(found())["expected"]["deviations"][k]
    assert (figures["output"], figures["worst"]) == (expected.outputs[k], expected.worst_sigma[k])


def test_the_best_as_text():
    lines = [" ".join(line.split()) for line in str(best()).splitlines()]
    assert lines[0].startswith("12 sensors of the least sum of variances: ")
    assert any(line.startswith("They cost ") or " They cost " in line for line in lines)
    assert "... 6 more" in lines
    assert "\n" not in repr(best())
