"""Filter and smoother over recorded ticks, against one least-squares problem over all of them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError, SingularSystemError
from nori_dyn.filtering.instants import Ticks
from nori_dyn.filtering.smoother import Cut, Recorded, Stretch
from tests.unit.filtering.recorded import DT, by_least_squares, by_least_squares_of, columns, planned, recorded, sensors

N = 12


def check(found, system, mean, covariance):
    """Compare outputs and memory with what least squares say of all d."""
    for name in ("qdd", "tau"):
        own = columns(system, name)
        np.testing.assert_allclose(found[name], mean[:, own], rtol=1e-9, atol=1e-9)
        spread = np.sqrt(covariance[:, own, own])
        np.testing.assert_allclose(found.deviations[name], spread, rtol=1e-8, atol=1e-12)
    for k, name in enumerate(found.memory.names):
        place = system.variable_names.index(name)
        np.testing.assert_allclose(found.memory.mean[:, k], mean[:, place], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.memory.deviations[:, k], np.sqrt(covariance[:, place, place]), rtol=1e-8)


def test_smoother_is_least_squares_over_all_ticks():
    plan = planned()
    ticks = recorded(plan.system, N, seed=1)
    found = nd.Filter(plan, DT).over(*ticks.all, causal=False)
    check(found, plan.system, *by_least_squares(plan.system, *ticks.all))
    assert len(found) == N
    assert not found.is_causal


def test_what_decays_and_what_has_no_prior():
    speed = {"of": "qd", "rate": "qdd", "noise": 0.02, "walk": 0.3, "time_constant": 0.2}
    plan = planned(sensors(speed=speed, offsets={"of": "offset", "walk": 0.5, "time_constant": 0.1}))
    ticks = recorded(plan.system, N, seed=2)
    found = nd.Filter(plan, DT).over(*ticks.all, causal=False)
    check(found, plan.system, *by_least_squares(plan.system, *ticks.all))


def test_filter_is_least_squares_over_the_ticks_before():
    plan = planned()
    ticks = recorded(plan.system, N, seed=3)
    found = nd.Filter(plan, DT).over(*ticks.all)
    for k in range(N):
        mean, covariance = by_least_squares(plan.system, *(each[: k + 1] for each in ticks.all))
        np.testing.assert_allclose(found["qdd"][k], mean[k, columns(plan.system, "qdd")], rtol=1e-9, atol=1e-9)
        own = columns(plan.system, "tau")
        np.testing.assert_allclose(found.deviations["tau"][k], np.sqrt(covariance[k, own, own]), rtol=1e-8)


def test_over_says_what_steps_say():
    plan = planned()
    ticks = recorded(plan.system, N, seed=4)
    one = nd.Filter(plan, DT)
    found = one.over(*ticks.all)
    for k, dt in enumerate(np.diff(ticks.T, prepend=0)):
        step = one.step(ticks.Q[k], ticks.Qd[k], ticks.Y[k], dt)
        np.testing.assert_allclose(found["tau"][k], step["tau"], rtol=1e-11)
        np.testing.assert_allclose(found.deviations["tau"][k], step.deviations["tau"], rtol=1e-9)
        np.testing.assert_allclose([found.nis[k], found.degrees[k]], [step.nis, step.degrees], rtol=1e-9, atol=1e-20)
        np.testing.assert_allclose(found.p_value[k], step.p_value, rtol=1e-9)
        np.testing.assert_allclose(found.log_likelihood[k], step.log_likelihood, rtol=1e-9)
    assert found.consistency.nis == pytest.approx(one.consistency.nis)


def test_what_has_a_rate_does_not_go_on_through_a_gap():
    plan = planned()
    steps = np.full(N, DT)
    steps[5] = 20 * DT
    ticks = recorded(plan.system, N, seed=5, steps=steps)
    found = nd.Filter(plan, DT).over(*ticks.all, causal=False)
    check(found, plan.system, *by_least_squares(plan.system, *ticks.all, gap=5 * DT))
    assert found.gaps.tolist() == [5]
    assert "gaps" in str(found)


def test_readings_that_are_missing_are_dropped():
    plan = planned()
    ticks = recorded(plan.system, N, seed=6)
    weights = np.tile(plan.system.weights, (N, 1))
    told = ticks.Y.copy()
    told[3:6, 1] = np.nan
    weights[3:6, plan.system.weight_names.index(plan.system.measurement_names[1])] = 0.0
    found = nd.Filter(plan, DT).over(ticks.T, ticks.Q, ticks.Qd, told, missing="drop", causal=False)
    check(found, plan.system, *by_least_squares(plan.system, *ticks.all, weights=weights))


@pytest.mark.parametrize("causal", [True, False])
def test_stretches_do_not_matter(causal):
    plan = planned()
    ticks = recorded(plan.system, N, seed=7)
    one = Ticks({(): plan}, ())
    steps = np.diff(ticks.T, prepend=ticks.T[0])
    whole = Stretch(0, ticks.T, steps, np.zeros(N, dtype=int), ticks.Q, ticks.Qd, ticks.Y)

    def run(size):
        runs = Recorded(one, DT, one.first.beginning())
        parts = list(runs.filtered(Cut(whole, size)) if causal else runs.smoothed(Cut(whole, size)))
        return type(parts[0]).joined(parts if causal else parts[::-1])

    in_one, in_parts = run(N), run(5)
    for a, b in ((in_one["tau"], in_parts["tau"]), (in_one.memory.mean, in_parts.memory.mean)):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(in_one.memory.deviations, in_parts.memory.deviations, rtol=1e-12)
    np.testing.assert_allclose(in_one.deviations["qdd"], in_parts.deviations["qdd"], rtol=1e-12)
    np.testing.assert_allclose(in_one.nis, in_parts.nis, rtol=1e-9)
    np.testing.assert_allclose(in_one.memory.shares, in_parts.memory.shares, rtol=1e-12)
    np.testing.assert_array_equal(in_one.t, in_parts.t)


def test_what_no_reading_tells_is_named():
    push = {"of": "fx:link1", "walk": 0.1, "sigma": 3}
    unloaded = {"type": "external_wrench", "links": ["link2"], "value": 0}
    torque = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
    acceleration = {"type": "joint_acceleration", "joints": "all"}
    content = {"name": "pushed", "measurements": [torque, unloaded, acceleration], "memory": {"push": push}}
    plan = planned(nd.SensorSet.from_dict(content))
    ticks = recorded(plan.system, N, seed=8)
    found = nd.Filter(plan, DT).over(*ticks.all, causal=False)
    seen = {name for name in found.memory.names if name not in found.unseen}
    assert len(seen) >= 1
    assert len(found.unseen) >= 1  # one torque of the first joint against six numbers


def test_what_is_not_determined_is_refused():
    force = {"type": "external_wrench", "links": ["link1"], "sigma": 1.0}
    unloaded = {"type": "external_wrench", "links": ["link2"], "value": 0}
    torque = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
    acceleration = {"type": "joint_acceleration", "joints": "all"}
    memory = {"push": {"of": "fx:link1", "walk": 0.1}}
    content = {"name": "felt", "measurements": [force, torque, unloaded, acceleration], "memory": memory}
    plan = planned(nd.SensorSet.from_dict(content), outputs=("qdd", "tau", "fx:link1"))
    ticks = recorded(plan.system, N, seed=8)
    places = [k for k, name in enumerate(plan.system.measurement_names) if name.startswith("fx:link1")]
    one, told = nd.Filter(plan, DT), ticks.Y.copy()
    told[:, places] = np.nan
    run = ticks.T, ticks.Q, ticks.Qd, told
    with pytest.raises(SingularSystemError, match=r"tick 0, at .* s: fx:link1.mx"):
        one.over(*run, missing="drop", causal=False)
    lost = one.over(*run, missing="drop", causal=False, singular="nan")
    assert np.isnan(lost["qdd"]).all()
    assert np.isinf(lost.memory.deviations).any()
    assert lost.estimate.singular.all()
    told[7] = ticks.Y[7]
    later = one.over(*run, missing="drop", singular="nan")
    np.testing.assert_array_equal(later.estimate.singular, np.arange(N) < 7)
    assert not one.over(*run, missing="drop", causal=False).estimate.singular.any()


@pytest.mark.parametrize(("step", "words"), [(0.0, "T\\[4\\] is"), (-0.1, "after the one before")])
def test_time_goes_on(step, words):
    plan = planned()
    steps = np.full(N, DT)
    steps[4] = step
    ticks = recorded(plan.system, N, seed=9, steps=steps)
    with pytest.raises(InputError, match=words):
        nd.Filter(plan, DT).over(*ticks.all)


def test_memory_does_not_grow_with_the_log():
    plan = planned()
    one, few, many = Ticks({(): plan}, ()), 4, 16
    size = 32

    class Endless:
        """Stretches that are made when they are wanted."""

        def __init__(self, n):
            self.n = n

        def __len__(self):
            return self.n

        def __getitem__(self, number):
            ticks = recorded(plan.system, size, number)
            t = (number * size + np.arange(size)) * DT
            return Stretch(number * size, t, np.full(size, DT), np.zeros(size, dtype=int), ticks.Q, ticks.Qd, ticks.Y)

    def peak(n):
        tracemalloc.start()
        run = Recorded(one, DT, one.first.beginning())
        for history in run.smoothed(Endless(n)):
            assert len(history) == size
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(few)  # compiles
    assert peak(many) < 1.2 * peak(few)


@pytest.mark.parametrize("causal", [True, False])
def test_contacts_that_come_and_go(causal):
    wrench = {"type": "external_wrench", "links": ["link2"]}
    contacts = {"tip": {"closed": [wrench | {"sigma": 0.3}], "open": [wrench | {"value": 0}]}}
    torque = {"type": "joint_torque", "joints": "all", "sigma": 0.1, "offset": {"sigma": 2}}
    rest = {"type": "external_wrench", "links": ["link1"], "value": 0}
    memory = {"speed": {"of": "qd", "rate": "qdd", "noise": 0.02, "walk": 0.01}, "off": {"of": "offset", "walk": 0.5}}
    content = {"name": "touch", "measurements": [torque, rest], "contacts": contacts, "memory": memory}
    plans = nd.plan_set(nd.autotree(2, skew=0.3), nd.SensorSet.from_dict(content), outputs=["qdd", "tau"])
    one = nd.Filter(plans, DT)
    closed = np.zeros((N, 1), dtype=bool)
    closed[4:8] = True
    ticks = recorded(plans.plans[()].system, N, seed=10)
    Y = np.random.default_rng(1).normal(size=(N, len(one.inputs.y)))
    run = ticks.T, ticks.Q, ticks.Qd, Y
    found = one.over(*run, contacts=closed, causal=causal)
    if causal:
        for k, dt in enumerate(np.diff(ticks.T, prepend=0)):
            one.switch(closed[k])
            step = one.step(ticks.Q[k], ticks.Qd[k], Y[k], dt)
            np.testing.assert_allclose(found["tau"][k], step["tau"], rtol=1e-8, atol=1e-12)
            np.testing.assert_allclose(found.deviations["tau"][k], step.deviations["tau"], rtol=1e-8)
        return
    systems = [plans.plans[()].system, plans.plans[("tip",)].system]
    every = plans.solver().measurement_names
    own = [Y[k, [every.index(name) for name in systems[int(closed[k, 0])].measurement_names]] for k in range(N)]
    mean, covariance = by_least_squares_of([systems[int(c)] for c in closed[:, 0]], ticks.T, ticks.Q, ticks.Qd, own)
    for k in range(N):
        system = systems[int(closed[k, 0])]
        place = columns(system, "tau")
        np.testing.assert_allclose(found["tau"][k], mean[k][place], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.deviations["tau"][k], np.sqrt(covariance[k][place, place]), rtol=1e-8)
