"""Filter and smoother over recorded ticks, against one least-squares problem over all of them."""

import tracemalloc
from functools import cache

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError, SingularSystemError
from nori_dyn.filtering.instants import ContactPrograms
from nori_dyn.filtering.smoother import ContactPasses, Cut, Stretch
from nori_dyn.solve.over_ticks import joined
from tests.systems import ACCELERATIONS, UNLOADED
from tests.unit.filtering.recorded import (
    DT,
    SPEED,
    TORQUES,
    TREE,
    WIDE,
    by_least_squares,
    by_least_squares_of,
    columns,
    felt,
    planned,
    recorded,
    remembering,
    sensors,
)

N = 8


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


DECAYING = {
    "speed": {"of": "qd", "rate": "qdd", "noise": 0.02, "walk": 0.3, "time_constant": 0.2},
    "offsets": {"of": "offset", "walk": 0.5, "time_constant": 0.1},
}


CASES = {"usual": ({}, None), "a gap": ({}, 5), "decay": (DECAYING, None)}


@cache
def wide(name):
    """The plan of a wide arm, ticks, and what least squares say of them: all, and each by those before it."""
    memory, gap = CASES[name]
    plan = planned(sensors(**memory), WIDE)
    steps = None if gap is None else np.where(np.arange(N) == gap, 20 * DT, DT)
    ticks = recorded(plan.system, N, seed=1, steps=steps)
    return plan, ticks, by_least_squares(plan.system, *ticks.all, gap=5 * DT), filtered(plan.system, ticks)


def filtered(system, ticks):
    found = [by_least_squares(system, *(each[:k] for each in ticks.all), gap=5 * DT) for k in range(1, N + 1)]
    return np.array([mean[-1] for mean, _ in found]), np.array([covariance[-1] for _, covariance in found])


@pytest.mark.parametrize(
    ("name", "every_backend"),
    [*((name, "numpy") for name in CASES), ("a gap", 4)],
    indirect=["every_backend"],
)
def test_filter_and_smoother_are_least_squares_over_ticks(name, every_backend):
    """What has a rate does not go on through a gap. More at each width: test_square_root.py."""
    plan, ticks, smoothed, known = wide(name)
    one, gap = nd.Tracker(plan, DT, backend=every_backend), CASES[name][1]
    found, later = one.over(*ticks.all), one.over(*ticks.all, causal=False)
    check(found, plan.system, *known)
    check(later, plan.system, *smoothed)
    assert (len(found), len(later)) == (N, N)
    assert found.is_causal
    assert not later.is_causal
    assert later.gaps.tolist() == ([] if gap is None else [gap])
    assert ("gaps" in str(later)) == (gap is not None)


def test_readings_that_are_missing_are_dropped():
    plan = planned()
    ticks = recorded(plan.system, N, seed=6)
    weights = np.tile(plan.system.weights, (N, 1))
    told = ticks.Y.copy()
    told[3:6, 1] = np.nan
    weights[3:6, plan.system.weight_names.index(plan.system.measurement_names[1])] = 0.0
    one = nd.Tracker(plan, DT, backend="numpy")
    found = one.over(ticks.T, ticks.Q, ticks.Qd, told, missing="drop", causal=False)
    check(found, plan.system, *by_least_squares(plan.system, *ticks.all, weights=weights))


NOISY = {"type": "joint_torque", "joints": "all", "sigma": 0.1}


@pytest.mark.parametrize("causal", [True, False])
def test_stretches_do_not_matter(causal):
    plan = planned()
    ticks = recorded(plan.system, N, seed=7)
    one = ContactPrograms({(): plan}, (), "numpy")
    steps = np.diff(ticks.T, prepend=ticks.T[0])
    whole = Stretch(0, ticks.T, steps, np.zeros(N, dtype=int), ticks.Q, ticks.Qd, ticks.Y)

    def run(size):
        runs = ContactPasses(one, DT, one.first.beginning())
        parts = list(runs.filtered(Cut(whole, size)) if causal else runs.smoothed(Cut(whole, size)))
        return joined(parts if causal else parts[::-1])

    in_one, in_parts = run(N), run(5)
    for a, b in ((in_one["tau"], in_parts["tau"]), (in_one.memory.mean, in_parts.memory.mean)):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(in_one.memory.deviations, in_parts.memory.deviations, rtol=1e-12)
    np.testing.assert_allclose(in_one.deviations["qdd"], in_parts.deviations["qdd"], rtol=1e-12)
    np.testing.assert_allclose(in_one.nis, in_parts.nis, rtol=1e-9)
    np.testing.assert_allclose(in_one.memory.shares, in_parts.memory.shares, rtol=1e-12)
    np.testing.assert_array_equal(in_one.t, in_parts.t)


def test_what_no_reading_tells_is_named():
    memory = {"push": {"of": "fx:link1", "walk": 0.1, "sigma": 3}}
    plan = planned(remembering(NOISY, UNLOADED | {"links": ["link2"]}, ACCELERATIONS, memory=memory))
    ticks = recorded(plan.system, N, seed=8)
    found = nd.Tracker(plan, DT, backend="numpy").over(*ticks.all, causal=False)
    seen = {name for name in found.memory.names if name not in found.unseen}
    assert len(seen) >= 1
    assert len(found.unseen) >= 1  # one torque of the first joint against six numbers


@pytest.mark.parametrize("every_backend", ["numpy", 8], indirect=True)
def test_what_is_not_determined_is_refused(every_backend):
    plan = planned(felt(NOISY), outputs=("qdd", "tau", "fx:link1"))
    ticks = recorded(plan.system, N, seed=8)
    places = [k for k, name in enumerate(plan.system.measurement_names) if name.startswith("fx:link1")]
    one, told = nd.Tracker(plan, DT, backend=every_backend), ticks.Y.copy()
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


def test_time_goes_on():
    plan = planned()
    for step, words in ((0.0, "T\\[4\\] is"), (-0.1, "after the one before")):
        ticks = recorded(plan.system, N, seed=9, steps=np.where(np.arange(N) == 4, step, DT))
        with pytest.raises(InputError, match=words):
            nd.Tracker(plan, DT, backend="numpy").over(*ticks.all)


def test_memory_does_not_grow_with_the_log():
    plan = planned()
    one, few, many = ContactPrograms({(): plan}, ()), 4, 16
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
        run = ContactPasses(one, DT, one.first.beginning())
        for history in run.smoothed(Endless(n)):
            assert len(history) == size
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(few)  # compiles
    assert peak(many) < 1.2 * peak(few)


@pytest.mark.parametrize("every_backend", ["numpy", 4], indirect=True)
def test_contacts_that_come_and_go(every_backend):
    wrench = {"type": "external_wrench", "links": ["link2"]}
    contacts = {"tip": {"closed": [wrench | {"sigma": 0.3}], "open": [wrench | {"value": 0}]}}
    touching = remembering(
        TORQUES,
        UNLOADED | {"links": ["link1"]},
        contacts=contacts,
        memory={"speed": SPEED, "off": {"of": "offset", "walk": 0.5}},
    )
    plans = nd.plan(TREE, touching, outputs=["qdd", "tau"])
    one = nd.Tracker(plans, DT, backend=every_backend)
    closed = np.zeros((N, 1), dtype=bool)
    closed[3:6] = True
    ticks = recorded(plans.plans[()].system, N, seed=10)
    Y = np.random.default_rng(1).normal(size=(N, len(one.inputs.y)))
    run = ticks.T, ticks.Q, ticks.Qd, Y
    found, later = (one.over(*run, contacts=closed, causal=causal) for causal in (True, False))
    for k, dt in enumerate(np.diff(ticks.T, prepend=0)):
        one.switch(closed[k])
        step = one.step(ticks.Q[k], ticks.Qd[k], Y[k], dt)
        np.testing.assert_allclose(found["tau"][k], step["tau"], rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(found.deviations["tau"][k], step.deviations["tau"], rtol=1e-8)
    systems = [plans.plans[()].system, plans.plans[("tip",)].system]
    every = plans.solver().measurement_names
    own = [Y[k, [every.index(name) for name in systems[int(closed[k, 0])].measurement_names]] for k in range(N)]
    mean, covariance = by_least_squares_of([systems[int(c)] for c in closed[:, 0]], ticks.T, ticks.Q, ticks.Qd, own)
    for k in range(N):
        system = systems[int(closed[k, 0])]
        place = columns(system, "tau")
        np.testing.assert_allclose(later["tau"][k], mean[k][place], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(later.deviations["tau"][k], np.sqrt(covariance[k][place, place]), rtol=1e-8)
