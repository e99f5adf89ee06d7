"""An exported monitor says what `Plan.monitor` says."""

from __future__ import annotations

import re
import shutil
from functools import lru_cache

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import PlanError
from nori_dyn.program.export.files import c_export
from tests.compilers import needs_compiler
from tests.contracts.test_export import INPUT_NOT_FINITE, NEGATIVE_WEIGHT, OK, ZERO_WEIGHT
from tests.exported import Exported, checked, compile_c, sources
from tests.systems import sensor_set
from tests.tolerances import SAME_PROGRAM, SOLVED, assert_close
from tests.trees import TREES

pytestmark = needs_compiler

EXACT_WRENCHES = {"type": "external_wrench", "links": "all", "value": 0}
SENSORS = {
    "odd": (
        nd.autotree(3),
        ({"type": "joint_acceleration", "joints": "all", "sigma": 0.5},),
        ({"type": "joint_torque", "joints": "all", "sigma": 0.2}, EXACT_WRENCHES),
    ),
    "even": (
        TREES["two_roots"],
        (
            {"type": "joint_acceleration", "joints": "all", "sigma": 0.5},
            {"type": "accelerometer", "links": ["link2", "link3"], "sigma": 0.1},
            {"type": "angular_accelerometer", "links": "link3", "sigma": [0.1, 0.2, 0.3]},
        ),
        ({"type": "joint_torque", "joints": "all", "sigma": 0.2}, EXACT_WRENCHES),
    ),
    "unchecked": (
        nd.autotree(2),
        ({"type": "joint_acceleration", "joints": "joint1", "sigma": 0.5},),
        (
            {"type": "joint_acceleration", "joints": "joint2", "value": 0},
            {"type": "external_wrench", "links": "link2", "sigma": 1},
            {"type": "external_wrench", "links": "link1", "value": 0},
        ),
    ),
}
OUTPUTS = {"odd": ("tau", "qdd", "fx:link3"), "even": ("qdd", "tau", "f:palm", "tau:joint2"), "unchecked": ("tau",)}
every_set = pytest.mark.parametrize("name", SENSORS)


@lru_cache
def planned(name: str) -> nd.Plan:
    tree, *measurements = SENSORS[name]
    return nd.plan(nd.System(tree, sensor_set(*(m for part in measurements for m in part))), outputs=OUTPUTS[name])


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return lru_cache(
        lambda name: Exported.of(planned(name), tmp_path_factory.mktemp("monitor") / "it", name="it", monitor=True)
    )


def states(name: str, n: int = 12):
    system, rng = planned(name).system, np.random.default_rng(3)
    for k in range(n):
        weights = system.weights * rng.uniform(0.1, 10, size=system.n_weights) * 10.0 ** -(k % 4)
        q = system.tree.random_configuration(rng)
        yield q, rng.normal(size=system.tree.nv), rng.normal(size=system.ny), weights


@every_set
def test_it_is_what_the_monitor_finds(name, compiled):
    monitor, made = planned(name).monitor("numpy"), compiled(name)
    for state in states(name):
        status, found = made.check(*state)
        expected = monitor.check(*state)
        assert status == OK
        for output, deviations in expected.deviations.items():
            field = f"sigma_{output.replace(':', '_')}"
            assert_close(np.reshape(found[field], deviations.shape), deviations, SOLVED)
        assert_close(found["residuals"], expected.residuals, SAME_PROGRAM)
        assert_close(found["spreads"], np.nan_to_num(expected.spreads), SAME_PROGRAM)
        assert_close(found["normalised"], np.nan_to_num(expected.normalised), SAME_PROGRAM)
        np.testing.assert_allclose(found["chi_square"], expected.chi_square, rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(found["p_value"], expected.p_value, rtol=1e-8)
        header = made.export.files["it_monitor.h"]
        assert re.search(rf"#define IT_DEGREES_OF_FREEDOM +{expected.degrees_of_freedom} ", header)
        assert re.search(rf"#define IT_N_READINGS +{len(expected.readings)} ", header)
    assert 0 < expected.p_value <= 1


@every_set
def test_the_suspect_is_the_first_of_the_monitor(name, compiled):
    made, monitor = compiled(name), planned(name).monitor("numpy")
    for state in states(name, 4):
        diagnosis = made.new("diagnosis")
        given = made.new("inputs")
        for field, values in zip(("q", "qd", "y", "weights"), state, strict=True):
            setattr(given, field, values.tolist())
        assert made.call("check", given, made.new("check_workspace"), diagnosis) == OK
        suspects = monitor.check(*state).suspects()
        number = made.call("suspect", diagnosis)
        assert not suspects or monitor.readings[number] == suspects[0].reading


def test_readings_have_names(compiled):
    indices, readings = compiled("odd").export.indices, planned("odd").monitor("numpy").readings
    assert [indices[f"IT_READING_{name.replace(':', '_')}"] for name in readings] == list(range(len(readings)))


@pytest.mark.parametrize(
    ("array", "value", "status"),
    [
        (0, np.nan, INPUT_NOT_FINITE),
        (2, np.inf, INPUT_NOT_FINITE),
        (3, np.nan, INPUT_NOT_FINITE),
        (3, -1.0, NEGATIVE_WEIGHT),
        (3, 0.0, ZERO_WEIGHT),
    ],
)
def test_what_it_cannot_judge_has_a_status(array, value, status, compiled):
    state = [part.copy() for part in next(states("odd"))]
    state[array][0] = value
    found, written = compiled("odd").check(*state)
    assert found == status
    assert all(np.isnan(values).all() for values in written.values())


def test_solving_is_the_same_beside_a_monitor(compiled, tmp_path):
    made = compiled("odd").export
    alone = c_export(planned("odd"), "it").files
    assert all(made.files[file] == alone[file] for file in ("it.c", "it.h"))
    assert set(made.files) - set(alone) == {"it_monitor.c", "it_monitor.h"}


@every_set
def test_the_example_judges(name, compiled, tmp_path):
    made = compiled(name)
    code = [made.folder / file for file in (*sources(made.export), "main.c")]
    compile_c("-O0", "-o", tmp_path / "example", *code, "-lm")
    assert "chi-square" in checked([tmp_path / "example"])


@pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm here")
def test_it_needs_nothing_but_mathematics(compiled, tmp_path):
    made = compiled("even")
    compile_c("-O2", "-c", "-o", tmp_path / "it.o", made.folder / "it_monitor.c")
    symbols = [line.split()[-2:] for line in checked(["nm", tmp_path / "it.o"]).splitlines()]
    assert {kind for kind, _ in symbols} <= set("TtrRU")
    assert {symbol for kind, symbol in symbols if kind == "T"} == {"it_check", "it_suspect"}
    needed = {symbol for kind, symbol in symbols if kind == "U"}
    mathematics = {"sin", "cos", "sincos", "sqrt", "exp", "log", "erfc"}
    assert needed <= mathematics | {"memset", "memcpy", "_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"}


def test_sensors_that_hold_exactly_have_none(tmp_path):
    plan = nd.plan(nd.System(nd.autotree(2), nd.sensors("inverse_dynamics")))
    with pytest.raises(PlanError, match="hold exactly"):
        plan.export(tmp_path / "out", monitor=True)
    assert not (tmp_path / "out").exists()
