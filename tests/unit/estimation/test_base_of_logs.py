"""Logs of a robot whose base is state: encoders and an IMU are enough."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError
from nori_dyn.logs.log import whole_table
from tests.standing import robot
from tests.unit.filtering.test_base import DT, TILTS, plan, run_of

N = 60


@pytest.fixture(scope="module")
def run():
    """The plan of a box on two legs, and the times, q, qd and readings of it as it sways."""
    return plan(), run_of(N, TILTS[2], 11)[1]


def columns(one, run):
    """Columns of joints and readings by their names; what is always zero, and of the root, has none."""
    t, q, qd, y = run
    names = robot().joint_names[1:]
    found = {"t": t} | {f"q:{name}": q[:, 7 + k] for k, name in enumerate(names)}
    found |= {f"qd:{name}": qd[:, 6 + k] for k, name in enumerate(names)}
    return found | dict(zip(one.system.measurement_names, y.T, strict=True))


def test_a_log_without_the_root_tells_the_base(run, tmp_path):
    one, arrays = run
    expected = nd.Tracker(one, DT).over(*arrays)
    t, q, qd, y = arrays
    np.savez(tmp_path / "named.npz", **columns(one, arrays))
    np.savez(tmp_path / "joints.npz", t=t, q=q[:, 7:], qd=qd[:, 6:], y=y)
    np.savez(tmp_path / "all.npz", t=t, q=q, qd=qd, y=y)  # the root is nan there
    for name in ("named", "joints", "all"):
        found = nd.estimate(tmp_path / f"{name}.npz", one)
        assert found.report.doubts == ()
        np.testing.assert_allclose(found["fx"], expected["fx"], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.history.base.q, expected.base.q, rtol=1e-9, atol=1e-9)
    found = nd.smooth(tmp_path / "joints.npz", one)
    found.save(tmp_path / "out.csv")
    table, base = whole_table(tmp_path / "out.csv"), found.history.base
    for name, of in {"position.y": base.position[:, 1], "rotation.w": base.rotation[:, 3]}.items():
        np.testing.assert_allclose(table[f"base_{name}"], of, atol=1e-12)
    np.testing.assert_allclose(table["sigma:base_velocity.x"], base.deviations[:, 0])
    assert not any(name.startswith("base:") for name in table)
    np.savez(tmp_path / "few.npz", t=t, q=q[:, 9:], qd=qd[:, 6:], y=y)
    with pytest.raises(InputError, match="has no column 'q:r_pitch'"):
        nd.estimate(tmp_path / "few.npz", one)


def test_a_page_draws_the_base_and_judges_the_whole(run, tmp_path):
    one, (t, q, qd, y) = run
    for name, noise in {"sound": 0.0, "loud": 1.0}.items():
        louder = y + noise * np.random.default_rng(0).normal(size=y.shape)
        np.savez(tmp_path / f"{name}.npz", t=t, q=q[:, 7:], qd=qd[:, 6:], y=louder)
        nd.view(nd.smooth(tmp_path / f"{name}.npz", one), tmp_path / f"{name}.html")
    sound, loud = ((tmp_path / f"{name}.html").read_text() for name in ("sound", "loud"))
    assert "velocity of the base" in sound
    assert "rotation of the base" in sound
    assert "The readings fit better than their sigmas say" in sound  # what is as good as not known has no noise here
    assert "The readings do not fit their sigmas and the model" in loud
