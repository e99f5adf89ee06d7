"""An exported monitor says what `Plan.monitor` says."""

import re
from functools import lru_cache

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import PlanError
from nori_dyn.export.files import c_export
from nori_dyn.model.joints import Planar, Revolute, Spherical
from tests.compilers import needs_compiler
from tests.contracts.test_export import INPUT_NOT_FINITE, NEGATIVE_WEIGHT, OF_THE_COMPILER, OK, SOFT, ZERO_WEIGHT
from tests.exported import Exported, needs_nm
from tests.systems import sensor_set
from tests.tolerances import SAME_PROGRAM, SOLVED, assert_close
from tests.trees import TREES

pytestmark = needs_compiler

JOINTED = nd.tools.random_tree(3, seed=13).replace(
    parents=(-1, 0, -1), joints=(Revolute(), Spherical(), Planar()), frames=TREES["two_roots"].frames
)
SENSORS = {
    "odd": (nd.autotree(3), SOFT),
    "even": (
        JOINTED,
        (
            *SOFT,
            {"type": "accelerometer", "links": "link2", "sigma": 0.1},
            {"type": "angular_accelerometer", "links": "link2", "components": ["wx", "wy"], "sigma": [0.1, 0.2]},
        ),
    ),
    "unchecked": (
        nd.autotree(2),
        (
            {"type": "joint_acceleration", "joints": "joint1", "sigma": 0.5},
            {"type": "joint_acceleration", "joints": "joint2", "value": 0},
            {"type": "external_wrench", "links": "link2", "sigma": 1},
            {"type": "external_wrench", "links": "link1", "value": 0},
        ),
    ),
}
OUTPUTS = {"odd": ("tau", "qdd", "fx:link3"), "even": ("qdd", "tau", "f:palm", "tau:joint2"), "unchecked": ("tau",)}
DEGREES = {"odd": 3, "even": 12, "unchecked": 0}  # the chi-square is computed in another way by each
every_set = pytest.mark.parametrize("name", SENSORS)


@lru_cache
def planned(name: str) -> nd.Plan:
    tree, measurements = SENSORS[name]
    return nd.plan(nd.System(tree, sensor_set(*measurements)), outputs=OUTPUTS[name])


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
    assert expected.degrees_of_freedom == DEGREES[name]


@every_set
def test_the_suspect_is_the_first_of_the_monitor(name, compiled):
    made, monitor = compiled(name), planned(name).monitor("numpy")
    diagnosis, given, work = made.new("diagnosis"), made.new("inputs"), made.new("check_workspace")
    for state in states(name, 4):
        for field, values in zip(("q", "qd", "y", "weights"), state, strict=True):
            setattr(given, field, values.tolist())
        assert made.call("check", given, work, diagnosis) == OK
        suspects = monitor.check(*state).suspects()
        number = made.call("suspect", diagnosis)
        assert not suspects or monitor.readings[number] == suspects[0].reading


def test_readings_have_names(compiled):
    indices, readings = compiled("odd").export.indices, planned("odd").monitor("numpy").readings
    assert [indices[f"IT_READING_{name.replace(':', '_')}"] for name in readings] == list(range(len(readings)))


def test_what_it_cannot_judge_has_a_status(compiled):
    for array, value, status in (
        (0, np.nan, INPUT_NOT_FINITE),
        (2, np.inf, INPUT_NOT_FINITE),
        (3, np.nan, INPUT_NOT_FINITE),
        (3, -1.0, NEGATIVE_WEIGHT),
        (3, 0.0, ZERO_WEIGHT),
    ):
        state = [part.copy() for part in next(states("odd"))]
        state[array][0] = value
        found, written = compiled("odd").check(*state)
        assert found == status, (array, value)
        assert all(np.isnan(values).all() for values in written.values()), (array, value)


def test_solving_is_the_same_beside_a_monitor(compiled):
    made = compiled("odd").export
    alone = c_export(planned("odd").plans, "it").files
    assert all(made.files[file] == alone[file] for file in ("it.c", "it.h"))
    headers = {"nori_dyn/alone_judge.h", "nori_dyn/judge.h"}
    assert set(made.files) - set(alone) == {"it_monitor.c", "it_monitor.h", *headers}


@needs_nm
@every_set
def test_it_needs_nothing_but_mathematics_and_the_example_judges(name, compiled, tmp_path):
    made = compiled(name)
    assert any("chi-square" in line for line in made.run_example(tmp_path))
    defined, needed = made.symbols()
    assert defined - {"it_init", "it_solve", "it_status_text", "it_default_weights"} == {"it_check", "it_suspect"}
    mathematics = {"sin", "cos", "sincos", "sqrt", "exp", "log", "erfc"}
    assert needed <= mathematics | {"memset", "memcpy", *OF_THE_COMPILER}


def test_sensors_that_hold_exactly_have_none(tmp_path):
    plan = nd.plan(nd.System(nd.autotree(2), nd.sensors("inverse_dynamics")))
    with pytest.raises(PlanError, match="hold exactly"):
        plan.export(tmp_path / "out", monitor=True)
    assert not (tmp_path / "out").exists()
