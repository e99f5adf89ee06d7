"""What `print` says of sensors that were chosen."""

from __future__ import annotations

import numpy as np

from nori_dyn.placement.design import Design
from nori_dyn.placement.selection import Placement
from tests.systems import ACCELERATIONS, sensor_set

SENSORS = sensor_set(ACCELERATIONS)


def plain(thing) -> str:
    return " ".join(str(thing).split())


def test_the_cheapest_as_text():
    costs = {"acc:a": 40.0, "ft:b": 3000.0}
    found = Placement(tuple(costs), 3040.0, 3040.0, "all tried", ("tau",), SENSORS, costs)
    assert plain(found).startswith(
        "2 sensors for 3,040: the cheapest there is. They determine tau at almost every pose."
    )
    assert "acc:a 40 ft:b 3,000 Found by: all tried." in plain(found)
    open_ = Placement(tuple(costs), 3040.0, 2000.5, "a search", ("all",), SENSORS, costs)
    assert "the cheapest costs at least 2,000" in plain(open_)
    assert "They determine everything" in plain(open_)
    assert repr(found) == "Placement(2 sensors, cost 3040, bound 3040)"


def test_the_best_as_text():
    outputs = tuple(f"tau:joint{k}" for k in range(12))
    sigma = np.array([*np.linspace(0.1, 1, 11), 342.2])
    found = Design(("s",), 1.0, "A", 2.0, 2.0, "all tried", outputs, ("N m",) * 12, 12, sigma, SENSORS, {"s": 1.0})
    lines = [" ".join(line.split()) for line in str(found).splitlines()]
    assert lines[0] == "1 sensor of the least sum of variances: no choice is better."
    assert "tau:joint11 342 N m" in lines
    assert "... 4 more" in lines
    assert "\n" not in repr(found)
