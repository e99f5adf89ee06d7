"""What is zero but for rounding counted as off by all of itself: states solved afresh had a residual of 1."""

from __future__ import annotations

import numpy as np
import pytest

import nori_dyn as nd


@pytest.mark.parametrize("seed", range(3))
def test_a_state_with_a_dropped_sensor_has_the_residual_of_rounding(seed):
    arm = nd.autotree(4)
    sensors = nd.SensorSet.from_dict(
        {
            "name": "soft",
            "measurements": [
                {"type": "joint_acceleration", "joints": "all", "sigma": 0.5},
                {"type": "joint_torque", "joints": "all", "sigma": 0.5},
                {"type": "external_wrench", "links": "all", "value": 0},
            ],
        }
    )
    solver = nd.plan(nd.System(arm, sensors), cache=False).solver("numpy")
    rng = np.random.default_rng(seed)
    y = rng.normal(size=8)
    y[5] = np.nan
    estimate = solver.solve_batch(rng.normal(size=(1, 4)), rng.normal(size=(1, 4)), y[None], missing="drop")
    assert estimate.fell_back.all()
    assert estimate.residual[0] < 1e-12
