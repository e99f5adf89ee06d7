"""Native code against Pinocchio on every robot: single states, batches and ticks, to 1e-9 relative."""

from __future__ import annotations

import numpy as np
import pytest

from nori_dyn.api.plan import plan
from nori_dyn.system.builder import System
from tests.agreement.test_pinocchio import EVERY, ILL_CONDITIONED, MASSLESS, driven, led, robot
from tests.compilers import needs_compiler
from tests.systems import PROBLEMS, readings
from tests.tolerances import ILL_SOLVED, SOLVED, assert_close

pytestmark = needs_compiler


CASES = [(name, base) for name, base in EVERY if base == "floating" or name in ("ur5", "kinova", "baxter")]
"""Every robot on a floating base, whose equations hold all of those on a fixed one; some on that."""


@pytest.mark.parametrize(
    ("problem", "output", "name", "base"),
    [("forward", "qdd", *case) for case in CASES] + [("inverse", "tau", *case) for case in CASES],
)
def test_native_code_agrees(name, base, problem, output):
    if problem == "forward" and name in MASSLESS:
        pytest.skip(f"{name} has links without mass")
    truth = led(name, base)[0] if problem == "inverse" else driven(name, base)[0]
    tolerance = ILL_SOLVED if problem == "forward" and name in ILL_CONDITIONED else SOLVED
    made = plan(System(robot(name, base), PROBLEMS[problem]), outputs=(output,), ordering="recursive")
    solver = made.solver("native")
    y = readings(solver.system, truth)
    expected = getattr(truth, output)
    batch = solver.solve_batch(truth.q, truth.qd, y)
    assert_close(batch[output], expected, tolerance)
    ticked = np.empty_like(expected)
    for k in range(len(ticked)):
        solver.inputs.q[:] = solver.system.tree.normalised(truth.q[k])
        solver.inputs.qd[:], solver.inputs.y[:] = truth.qd[k], y[k]
        solver.tick().raise_for_status()
        ticked[k] = getattr(solver.outputs, output)
    assert_close(ticked, expected, tolerance)
    assert_close(solver.solve(truth.q[0], truth.qd[0], y[0])[output], expected[0], tolerance)
    assert batch.fell_back.mean() <= 0.05
