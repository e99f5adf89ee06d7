"""Offsets of sensors: every sensor may have one, and what it is estimated to be is that of dense least squares."""

import json

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InvalidConfigError, SensorConfigError
from nori_dyn.measurements.binding import OffsetReading, without_offset
from nori_dyn.measurements.sensor_set import measurement_types
from nori_dyn.model.kinematics import velocities
from nori_dyn.observe.null_space import wrench_readings
from tests.agreement.test_weighted import reference
from tests.contracts.test_measurements import ENTRIES, of, torque, wrench
from tests.noted import noted
from tests.standing import LAWS_ELSEWHERE
from tests.systems import sensor_set
from tests.tolerances import EXACT, ROUNDING, SOLVED, assert_close
from tests.trees import TREES, random_state

TREE = TREES["two_roots"]
OFFSET = {"sigma": 0.5, "mean": -0.2}
READINGS = {kind: entries for kind, entries in ENTRIES.items() if kind != "prior"}
every_sensor = pytest.mark.parametrize("entries", READINGS.values(), ids=READINGS)


def system(*entries: dict) -> nd.System:
    return nd.System(TREE, sensor_set(*entries))


def test_every_sensor_but_the_prior_has_an_offset():
    assert set(READINGS) | LAWS_ELSEWHERE == set(measurement_types()) - {"prior"}


@every_sensor
def test_an_offset_adds_one_unknown_a_row_and_its_prior_and_what_a_reading_is_besides_stays(entries):
    for entry in entries:
        with noted(entry):
            check_unknowns(entry)
            check_reading(entry)
            config = sensor_set({**entry, "offset": OFFSET})
            assert nd.SensorSet.from_dict(json.loads(json.dumps(config.to_dict()))) == config
            assert config.fingerprint != sensor_set(entry).fingerprint


def check_unknowns(entry: dict) -> None:
    plain, found = system(entry), system({**entry, "offset": OFFSET})
    n, (_, columns) = plain.ny, plain.shape
    assert found.shape == (plain.shape[0] + n, columns + n)
    assert found.measurement_names == plain.measurement_names
    assert found.variable_names[columns:] == tuple(f"offset:{name}" for name in plain.measurement_names)
    q, qd, *_ = random_state(TREE, 1)
    y = np.random.default_rng(1).normal(size=n)
    D, b, without = found.D(q).toarray(), found.b(q, qd, y), plain.D(q).toarray()
    readings = np.concatenate([np.arange(found.shape[0])[row.slice] for row in found.measurements])
    priors = np.setdiff1d(np.arange(plain.shape[0] - n, found.shape[0]), readings)
    assert_close(D[readings], np.hstack([without[-n:], np.eye(n)]), EXACT)
    assert_close(b[readings], plain.b(q, qd, y)[-n:], EXACT)
    assert_close(D[priors], np.eye(columns + n)[columns:], EXACT)
    assert_close(b[priors], np.full(n, 0.2), ROUNDING)
    assert set(found.weight_names) >= {row.name for row in found.rows if row.name.startswith("prior:offset:")}


def check_reading(entry: dict) -> None:
    plain, found = system({**entry, "range": [-5, 5]}), system({**entry, "range": [-5, 5], "offset": OFFSET})
    at = velocities(TREE, *random_state(TREE, 1)[:2])
    for with_offset, row in zip(found.measurements, plain.measurements, strict=True):
        assert isinstance(with_offset.equation, OffsetReading)
        assert type(without_offset(with_offset.equation)) is type(without_offset(row.equation)) is type(row.equation)
        for what in ("name", "source", "group", "components", "sigma"):
            assert getattr(with_offset.equation, what) == getattr(row.equation, what)
        assert (with_offset.ranges, with_offset.units) == (row.ranges, row.units)
        assert (with_offset.frame is None) == (row.frame is None)
        (variable,) = (v for v in found.variables if v.owner == row.name)
        read = next(iter(row.equation.blocks(at)))
        same = next(v for v in found.variables if v.key == read)
        assert (variable.body, variable.is_force, variable.is_source) == (same.body, same.is_force, True)
        assert variable.units == (row.units or ("",) * len(variable.components))


def test_numbers_are_one_or_one_a_component():
    each = {"sigma": [0.1, 0.2, 0.3], "mean": [1, 2, 3]}
    bound = system(of("accelerometer", links="link2", offset=each))
    (row,) = (row for row in bound.rows if row.name == "prior:offset:acc:link2")
    assert row.equation.sigma == (0.1, 0.2, 0.3)
    assert row.equation.value == (1, 2, 3)
    for wrong in ({"sigma": [1, 2]}, {"sigma": 1, "mean": [1, 2]}):
        with pytest.raises(SensorConfigError, match=r"of 'offset:acc:link2' has 2 numbers, expected one or 3"):
            system(of("accelerometer", links="link2", offset=wrong))


def test_what_cannot_be_is_refused():
    for entry, said in (
        (torque(value=0, offset={"sigma": 1}), "a known value has no offset"),
        (of("rigid_contact", links="link5", offset={"sigma": 1}), "a known value has no offset"),
        (of("prior", variables=["f"], sigma=1, offset={"sigma": 1}), "offset"),
        (torque(offset={}), "sigma"),
        (torque(offset={"sigma": 0}), "greater than 0"),
        (torque(offset={"sigma": 1, "drift": 2}), "drift"),
        (torque(offset=0.5), "offset"),
    ):
        with noted(entry), pytest.raises(InvalidConfigError, match=said):
            sensor_set(entry)


def test_offsets_of_sensors_that_come_and_go_are_refused():
    cell = wrench("link3", offset={"sigma": 1})
    config = {"name": "feet", "measurements": [], "contacts": {"foot": {"open": [], "closed": [cell]}}}
    with pytest.raises(InvalidConfigError, match="put this sensor under `measurements`") as caught:
        nd.SensorSet.from_dict(config)
    assert caught.value.path == ("contacts", "foot", "closed", 0, "offset")


def test_a_prior_on_all_is_not_on_offsets():
    rows = system(torque("joint2", offset=OFFSET), of("prior", variables="all", sigma=1)).rows
    assert [row.name for row in rows if "offset" in row.name] == ["prior:offset:tau:joint2"]


def test_a_wrench_is_where_a_load_cell_with_an_offset_reads_it():
    rows = wrench_readings(system(wrench("tool", offset=OFFSET)))[TREE.frames["tool"].link]
    assert [row.name for row in rows] == ["fx:tool"]


ARM = nd.autotree(3, skew=0.4)
DRIFTING = sensor_set(
    of("joint_acceleration", joints="all", sigma=0.2),
    wrench(value=0),
    torque(sigma=0.1, offset={"sigma": 3.0, "mean": 1.0}),
    of("accelerometer", links="link3", name="imu", sigma=0.05),
)


@pytest.fixture(scope="module")
def plan() -> nd.Plan:
    return nd.plan(nd.System(ARM, DRIFTING))


def test_estimates_and_deviations_are_those_of_dense_least_squares(plan):
    system, rng = plan.system, np.random.default_rng(3)
    q, qd, y = rng.normal(size=3), rng.normal(size=3), rng.normal(size=system.ny)
    truth = reference(system, q, qd, y, system.weights)
    found = plan.monitor(backend="numpy").check(q, qd, y)
    for variable in system.variables:
        if variable.kind == "offset":
            name = variable.name
            assert_close(plan.solver("numpy").solve(q, qd, y)[name], truth.d[variable.slice], SOLVED)
            assert_close(found.estimate[name], truth.d[variable.slice], SOLVED)
            own = np.diagonal(truth.covariance)[variable.slice]
            assert_close(found.deviations[name] ** 2, own, SOLVED)
            assert own < 0.75 * 3.0**2


def test_a_constant_offset_is_found_where_another_sensor_tells_the_truth():
    exact = [{key: value for key, value in m.items() if key != "sigma"} for m in DRIFTING.to_dict()["measurements"]]
    system = nd.System(ARM, nd.SensorSet.from_dict({"name": "exact", "measurements": exact[:3]}))
    q, qd, qdd = np.random.default_rng(4).normal(size=(3, 3))
    tau = nd.rnea(ARM, q, qd, qdd)
    y = np.concatenate([qdd, tau + np.array([0.5, -0.25, 4.0])])
    solver = nd.plan(system, outputs=["offset", "offset:tau:joint2", "tau"]).solver("numpy")
    found = solver.solve(q, qd, y)
    assert_close(found["offset"], np.array([0.5, -0.25, 4.0]), SOLVED)
    assert_close(found["offset:tau:joint2"], np.array([-0.25]), SOLVED)
    assert_close(found.tau, tau, SOLVED)


def test_without_its_reading_an_offset_is_its_mean_and_what_is_known_of_it_weighs_as_told(plan):
    assert nd.observability(plan.system).is_observable  # by the priors on offsets
    at = np.zeros(3), np.zeros(3)
    y = np.random.default_rng(3).normal(size=plan.system.ny)
    solver = plan.solver("numpy")
    known = solver.solve(*at, y, weights={"prior:offset:tau:joint2": 1e9})
    assert abs(known["offset:tau:joint2"] - 1) < 1e-6
    y[plan.system.measurement_names.index("tau:joint2")] = np.nan
    found = solver.solve(*at, y, missing="drop")
    assert_close(found["offset:tau:joint2"], np.ones(1), SOLVED)
    assert abs(found["offset:tau:joint1"] - 1) > 1e-3


def test_a_candidate_brings_its_offset_along():
    choices = [torque(sigma=0.1, offset={"sigma": 1.0}), of("joint_acceleration", joints="all", sigma=0.1)]
    content = {"name": "torques or accelerations", "measurements": [wrench(value=0)]}
    candidates = nd.placement.Candidates.from_dict(
        {**content, "candidates": {"measurements": choices}, "costs": {"joint_acceleration": 5}}
    )
    found = nd.place(ARM, candidates, progress=False)
    assert found.chosen == ("tau:joint1", "tau:joint2", "tau:joint3")
