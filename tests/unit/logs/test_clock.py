"""Streams on clocks of their own, against NumPy's and SciPy's interpolation; gaps."""

import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

import nori_dyn as nd
from nori_dyn.logs import clock, reading
from nori_dyn.logs.motion.differentiation import SavitzkyGolay
from nori_dyn.logs.reading import LogCounts
from tests.logs import samples_in
from tests.unit.logs.test_mapping import BODY

ARM = nd.autotree(1)
SYSTEM = nd.System(ARM, "inverse_dynamics")
COLUMNS = [
    {"of": "q:joint1", "from": "a_q"},
    {"of": "qd:joint1", "from": "a_qd"},
    {"of": "qdd:joint1", "from": "b_qdd"},
]


OF_VELOCITIES = {"columns": [{"of": "q:joint1", "from": "q"}, {"of": "qd:joint1", "from": "qd"}]}


def saved(path, a_t, b_t):
    rng = np.random.default_rng(3)
    told = {"a_t": a_t, "a_q": rng.normal(size=len(a_t)), "a_qd": rng.normal(size=len(a_t))}
    told |= {"b_t": b_t, "b_qdd": rng.normal(size=len(b_t))}
    np.savez(path, **told)
    return told


@pytest.mark.parametrize("size", [7, 1 << 16])
def test_readings_between_samples_are_those_of_numpy(tmp_path, monkeypatch, size):
    for module in (clock, reading):
        monkeypatch.setattr(module, "BLOCK", size)
    a_t, b_t = np.linspace(0.0, 1.0, 101), np.linspace(-0.013, 1.05, 333)
    told = saved(tmp_path / "log.npz", a_t, b_t)
    log = samples_in(tmp_path / "log.npz", SYSTEM, mapping={"columns": COLUMNS})
    np.testing.assert_array_equal(log.t, a_t)
    np.testing.assert_array_equal(log.q[:, 0], told["a_q"])
    np.testing.assert_allclose(log.y[:, 0], np.interp(a_t, b_t, told["b_qdd"]), rtol=1e-12, atol=1e-12)
    held = {"columns": COLUMNS, "streams": {"b": {"resample": "hold", "delay": 0.002}}}
    log = samples_in(tmp_path / "log.npz", SYSTEM, mapping=held)
    expected = told["b_qdd"][np.searchsorted(b_t - 0.002, a_t, side="right") - 1]
    np.testing.assert_array_equal(log.y[:, 0], expected)


@pytest.mark.parametrize("size", [7, 1 << 16])
def test_samples_that_were_stamped_when_they_arrived_are_spaced_evenly(tmp_path, monkeypatch, size):
    for module in (clock, reading):
        monkeypatch.setattr(module, "BLOCK", size)
    late, b_t = np.linspace(2.0, 3.0, 101), np.linspace(1.9, 3.1, 241)
    late[20:35] = late[35] - 1e-6 * np.arange(15, 0, -1)
    told = saved(tmp_path / "log.npz", late, b_t)
    mapping = {"columns": COLUMNS, "streams": {"a": {"step": 0.01}}}
    log = samples_in(tmp_path / "log.npz", SYSTEM, mapping=mapping)
    np.testing.assert_allclose(log.t, np.linspace(2.0, 3.0, 101), rtol=1e-14)
    np.testing.assert_allclose(log.y[:, 0], np.interp(log.t, b_t, told["b_qdd"]), atol=1e-10)
    np.savez(tmp_path / "log.npz", t=late, **dict.fromkeys(("q", "qd", "qdd"), np.arange(101.0)))
    mapping = {
        "columns": [{"of": f"{k}:joint1", "from": k} for k in ("q", "qd", "qdd")],
        "streams": {"": {"step": 0.01}},
    }
    np.testing.assert_allclose(samples_in(tmp_path / "log.npz", SYSTEM, mapping=mapping).t, log.t, rtol=1e-14)


def test_a_rate_of_its_own_ends_with_the_last_sample(tmp_path):
    """Of times in milliseconds, 387.179 + 10.672 is not 397.851 in doubles."""
    a_t, b_t = 5.0 + np.linspace(0.0, 1.0, 101), 5.0 + np.linspace(-0.1, 1.1, 50)
    told = saved(tmp_path / "log.npz", a_t, b_t)
    log = samples_in(tmp_path / "log.npz", SYSTEM, mapping={"columns": COLUMNS, "clock": {"rate": 250}})
    np.testing.assert_allclose(log.t, 5.0 + np.arange(251) / 250, rtol=1e-14)
    np.testing.assert_allclose(log.q[:, 0], np.interp(log.t, a_t, told["a_q"]), atol=1e-10)
    ticks = np.arange(387179, 397852)
    np.savez(tmp_path / "log.npz", ms=ticks, q=np.zeros(len(ticks)), qd=np.zeros(len(ticks)), qdd=np.ones(len(ticks)))
    columns = [{"of": f"{kind}:joint1", "from": kind} for kind in ("q", "qd", "qdd")]
    told = {"columns": columns, "streams": {"": {"clock": "ms", "unit": "ms"}}, "clock": {"rate": 1000}}
    log = samples_in(tmp_path / "log.npz", SYSTEM, mapping=told)
    np.testing.assert_allclose(log.t, ticks / 1000, rtol=1e-14)
    np.testing.assert_array_equal(log.y, 1.0)


def test_what_is_in_a_gap_is_left_out_and_counted(tmp_path):
    a_t, b_t = np.linspace(0.0, 1.0, 101), np.concatenate([np.linspace(0.1, 0.4, 61), np.linspace(0.7, 1.2, 101)])
    saved(tmp_path / "log.npz", a_t, b_t)
    counts = LogCounts()
    log = samples_in(tmp_path / "log.npz", SYSTEM, mapping={"columns": COLUMNS}, counts=counts)
    assert not np.any((log.t > 0.41) & (log.t < 0.69))
    assert not np.any(log.t < 0.099)
    assert len(log) + sum(counts.left_out.values()) == 101
    assert counts.left_out == {"in a gap of a stream with readings": 39}
    assert (counts.streams["b"].gaps, counts.streams["a"].gaps) == (1, 0)
    assert counts.streams["b"].longest == pytest.approx(0.3)
    bridged = {"columns": COLUMNS, "streams": {"b": {"gap": 0.5}}}
    assert len(samples_in(tmp_path / "log.npz", SYSTEM, mapping=bridged)) == 91


def test_samples_that_repeat_or_go_back_are_counted_and_left_alone_and_no_times_refused(tmp_path):
    a_t, b_t = np.linspace(0.0, 1.0, 101), np.linspace(0.0, 1.0, 201)
    b_t[50], b_t[100] = b_t[49], b_t[90]
    told = saved(tmp_path / "log.npz", a_t, b_t)
    counts = LogCounts()
    log = samples_in(tmp_path / "log.npz", SYSTEM, mapping={"columns": COLUMNS}, counts=counts)
    assert (counts.streams["b"].repeated, counts.streams["b"].backwards) == (1, 1)
    on = np.ones(201, dtype=bool)
    on[[50, 100]] = False
    np.testing.assert_allclose(log.y[:, 0], np.interp(a_t, b_t[on], told["b_qdd"][on]), atol=1e-12)
    np.savez(tmp_path / "log.npz", a_q=np.zeros(5), a_qd=np.zeros(5), a_t=np.arange(5.0), b_qdd=np.zeros(7))
    with pytest.raises(nd.errors.MappingError, match="has no times, so it cannot be resampled with others"):
        samples_in(tmp_path / "log.npz", SYSTEM, mapping={"columns": COLUMNS})


def test_orientations_between_samples_are_unit_and_near_those_of_slerp(tmp_path):
    name = BODY.joint_names[0]
    rng = np.random.default_rng(4)
    b_t = np.linspace(0.0, 1.0, 41)
    turned = Rotation.from_rotvec(np.cumsum(0.1 * rng.normal(size=(41, 3)), axis=0))
    signs = rng.choice([-1.0, 1.0], size=(41, 1))  # q and -q are the same orientation
    posed = {"b_t": b_t, "b_q": np.hstack([np.zeros((41, 3)), turned.as_quat() * signs])}
    np.savez(tmp_path / "log.npz", a_t=np.linspace(0, 1, 333), a_v=np.zeros((333, 6)), a_a=np.zeros((333, 6)), **posed)
    columns = [
        {"of": f"q:{name}", "from": "b_q[{k}]"},
        {"of": f"qd:{name}", "from": "a_v[{k}]"},
        {"of": f"qdd:{name}", "from": "a_a[{k}]"},
    ]
    mapping = {"columns": columns, "clock": {"stream": "a"}}
    log = samples_in(tmp_path / "log.npz", nd.System(BODY, "inverse_dynamics"), mapping=mapping)
    np.testing.assert_allclose(np.linalg.norm(log.q[:, 3:], axis=1), 1.0, rtol=1e-12)
    expected = Slerp(b_t, turned)(log.t)
    assert (Rotation.from_quat(log.q[:, 3:]) * expected.inv()).magnitude().max() < 1e-3


def test_accelerations_are_made_in_chunks_as_in_one(tmp_path, monkeypatch):
    n = 500
    rng = np.random.default_rng(5)
    np.savez(tmp_path / "log.npz", t=0.01 * np.arange(n), q=rng.normal(size=n), qd=np.cumsum(rng.normal(size=n)))
    window = SavitzkyGolay(21)
    whole = samples_in(tmp_path / "log.npz", SYSTEM, window, mapping=OF_VELOCITIES)
    for module in (clock, reading):
        monkeypatch.setattr(module, "BLOCK", 64)
    monkeypatch.setattr("nori_dyn.logs.formats.arrays.BLOCK", 64)
    parts = samples_in(tmp_path / "log.npz", SYSTEM, window, mapping=OF_VELOCITIES)
    np.testing.assert_array_equal(parts.y, whole.y)
    np.testing.assert_array_equal(parts.numbers, np.arange(n))


def test_there_is_no_acceleration_across_a_jump_in_time(tmp_path):
    t = np.concatenate([0.01 * np.arange(100), 5.0 + 0.01 * np.arange(100)])
    np.savez(tmp_path / "log.npz", t=t, q=np.zeros(200), qd=np.concatenate([3.0 * t[:100], 7.0 * t[100:]]))
    counts = LogCounts()
    log = samples_in(tmp_path / "log.npz", SYSTEM, SavitzkyGolay(11), mapping=OF_VELOCITIES, counts=counts)
    np.testing.assert_allclose(log.y[:, 0], np.where(log.t < 2, 3.0, 7.0), rtol=1e-9)
    assert counts.left_out == {"without accelerations, where time begins or jumps": 10}
    assert counts.streams[""].gaps == 1


def test_accelerations_are_made_on_both_sides_of_velocities_that_are_no_numbers(tmp_path):
    t = 0.01 * np.arange(100)
    qd = np.where(np.isin(np.arange(100), [0, 1, 30, 36]), np.nan, 3.0 * t)
    np.savez(tmp_path / "log.npz", t=t, q=np.zeros(100), qd=qd)
    log = samples_in(tmp_path / "log.npz", SYSTEM, SavitzkyGolay(11), "drop", mapping=OF_VELOCITIES)
    np.testing.assert_allclose(log.y[:, 0], 3.0, rtol=1e-9)
    np.testing.assert_array_equal(log.numbers, [*range(2, 30), *range(37, 100)])


@pytest.mark.parametrize(
    ("settings", "better"),
    [({"stream": "a"}, ""), ({"stream": "b"}, "{stream: a}"), ({"stream": "a", "rate": 1000}, "{rate: 101}")],
)
def test_velocities_that_are_differentiated_between_samples_of_a_slower_stream_are_told(tmp_path, settings, better):
    saved(tmp_path / "log.npz", np.linspace(0.0, 1.0, 101), np.linspace(0.0, 1.0, 1001))
    columns = [COLUMNS[1], {"of": "q:joint1", "from": "b_qdd"}]  # velocities of 100 Hz beside positions of 1 kHz
    mapping = {"columns": columns, "clock": settings}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        samples_in(tmp_path / "log.npz", SYSTEM, SavitzkyGolay(5), mapping=mapping)
    said = [str(each.message) for each in caught]
    assert bool(said) == bool(better)
    assert all("'a' has 101 samples, of which 1,001 are made on the lines between" in each for each in said)
    assert all(f"`clock: {better}`" in each for each in said)
