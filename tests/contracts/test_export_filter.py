"""Exported filters are what the filter estimates, over hundreds of ticks, stand alone, and never lose what they know."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.api.filter import Filter
from nori_dyn.program.compiler import find_compiler
from tests.exported import Exported, checked, compile_c, listed
from tests.robots import load
from tests.tolerances import SOLVED, assert_close

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_compiler() is None, reason="there is no C compiler here"),
]

OK, INPUT_NOT_FINITE, QUATERNION_NOT_UNIT, SMALL_PIVOT, OUTPUT_NOT_FINITE, INACCURATE, NEGATIVE_WEIGHT = range(7)
UNPLANNED_CONTACTS, UNDETERMINED, TIME_NOT_POSITIVE = 9, 10, 11
DT = 0.002
SPEED = {"of": "qd", "rate": "qdd", "noise": 1e-3}
TORQUE = {"type": "joint_torque", "joints": "all", "sigma": 0.1, "offset": {"sigma": 10}}
UNLOADED = {"type": "external_wrench", "links": "all", "value": 0}
FOOT = "LF_FOOT"


def standing() -> nd.SensorSet:
    rows = [
        {"type": "joint_acceleration", "joints": "actuated", "sigma": 0.5},
        {**TORQUE, "joints": "actuated"},
        {"type": "joint_torque", "joints": {"except": "actuated"}, "value": 0},
        {"type": "rigid_contact", "links": [FOOT]},
        {"type": "external_wrench", "links": {"except": [FOOT]}, "value": 0},
    ]
    memory = {"speed": SPEED, "offsets": {"of": "offset", "walk": 0.01, "time_constant": 30}}
    return nd.SensorSet.from_dict({"name": "standing", "measurements": rows, "memory": memory})


def touching() -> nd.SensorSet:
    tip = {"type": "external_wrench", "links": "link2"}
    contact = {"closed": [{**tip, "components": ["mx", "my", "mz", "fx", "fy"], "value": 0}], "open": [{**tip, "value": 0}]}
    rows = [TORQUE, {"type": "external_wrench", "links": "link1", "value": 0}]
    rows += [{"type": "joint_acceleration", "joints": "all", "sigma": 2.0}]
    memory = {"speed": SPEED, "push": {"of": "offset", "walk": 1.0}}
    content = {"name": "touching", "measurements": rows, "contacts": {"tip": contact}, "memory": memory}
    return nd.SensorSet.from_dict(content)


CASES = {
    "arm": lambda: nd.plan(nd.System(load("panda"), nd.sensors("momentum_observer")), outputs=("qdd", "f:panda_link7")),
    "walker": lambda: nd.plan(nd.System(load("anymal", "floating"), standing()), outputs=("tau", f"fx:{FOOT}")),
    "contacts": lambda: nd.plan_set(nd.autotree(2, skew=0.3), touching(), outputs=("qdd", "fx:link2")),
}
every_case = pytest.mark.parametrize("name", CASES)


@lru_cache(maxsize=8)
def planned(name: str) -> Any:
    return CASES[name]()


def new_filter(name: str) -> Filter:
    return Filter(planned(name), DT, backend="numpy")


class Running(NamedTuple):
    """An exported filter that runs."""

    made: Exported
    filter: Any
    given: Any
    out: Any

    def step(self, dt: float, contacts: int | None, **inputs: Any) -> int:
        """Return the status of a tick."""
        for field, values in inputs.items():
            setattr(self.given, field, np.asarray(values, dtype=float).tolist())
        first = () if contacts is None else (contacts,)
        status: int = self.made.call("step", self.filter, *first, self.given, dt, self.out)
        return status

    def found(self) -> dict[str, Any]:
        """Return what the last tick wrote, by field."""
        return {
            field: np.array(listed(self.out, field) if shape else getattr(self.out, field))
            for field, shape in self.made.export.outputs.items()
        }

    def memory(self) -> tuple[Any, Any]:
        """Return what is known of what persists, and its deviations."""
        k = self.made.export.outputs["memory"][0]
        mean, deviations = self.made.ffi.new("double[]", k), self.made.ffi.new("double[]", k)
        self.made.call("memory", self.filter, mean, deviations)
        return np.array(list(mean)), np.array(list(deviations))


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Return exports by name, compiled once, begun anew, on structs that hold rubbish beforehand."""

    @lru_cache(maxsize=8)
    def compiled(name: str) -> Exported:
        folder = tmp_path_factory.mktemp("export") / "it"
        return Exported.made(new_filter(name).export(folder, name="it"), folder)

    def begun(name: str) -> Running:
        made = compiled(name)
        run = Running(made, made.new("filter"), made.new("inputs"), made.new("outputs"))
        made.call("init", run.given)
        made.call("filter_init", run.filter)
        return run

    return begun


class Tick(NamedTuple):
    """What a tick is given."""

    dt: float
    q: Any
    qd: Any
    y: Any
    weights: Any
    closed: tuple[str, ...]


def ticks(name: str, n: int = 300) -> Iterator[Tick]:
    """Yield a motion with noise: dt varies, readings are missing, one is no number, and there is a gap."""
    rng, of = np.random.default_rng(4), new_filter(name)
    tree, weights = of._tick.system.tree, of.inputs.weights.copy()
    q, qd, y = tree.random_configuration(1), 0.1 * rng.normal(size=tree.nv), rng.normal(size=len(of.inputs.y))
    closed: tuple[str, ...] = ()
    for k in range(n):
        dt = 0.3 if k == 120 else DT * rng.choice([0.5, 1.0, 1.0, 2.0])
        qd = qd + 0.02 * rng.normal(size=tree.nv)
        q, y = tree.integrate(q, qd, dt), y + 0.05 * rng.normal(size=len(y))
        told = y.copy()
        if k in (60, 200):
            told[0] = np.nan
        if of.contact_names and k % 40 == 20:
            closed = () if closed else of.contact_names
        own = weights.copy()
        if k % 10 == 5:
            own[rng.integers(len(weights))] = 0.0
        yield Tick(dt, q, qd, told, own, closed)


@every_case
def test_it_is_what_the_filter_estimates(name, running):
    of, run = new_filter(name), running(name)
    good = 0
    for tick in ticks(name):
        if of.contact_names:
            of.switch(tick.closed)
        for field in ("q", "qd", "y", "weights"):
            getattr(of.inputs, field)[:] = getattr(tick, field)
        expected = of.tick(tick.dt)
        contacts = None if not of.contact_names else run.made.export.indices["IT_CONTACT_tip"] * bool(tick.closed)
        status = run.step(tick.dt, contacts, q=tick.q, qd=tick.qd, y=tick.y, weights=tick.weights)
        found = run.found()
        mean, deviations = run.memory()
        assert_close(mean, of.state.mean, SOLVED)
        known = np.isfinite(of.state.deviations)
        assert np.array_equal(np.isfinite(deviations), known)
        assert_close(deviations[known], of.state.deviations[known], SOLVED)
        if not expected.ok:
            assert status in (INPUT_NOT_FINITE, UNDETERMINED)
            assert all(np.isnan(values).all() for values in found.values())
            continue
        assert status == OK
        good += 1
        after = of._now.found()
        assert_close(found["memory"], mean, SOLVED)
        assert_close(found["nis"], after.nis, SOLVED)
        assert_close(found["log_likelihood"], after.log_likelihood, SOLVED)
        assert found["degrees"] == after.degrees
        for output, values in vars(of.outputs).items():
            assert_close(found[output.replace(":", "_")], values, SOLVED)
    assert good > 250
    of_all = of.consistency
    assert_close(list(run.filter.totals), [of_all.nis, of_all.degrees, of_all.ticks], SOLVED)
