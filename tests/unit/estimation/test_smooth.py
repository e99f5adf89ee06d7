"""Logs through filters and smoothers: what comes of a file is what comes of its arrays."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError, SingularSystemError, UnknownNameError
from nori_dyn.estimation.log_file import estimate_to_file
from nori_dyn.estimation.log_run import LogRunner
from nori_dyn.estimation.run_options import RunOptions, options_of
from nori_dyn.logs.log import whole_table
from tests.systems import ACCELERATIONS, TORQUES, WRENCHES, braked, sensor_set
from tests.unit.filtering.recorded import DT, planned, recorded

N = 40


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    plan, path = planned(), tmp_path_factory.mktemp("smooth") / "log.npz"
    ticks = recorded(plan.system, N, seed=1)
    np.savez(path, t=ticks.T, q=ticks.Q, qd=ticks.Qd, y=ticks.Y)
    return plan, ticks, path


def test_as_a_table_and_as_a_file(arm, tmp_path):
    pytest.importorskip("pandas")
    plan, _, path = arm
    found = nd.smooth(path, plan, backend="numpy")
    table = found.to_pandas()
    assert table.attrs["units"]["sigma:offset:tau:joint1"] == "N m"
    np.testing.assert_array_equal(table["sigma:tau:joint2"], found.deviations["tau"][:, 1])
    np.testing.assert_array_equal(table["offset:tau:joint1"], found.memory["offset:tau:joint1"][:, 0])
    found.save(tmp_path / "out.csv")
    written = whole_table(tmp_path / "out.csv")
    assert list(written) == ["t", *table.columns]
    np.testing.assert_allclose(written["p_value"], found.history.p_value)


def test_readings_that_are_missing_and_samples_without_a_motion(arm, tmp_path):
    plan, ticks, _ = arm
    told = ticks.Y.copy()
    told[3:6, 1] = np.nan
    np.savez(tmp_path / "log.npz", t=ticks.T, q=ticks.Q, qd=ticks.Qd, y=told)
    with pytest.raises(InputError, match="is empty or nan"):
        nd.smooth(tmp_path / "log.npz", plan, backend="numpy")
    found = nd.smooth(tmp_path / "log.npz", plan, missing="drop", dt=DT, backend="numpy")
    whole = ticks.T, ticks.Q, ticks.Qd, told
    np.testing.assert_array_equal(
        found["tau"], nd.Tracker(plan, DT, backend="numpy").over(*whole, missing="drop", causal=False)["tau"]
    )
    assert found.report.dropped == {plan.system.measurement_names[1]: 3}
    Q, kept = ticks.Q.copy(), np.arange(N) != 10
    Q[10] = np.nan
    np.savez(tmp_path / "log.npz", t=ticks.T, q=Q, qd=ticks.Qd, y=ticks.Y)
    found = nd.smooth(tmp_path / "log.npz", plan, missing="drop", dt=DT, backend="numpy")
    whole = (each[kept] for each in ticks.all)
    np.testing.assert_array_equal(found["tau"], nd.Tracker(plan, DT, backend="numpy").over(*whole, causal=False)["tau"])
    np.testing.assert_array_equal(found.samples.numbers, np.flatnonzero(kept))


def test_what_is_refused(arm):
    plan, _, path = arm
    with pytest.raises(UnknownNameError, match="way to treat what no reading tells 'mind'"):
        nd.smooth(path, plan, unseen="mind")
    with pytest.raises(InputError, match="contacts can be chosen for a plan set"):
        nd.smooth(path, plan, contacts=["tip"])
    with pytest.raises(InputError, match="chunk is 0: at least one sample is worked on at once"):
        RunOptions(chunk=0)
    assert LogRunner(plan, RunOptions(chunk=1)).options.chunk == 1
    sensors = [{**TORQUES, "sigma": 0.1}, {**WRENCHES, "links": ["link2"], "value": 0}, ACCELERATIONS]
    push = {"push": {"of": "fx:link1", "walk": 0.1, "sigma": 1}}
    pushed = planned(sensor_set(*sensors, name="pushed", memory=push), outputs=("tau",))
    ticks = recorded(pushed.system, 5, seed=2)
    np.savez(path.parent / "pushed.npz", t=ticks.T, q=ticks.Q, qd=ticks.Qd, y=ticks.Y)
    with pytest.raises(SingularSystemError, match="no reading observes fx:link1"):
        nd.smooth(path.parent / "pushed.npz", pushed, unseen="refuse", backend="numpy")


def test_contacts_of_a_log_are_recognised(tmp_path):
    """As in ticks that are in memory, chunk by chunk, and in a file with how likely each contact is closed."""
    plan = nd.plan(nd.autotree(1), braked(0.3, 0.2, 0.1), outputs=["fx", "qdd"])
    rng, N = np.random.default_rng(0), 90
    t, still, held = 0.01 * np.arange(N), np.zeros((N, 1)), np.arange(N) // 30 == 1
    tau, qdd = 1.5 * held + 0.3 * rng.normal(size=N), 0.1 * rng.normal(size=N)
    log = tmp_path / "log.npz"
    np.savez(log, t=t, q=still, qd=still, tau=tau[:, None], qdd=qdd[:, None])
    tracker = nd.Tracker(plan, 0.01, hypotheses=nd.Hypotheses(), backend="numpy")
    options = options_of(contacts="recognise", backend="numpy", how="smooth", chunk=25)
    for how, found in (
        ("causal", nd.estimate(log, plan, backend="numpy", contacts="recognise")),
        ("smoothed", nd.smooth(log, plan, backend="numpy", contacts=nd.Hypotheses())),
    ):
        expected = tracker.over(t, still, still, np.column_stack([tau, qdd]), causal=how == "causal")
        contacts, own = expected.contacts, found.history.contacts
        np.testing.assert_allclose(own.probabilities, contacts.probabilities, atol=1e-9)
        np.testing.assert_allclose(found["fx"], expected["fx"], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.to_pandas()["contact:brake"], contacts["brake"], atol=1e-9)
        assert (own.closed[:, 0] == held).mean() > 0.9
    written = tmp_path / "out.npz"
    estimate_to_file(LogRunner(plan, options), nd.read_log(log), written)
    np.testing.assert_allclose(np.load(written)["contact:brake"], own["brake"], atol=1e-9)
    np.testing.assert_allclose(np.load(written)["fx"], found["fx"], rtol=1e-9, atol=1e-9)
    with pytest.raises(InputError, match="one contact state"):
        nd.estimate(log, nd.plan(nd.System(nd.autotree(1), "inverse_dynamics")), contacts="recognise")
