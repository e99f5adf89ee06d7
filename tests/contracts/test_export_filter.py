"""Exported filters are what the filter estimates, over many ticks, stand alone, and keep what they know."""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import nori_dyn as nd
from tests.compilers import needs_compiler
from tests.contracts.test_export import (
    INPUT_NOT_FINITE,
    NEGATIVE_WEIGHT,
    OF_THE_COMPILER,
    OK,
    OUTPUT_NOT_FINITE,
    QUATERNION_NOT_UNIT,
    UNPLANNED_CONTACTS,
)
from tests.exported import Exported, checked, needs_cmake, needs_cpp, needs_nm, read, written
from tests.robots import load
from tests.tolerances import SOLVED, assert_close
from tests.trees import on_a_free_base

pytestmark = needs_compiler

UNDETERMINED, TIME_NOT_POSITIVE, NOT_YET = 10, 11, 12
DT = 0.002
SPEED = {"of": "qd", "rate": "qdd", "noise": 1e-3}
TORQUE = {"type": "joint_torque", "joints": "all", "sigma": 0.1, "offset": {"sigma": 10}}
UNLOADED = {"type": "external_wrench", "links": "all", "value": 0}


def standing(foot: str) -> nd.SensorSet:
    rows = [
        {"type": "joint_acceleration", "joints": "actuated", "sigma": 0.5},
        {**TORQUE, "joints": "actuated"},
        {"type": "joint_torque", "joints": {"except": "actuated"}, "value": 0},
        {"type": "rigid_contact", "links": [foot]},
        {"type": "external_wrench", "links": {"except": [foot]}, "value": 0},
    ]
    memory = {"speed": SPEED, "offsets": {"of": "offset", "walk": 0.01, "time_constant": 30}}
    return nd.SensorSet.from_dict({"name": "standing", "measurements": rows, "memory": memory})


def touching() -> nd.SensorSet:
    tip = {"type": "external_wrench", "links": "link2"}
    others = {**tip, "components": ["mx", "my", "mz", "fx", "fy"], "value": 0}
    closed = [others, {**tip, "components": ["fz"], "sigma": 3.0}]
    contact = {"closed": closed, "open": [{**tip, "value": 0}]}
    rows = [TORQUE, {"type": "external_wrench", "links": "link1", "value": 0}]
    rows += [{"type": "joint_acceleration", "joints": "all", "sigma": 2.0}]
    memory = {"speed": SPEED, "push": {"of": "offset", "walk": 1.0, "jump": 2.0}}
    content = {"name": "touching", "measurements": rows, "contacts": {"tip": contact}, "memory": memory}
    return nd.SensorSet.from_dict(content)


def sticky() -> nd.KinematicTree:
    law = {
        "viscous": 0.5,
        "coulomb": 1.0,
        "mu": 0.1,
        "width": 0.05,
        "stiction": {"scatter": 0.3, "ripple": 0.2, "drift": 0.1},
    }
    waves = nd.components.Harmonics(joints="joint2", sin3=0.2, covariance=np.diag([0.1, 0.2] * 3).tolist())
    return ARM.replace(components=[nd.components.Friction(joints="all", **law), waves])


def carrying() -> nd.KinematicTree:
    rubbing = nd.components.Friction(joints="all", coulomb=0.5, mu=0.1, width=0.05)
    return ARM.replace(components=[rubbing, nd.components.UnknownPayload(link="link3", change=1.0)])


def lifting() -> nd.SensorSet:
    rows = [{"type": "joint_acceleration", "joints": "all"}, TORQUE, {**UNLOADED}]
    content = {"name": "lifting", "measurements": rows, "memory": {"push": {"of": "offset", "walk": 1.0}}}
    return nd.SensorSet.from_dict(content)


ARM, WALKER = nd.autotree(3, skew=0.5), on_a_free_base(nd.autotree(3, branching=2, skew=0.3))
CASES = {
    "arm": lambda: nd.plan(nd.System(ARM, nd.sensors("momentum_observer")), outputs=("qdd", "f:link3")),
    "walker": lambda: nd.plan(nd.System(WALKER, standing("link3")), outputs=("tau", "fx:link3")),
    "sticky arm": lambda: nd.plan(nd.System(sticky(), nd.sensors("momentum_observer")), outputs=("qdd", "stiction")),
    "loaded arm": lambda: nd.plan(nd.System(carrying(), lifting()), outputs=("tau", "payload:link3")),
    "contacts": lambda: nd.plan(nd.autotree(2, skew=0.3), touching(), outputs=("qdd", "fx:link2")),
}
RECOGNISED, LATE = "contacts recognised", "three ticks late"
ROBOTS = {
    "panda": lambda: nd.plan(nd.System(load("panda"), nd.sensors("momentum_observer")), outputs=("qdd",)),
    "anymal": lambda: nd.plan(nd.System(load("anymal", "floating"), standing("LF_FOOT")), outputs=("tau",)),
}
every_case = pytest.mark.parametrize("name", [*CASES, RECOGNISED])


@lru_cache(maxsize=8)
def planned(name: str) -> Any:
    return (CASES | ROBOTS)["contacts" if name == RECOGNISED else name]()


@lru_cache(maxsize=8)
def compiled_filter(name: str) -> nd.Tracker[Any]:
    if name.startswith(LATE):
        return nd.Tracker(planned(name.removeprefix(f"{LATE}: ")), DT, 3, backend="numpy")
    hypotheses = nd.Hypotheses(rate=20.0, acceleration=0.5) if name == RECOGNISED else None
    return nd.Tracker(planned(name), DT, hypotheses=hypotheses, backend="numpy")


def new_filter(name: str) -> nd.Tracker[Any]:
    """The filter, begun anew."""
    of = compiled_filter(name)
    of.reset()
    if is_told(of):
        of.switch(())
    return of


def is_told(of: nd.Tracker[Any]) -> bool:
    """Whether it is told the contacts."""
    return bool(of.contact_names) and not of.recognises


class Running(NamedTuple):
    """An exported filter that runs."""

    made: Exported
    filter: Any
    given: Any
    out: Any

    def step(self, dt: float, contacts: int | None, **inputs: Any) -> int:
        """The status of a tick."""
        for field, values in inputs.items():
            setattr(self.given, field, np.asarray(values, dtype=float).tolist())
        first = () if contacts is None else (contacts,)
        status: int = self.made.call("step", self.filter, *first, self.given, dt, self.out)
        return status

    def found(self) -> dict[str, Any]:
        """What the last tick wrote, by field."""
        return read(self.out, self.made.export.outputs)

    def memory(self) -> tuple[Any, Any]:
        """What is known of what persists, and its deviations."""
        k = self.made.export.outputs["memory"][0]
        mean, deviations = self.made.ffi.new("double[]", k), self.made.ffi.new("double[]", k)
        self.made.call("memory", self.filter, mean, deviations)
        return np.array(list(mean)), np.array(list(deviations))


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Exports by name, compiled once, begun anew, on structs that hold rubbish beforehand."""

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


@lru_cache(maxsize=8)
def ticks(name: str) -> list[tuple[float, dict[str, Any], tuple[str, ...]]]:
    """160 ticks, each a time, inputs, and the contacts that are closed.

    A motion with noise: the time varies, readings are missing, some are no numbers, and there is a gap.
    """
    rng, of, found = np.random.default_rng(4), compiled_filter(name), []
    tree, weights = of.steps.tick.system.tree, of.inputs.weights.copy()
    q, qd, y = tree.random_configuration(1), 0.1 * rng.normal(size=tree.nv), rng.normal(size=len(of.inputs.y))
    closed: tuple[str, ...] = ()
    for k in range(160):
        dt = 0.3 if k == 80 else DT * rng.choice([0.5, 1.0, 1.0, 2.0])
        qd = qd + 0.02 * rng.normal(size=tree.nv)
        q, y = tree.integrate(q, qd, dt), y + 0.05 * rng.normal(size=len(y))
        given = {"q": q.copy(), "qd": qd, "y": y.copy(), "weights": weights.copy()}
        if k == 40:
            given["y"][0] = np.nan
        if k == 120:
            given["q"][:] = np.nan
        if of.contact_names and k % 40 == 20:
            closed = () if closed else of.contact_names
        given["y"][:2] += 5.0 * bool(closed and name == RECOGNISED)
        if k % 10 == 5:
            given["weights"][rng.integers(len(weights))] = 0.0
        found.append((dt, given, closed))
    return found


def both(of: nd.Tracker[Any], run: Running, name: str) -> Iterator[tuple[Any, int, dict[str, Any]]]:
    """Each tick here and as exported: its status, that in C, and what C wrote; outputs are the same, or no numbers."""
    for dt, given, closed in ticks(name):
        if is_told(of):
            of.switch(closed)
        for field, values in given.items():
            getattr(of.inputs, field)[:] = values
        expected = of.tick(dt)
        contacts = run.made.export.indices["IT_CONTACT_tip"] * bool(closed) if is_told(of) else None
        status, found = run.step(dt, contacts, **given), run.found()
        assert (status == OK) == expected.ok
        for output, values in vars(of.outputs).items() if expected.ok else ():
            assert_close(found[output.replace(":", "_")], values, SOLVED)
        assert expected.ok or all(np.isnan(values).all() for values in found.values())
        yield expected, status, found


@pytest.mark.parametrize("name", [*CASES, RECOGNISED, *(pytest.param(name, marks=pytest.mark.long) for name in ROBOTS)])
def test_it_is_what_the_filter_estimates(name, running):
    of, run = new_filter(name), running(name)
    good, recognised = 0, Counter[tuple[str, ...]]()
    for k, (expected, status, found) in enumerate(both(of, run, name)):
        if k % 20 == 0:
            mean, deviations, state = *run.memory(), of.state
            known = np.isfinite(state.deviations)
            assert_close(mean, state.mean, SOLVED)
            assert np.array_equal(np.isfinite(deviations), known)
            assert_close(deviations[known], state.deviations[known], SOLVED)
        if not expected.ok:
            assert status in (INPUT_NOT_FINITE, UNDETERMINED)
            continue
        good += 1
        after = of.steps.posterior()
        assert_close(found["memory"], after.u[-len(of.memory_names) :], SOLVED)
        assert_close(found["nis"], after.nis, SOLVED)
        assert_close(found["log_likelihood"], after.log_likelihood, SOLVED)
        assert found["degrees"] == after.degrees
        if of.recognises:
            np.testing.assert_allclose(found["probabilities"], of.probabilities, atol=1e-9)
            assert found["closed"] == bool(of.contacts)
            recognised[of.contacts] += 1
    assert good > 135
    assert not of.recognises or min(recognised[state] for state in of.states) > 5
    of_all = of.consistency
    assert_close(list(run.filter.totals), [of_all.nis, of_all.degrees, of_all.ticks], SOLVED)


@pytest.mark.parametrize("of", ["walker", "contacts"])
def test_it_is_what_a_window_estimates(of, running):
    name = f"{LATE}: {of}"
    window, run, good = new_filter(name), running(name), 0
    assert window._window is not None
    for expected, status, found in both(window, run, of):
        if not expected.ok:
            assert status in (INPUT_NOT_FINITE, UNDETERMINED, NOT_YET)
            continue
        good += 1
        slot, k = window._window.slots[0], len(window.memory_names)
        assert_close(found["memory"], window._window.late()[-k:], SOLVED)
        assert_close(found["nis"], slot.nis, SOLVED)
        assert found["degrees"] == slot.degrees
    assert good > 135
    mean, _ = run.memory()
    assert_close(mean, window.state.mean, SOLVED)


# ------------------------------------------------------------------------------------ what is refused


def first_tick(name: str) -> dict[str, Any]:
    return {field: values.copy() for field, values in ticks(name)[0][1].items()}


def assert_refused(run: Running, status: int, expected: int) -> None:
    assert status == expected
    assert all(np.isnan(values).all() for values in run.found().values())


def test_a_time_that_is_not_positive_changes_nothing(running):
    run = running("arm")
    assert run.step(DT, None, **first_tick("arm")) == OK
    before = bytes(run.made.ffi.buffer(run.filter))
    for dt in (0.0, -DT, np.nan, np.inf):
        assert_refused(run, run.step(dt, None), TIME_NOT_POSITIVE)
        assert bytes(run.made.ffi.buffer(run.filter)) == before, dt
    assert run.step(DT, None) == OK


def test_a_contact_state_without_a_plan_changes_nothing(running):
    run = running("contacts")
    assert run.step(DT, 0, **first_tick("contacts")) == OK
    before = bytes(run.made.ffi.buffer(run.filter))
    assert_refused(run, run.step(DT, 2), UNPLANNED_CONTACTS)
    assert bytes(run.made.ffi.buffer(run.filter)) == before


NO_STATES = (
    ("q", np.nan, INPUT_NOT_FINITE),
    ("qd", np.inf, INPUT_NOT_FINITE),
    ("y", -np.inf, INPUT_NOT_FINITE),
    ("weights", np.nan, INPUT_NOT_FINITE),
    ("weights", -1.0, NEGATIVE_WEIGHT),
    ("q", 2.0, QUATERNION_NOT_UNIT),
    ("qd", 1e200, OUTPUT_NOT_FINITE),
)


def test_what_is_no_state_is_refused_and_what_is_known_goes_on(running):
    state, n_v = first_tick("walker"), WALKER.nv
    a, gained = np.exp(-DT / 30), 0.01**2 * 30 / 2 * (1 - np.exp(-2 * DT / 30))
    for field, value, expected in NO_STATES:
        run = running("walker")
        assert run.step(DT, None, **state) == OK
        before, spread = run.memory()
        assert_refused(run, run.step(DT, None, **state | {field: np.full(len(state[field]), value)}), expected)
        mean, deviations = run.memory()
        assert np.isinf(deviations[:n_v]).all(), (field, value)
        assert_close(mean[n_v:], a * before[n_v:], SOLVED)
        assert_close(deviations[n_v:] ** 2, a**2 * spread[n_v:] ** 2 + gained, SOLVED)
        assert run.step(DT, None, **state) == OK, (field, value)


def test_what_is_not_determined_is_named(running):
    run = running("arm")
    state, indices = first_tick("arm"), run.made.export.indices
    state["weights"][indices["IT_WEIGHT_tau_joint1"]] = 0.0
    assert_refused(run, run.step(DT, None, **state), UNDETERMINED)
    of = new_filter("arm")
    with pytest.raises(nd.errors.SingularSystemError, match="qdd:joint3 not determined"):
        of.step(**state)
    assert run.filter.lost == indices["IT_FREE_qdd_joint3"]
    assert run.step(DT, None, **first_tick("arm")) == OK
    assert run.filter.lost == -1


def test_what_is_known_at_first_is_there_before_the_first_tick(running):
    run, state = running("walker"), new_filter("walker").state
    mean, deviations = run.memory()
    assert_close(mean, state.mean, SOLVED)
    assert np.array_equal(deviations, state.deviations)


# ------------------------------------------------------------------------------------ what it is


def test_a_copy_goes_on_alone(running):
    run = running("arm")
    assert run.step(DT, None, **first_tick("arm")) == OK
    other = run._replace(filter=run.made.new("filter"), out=run.made.new("outputs"))
    run.made.ffi.memmove(other.filter, run.filter, run.made.ffi.sizeof(run.filter[0]))
    assert run.step(DT, None) == other.step(DT, None) == OK
    assert all(np.array_equal(values, other.found()[field]) for field, values in run.found().items())


@needs_nm
@every_case
def test_it_stands_alone(name, running, tmp_path):
    """It has no data that is written, and calls a few functions; the example runs."""
    made = running(name).made
    defined, needed = made.symbols()
    assert (
        needed
        <= {"sin", "cos", "sincos", "sqrt", "exp", "expm1", "log", "pow", "fmax", "fmin", *OF_THE_COMPILER} | MEMORY
    )
    assert all(symbol.startswith("it_") for symbol in defined)
    lines = made.run_example(tmp_path)
    unprinted = {"nis", "degrees", "log_likelihood", "closed"}
    outputs = sum(int(np.prod(shape)) for field, shape in made.export.outputs.items() if field not in unprinted)
    assert len(lines) == outputs + 2
    assert lines[-1].endswith("us a call")
    assert lines[-2].endswith("in 1000 ticks")
    assert not any("nan" in line or "inf" in line for line in lines)


MEMORY = {"memset", "memcpy", "memmove"}


@every_case
def test_every_place_has_a_name(name, running):
    made, of = running(name).made, new_filter(name)
    for group, n in (("MEMORY", len(of.memory_names)), ("Y", len(of.inputs.y)), ("WEIGHT", len(of.inputs.weights))):
        own = [value for place, value in made.export.indices.items() if place.startswith(f"IT_{group}_")]
        assert own == list(range(n))


PROGRAM = r"""
#include <it.hpp>

#include <cmath>
#include <cstdio>

int main() {
    static nori_dyn::it::Filter filter;
    static_assert(noexcept(filter.step(CONTACTS 0.002)), "a tick does not throw");
    if (!std::isnan(filter.qdd()[0])) return 1;
    for (int k = 0; k < 10; ++k) filter.step_or_throw(CONTACTS 0.002);
    std::printf("%.17g %.17g\n", filter.qdd()[1], filter.memory()[1][0]);
    try {
        filter.step_or_throw(CONTACTS -1.0);
        return 2;
    } catch (const nori_dyn::it::Refused &refused) {
        std::printf("%d %s\n", refused.status(), refused.what());
    }
    filter.reset();
    return filter.filter.last == -1 ? 0 : 3;
}
"""


@needs_cpp
@pytest.mark.parametrize(("name", "contacts"), [("arm", ""), ("contacts", "IT_CONTACT_tip,")])
def test_the_class_for_cpp(name, contacts, running, tmp_path):
    run = running(name)
    numbers, refusal = run.made.run_cpp(PROGRAM.replace("CONTACTS", contacts), tmp_path).splitlines()
    for _ in range(10):
        assert run.step(DT, run.made.export.indices["IT_CONTACT_tip"] if contacts else None) == OK
    expected = run.found()["qdd"][1], run.memory()[1][0]
    assert_close([float(x) for x in numbers.split()], expected, SOLVED)
    assert refusal == "11 the time since the last tick is not a positive number"


def test_an_export_of_the_plan_takes_its_place_and_back(tmp_path):
    of = new_filter("contacts")
    made = of.export(tmp_path, name="it")
    planned("contacts").export(tmp_path, name="it")
    assert {path.name for path in tmp_path.iterdir()} & {"it_parts.h", "it_state_tip_tick.c"} == set()
    of.export(tmp_path, name="it")
    assert written(tmp_path) == dict(made.files)


@needs_cmake
@pytest.mark.long
def test_cmake_builds_the_library_and_the_example(running, tmp_path):
    made = running("contacts").made
    checked(["cmake", "-S", made.folder, "-B", tmp_path])
    checked(["cmake", "--build", tmp_path])
    assert "us a call" in checked([tmp_path / "it_example"])
