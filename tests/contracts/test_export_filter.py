"""Exported filters are what the filter estimates, over hundreds of ticks, stand alone, and keep what they know."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.api.filter import Filter
from tests.compilers import needs_compiler
from tests.exported import Exported, checked, compile_c, listed, sources
from tests.robots import load
from tests.tolerances import SOLVED, assert_close

pytestmark = needs_compiler

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
    others = {**tip, "components": ["mx", "my", "mz", "fx", "fy"], "value": 0}
    closed = [others, {**tip, "components": ["fz"], "sigma": 3.0}]
    contact = {"closed": closed, "open": [{**tip, "value": 0}]}
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


@lru_cache(maxsize=8)
def compiled_filter(name: str) -> Filter:
    return Filter(planned(name), DT, backend="numpy")


def new_filter(name: str) -> Filter:
    """Return the filter, begun anew."""
    of = compiled_filter(name)
    of.reset()
    if of.contact_names:
        of.switch(())
    return of


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


@lru_cache(maxsize=8)
def ticks(name: str) -> tuple[Tick, ...]:
    """Return hundreds of ticks."""
    return tuple(_ticks(name, 300))


def _ticks(name: str, n: int) -> Iterator[Tick]:
    """Yield a motion with noise: dt varies, readings are missing, some are no numbers, and there is a gap."""
    rng, of = np.random.default_rng(4), compiled_filter(name)
    tree, weights = of._tick.system.tree, of._all.weights
    q, qd, y = tree.random_configuration(1), 0.1 * rng.normal(size=tree.nv), rng.normal(size=len(of.inputs.y))
    closed: tuple[str, ...] = ()
    for k in range(n):
        dt = 0.3 if k == 120 else DT * rng.choice([0.5, 1.0, 1.0, 2.0])
        qd = qd + 0.02 * rng.normal(size=tree.nv)
        q, y = tree.integrate(q, qd, dt), y + 0.05 * rng.normal(size=len(y))
        at, told = q.copy(), y.copy()
        if k == 60:
            told[0] = np.nan
        if k == 200:
            at[:] = np.nan
        if of.contact_names and k % 40 == 20:
            closed = () if closed else of.contact_names
        own = weights.copy()
        if k % 10 == 5:
            own[rng.integers(len(weights))] = 0.0
        yield Tick(dt, at, qd, told, own, closed)


@every_case
def test_it_is_what_the_filter_estimates(name, running):
    of, run = new_filter(name), running(name)
    good = 0
    for k, tick in enumerate(ticks(name)):
        if of.contact_names:
            of.switch(tick.closed)
        for field in ("q", "qd", "y", "weights"):
            getattr(of.inputs, field)[:] = getattr(tick, field)
        expected = of.tick(tick.dt)
        contacts = None if not of.contact_names else run.made.export.indices["IT_CONTACT_tip"] * bool(tick.closed)
        status = run.step(tick.dt, contacts, q=tick.q, qd=tick.qd, y=tick.y, weights=tick.weights)
        found = run.found()
        if k % 20 == 0:
            mean, deviations, state = *run.memory(), of.state
            known = np.isfinite(state.deviations)
            assert_close(mean, state.mean, SOLVED)
            assert np.array_equal(np.isfinite(deviations), known)
            assert_close(deviations[known], state.deviations[known], SOLVED)
        if not expected.ok:
            assert status in (INPUT_NOT_FINITE, UNDETERMINED)
            assert all(np.isnan(values).all() for values in found.values())
            continue
        assert status == OK
        good += 1
        after = of._now.found()
        assert_close(found["memory"], after.u[-len(of.memory_names) :], SOLVED)
        assert_close(found["nis"], after.nis, SOLVED)
        assert_close(found["log_likelihood"], after.log_likelihood, SOLVED)
        assert found["degrees"] == after.degrees
        for output, values in vars(of.outputs).items():
            assert_close(found[output.replace(":", "_")], values, SOLVED)
    assert good > 250
    of_all = of.consistency
    assert_close(list(run.filter.totals), [of_all.nis, of_all.degrees, of_all.ticks], SOLVED)


# ------------------------------------------------------------------------------------ what is refused


def first_tick(name: str) -> dict[str, Any]:
    tick = ticks(name)[0]
    return {field: getattr(tick, field).copy() for field in ("q", "qd", "y", "weights")}


def assert_refused(run: Running, status: int, expected: int) -> None:
    assert status == expected
    assert all(np.isnan(values).all() for values in run.found().values())


@pytest.mark.parametrize("dt", [0.0, -DT, np.nan, np.inf])
def test_a_time_that_is_not_positive_changes_nothing(dt, running):
    run = running("arm")
    assert run.step(DT, None, **first_tick("arm")) == OK
    before = bytes(run.made.ffi.buffer(run.filter))
    assert_refused(run, run.step(dt, None), TIME_NOT_POSITIVE)
    assert bytes(run.made.ffi.buffer(run.filter)) == before
    assert run.step(DT, None) == OK


def test_a_contact_state_without_a_plan_changes_nothing(running):
    run = running("contacts")
    assert run.step(DT, 0, **first_tick("contacts")) == OK
    before = bytes(run.made.ffi.buffer(run.filter))
    assert_refused(run, run.step(DT, 2), UNPLANNED_CONTACTS)
    assert bytes(run.made.ffi.buffer(run.filter)) == before


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("q", np.nan, INPUT_NOT_FINITE),
        ("qd", np.inf, INPUT_NOT_FINITE),
        ("y", -np.inf, INPUT_NOT_FINITE),
        ("weights", np.nan, INPUT_NOT_FINITE),
        ("weights", -1.0, NEGATIVE_WEIGHT),
        ("q", 2.0, QUATERNION_NOT_UNIT),
        ("qd", 1e200, OUTPUT_NOT_FINITE),
    ],
)
def test_what_is_no_state_is_refused_and_what_is_known_goes_on(field, value, expected, running):
    run = running("walker")
    state = first_tick("walker")
    assert run.step(DT, None, **state) == OK
    before, spread = run.memory()
    n_v = 18
    assert_refused(run, run.step(DT, None, **state | {field: np.full(len(state[field]), value)}), expected)
    mean, deviations = run.memory()
    a = np.exp(-DT / 30)
    gained = 0.01**2 * 30 / 2 * (1 - np.exp(-2 * DT / 30))
    assert np.isinf(deviations[:n_v]).all()
    assert_close(mean[n_v:], a * before[n_v:], SOLVED)
    assert_close(deviations[n_v:] ** 2, a**2 * spread[n_v:] ** 2 + gained, SOLVED)
    assert run.step(DT, None, **state) == OK


def test_what_is_not_determined_is_named(running):
    run = running("arm")
    state, indices = first_tick("arm"), run.made.export.indices
    state["weights"][indices["IT_WEIGHT_tau_panda_joint3"]] = 0.0
    assert_refused(run, run.step(DT, None, **state), UNDETERMINED)
    of = new_filter("arm")
    with pytest.raises(nd.errors.SingularSystemError, match="panda_finger_joint2 not determined"):
        of.step(**state)
    assert run.filter.lost == indices["IT_FREE_qdd_panda_finger_joint2"]
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


@every_case
def test_the_example_runs(name, running, tmp_path):
    made = running(name).made
    objects = [made.folder / f".{file}.o" for file in sources(made.export)]
    compile_c("-O0", "-o", tmp_path / "example", made.folder / "main.c", *objects, "-lm")
    lines = checked([tmp_path / "example"]).splitlines()
    outputs = sum(int(np.prod(shape)) for shape in made.export.outputs.values())
    assert len(lines) == outputs - 3 + 2
    assert lines[-1].endswith("us a call")
    assert lines[-2].endswith("in 1000 ticks")
    assert not any("nan" in line or "inf" in line for line in lines)


@pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm here")
@every_case
def test_it_has_no_data_that_is_written_and_calls_a_few_functions(name, running, tmp_path):
    made = running(name).made
    for file in sources(made.export):
        compile_c("-O2", "-c", "-o", tmp_path / "it.o", made.folder / file)
        symbols = [line.split()[-2:] for line in checked(["nm", tmp_path / "it.o"]).splitlines()]
        assert {kind for kind, _ in symbols} <= set("TtrRU")
        needed = {symbol for kind, symbol in symbols if kind == "U" and not symbol.startswith("it_")}
        assert needed <= CALLED
        assert all(symbol.startswith("it_") for kind, symbol in symbols if kind in "TR")


CALLED = {"sin", "cos", "sincos", "sqrt", "exp", "expm1", "log", "fmax"} | {
    "memset",
    "memcpy",
    "memmove",
    "_GLOBAL_OFFSET_TABLE_",
    "__stack_chk_fail",
}


@every_case
def test_every_place_has_a_name(name, running):
    made, of = running(name).made, new_filter(name)
    assert {place: getattr(made.library, place) for place in made.export.indices} == dict(made.export.indices)
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


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler here")
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
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict(made.files)


@pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no CMake here")
def test_cmake_builds_the_library_and_the_example(running, tmp_path):
    made = running("contacts").made
    checked(["cmake", "-S", made.folder, "-B", tmp_path])
    checked(["cmake", "--build", tmp_path])
    assert "us a call" in checked([tmp_path / "it_example"])
