"""Ticks that run natively and through NumPy know the same: two programs and two algorithms."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError
from nori_dyn.estimation.tracker import Filter
from tests.compilers import needs_compiler
from tests.mechanisms import closed_state, four_bar
from tests.systems import SPEED, TORQUES, UNLOADED, braked
from tests.trees import TREES
from tests.unit.filtering.recorded import remembering
from tests.unit.filtering.test_free_coordinates import four_bars

pytestmark = needs_compiler

DT = 0.001


def backends(plan: nd.Plan) -> list[Filter]:
    return [Filter(plan, DT, backend=name) for name in ("native", "numpy")]


def test_outputs_are_in_the_coordinates_of_their_frame():
    torques = TORQUES | {"sigma": 0.1, "offset": {"sigma": 10}}
    memory = {"speed": SPEED, "push": {"of": "offset", "walk": 1.0}}
    system = nd.System(TREES["two_roots"], remembering(torques, UNLOADED, memory=memory))
    plan = nd.plan(system, outputs=["f:palm", "a:tool"])
    for one in backends(plan):
        one.inputs.qd[:] = 0.1
        assert one.tick().ok
        state = (getattr(one.inputs, name).copy() for name in ("q", "qd", "y"))
        expected = Filter(plan, DT, backend="numpy").step(*state)
        for name, values in vars(one.outputs).items():
            assert values == pytest.approx(expected[name], rel=1e-9, abs=1e-9)


def test_outputs_that_the_planned_order_does_not_give_are_solved_afresh():
    plan = nd.plan(nd.System(four_bar(), four_bars()), outputs=["qdd", "tau", "a:coupler_end"])
    native, other = backends(plan)
    kernel = native.steps.tick.solver.native
    assert len(kernel.limits)
    kernel.limits[:] = np.inf  # no pivot is as large
    q = closed_state(four_bar(), 2)[0]
    rng = np.random.default_rng(2)
    for one in (native, other):
        one.inputs.q[:], one.inputs.qd[:] = q, 0.0
    for _ in range(3):
        native.inputs.y[:] = other.inputs.y[:] = rng.normal(size=len(native.inputs.y))
        status = native.tick()
        assert (status.ok, status.fell_back) == (True, True)
        assert not other.tick().fell_back
        for name, values in vars(other.outputs).items():
            assert getattr(native.outputs, name) == pytest.approx(values, rel=1e-8, abs=1e-8)
        assert native.state.mean == pytest.approx(other.state.mean, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "options", [{}, {"lag": 2}, {"hypotheses": nd.Hypotheses(lag=3)}], ids=["filter", "window", "contacts recognised"]
)
def test_no_tick_waits_for_the_compiler(options):
    """From the tick on before which it is there, native code goes on from what NumPy knew."""
    plan = nd.plan(nd.autotree(1), braked(0.1, 0.1, 0.01), outputs=["fx", "qdd"])
    rng = np.random.default_rng(0)
    one, waited = (nd.Tracker(plan, DT, **options, wait=wait) for wait in (False, True))
    behind, inputs, outputs = one._behind, one.inputs.y, one.outputs.qdd
    assert behind is not None
    for k in range(12):
        if k == 0:
            one._behind = None  # until it is looked for, it is not there
        if k == 6:
            behind.join()
            one._behind = behind
        y = rng.normal(size=2) + 3.0 * (k % 8 > 4)
        for tracker in (one, waited):
            tracker.inputs.y[:] = y
            tracker.inputs.y[0] = np.nan if k == 5 else y[0]
        assert one.tick().ok == waited.tick().ok
        assert one.backend == ("numpy" if k < 6 else "native")
        np.testing.assert_allclose(one.outputs.qdd, waited.outputs.qdd, rtol=1e-9)
        np.testing.assert_allclose(one.state.mean, waited.state.mean, rtol=1e-9, atol=1e-12)
        assert one.state.time == pytest.approx(waited.state.time)
        if "hypotheses" in options:
            np.testing.assert_allclose(one.probabilities, waited.probabilities, atol=1e-9)
    assert one.consistency.nis == pytest.approx(waited.consistency.nis)
    assert (one.inputs.y is inputs, one.outputs.qdd is outputs) == (True, True)
    if "hypotheses" in options:
        assert [switch.time for switch in one.switches] == pytest.approx([switch.time for switch in waited.switches])
        assert list(one.smoothed(3).values()) == pytest.approx(list(waited.smoothed(3).values()))
    with pytest.raises(InputError, match="wait=False"):
        nd.Tracker(plan, DT, backend="numpy", wait=False)
