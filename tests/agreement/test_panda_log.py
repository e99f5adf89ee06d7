"""A real log of a real arm: measured torques against inverse dynamics, through the command line."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from nori_dyn.cli import main
from tests.robots import ROBOTS

LOG = Path(__file__).parents[2].parent / "shared/data/panda_log/beam_z_15cm_1khz.csv.gz"

pytestmark = pytest.mark.skipif(not LOG.exists(), reason="the Panda log is not beside this checkout")


def test_the_log_gives_the_errors_that_its_source_states(tmp_path, monkeypatch):
    """Figures of the log's README: they say that the pipeline works on real data; the rest is beam and friction."""
    plan, out = tmp_path / "panda.plan", tmp_path / "tau.npz"
    options = ["--sensors", "inverse_dynamics", "--lock", "panda_finger_joint1", "--lock", "panda_finger_joint2"]
    run(monkeypatch, "plan", ROBOTS["panda"], *options, "--outputs", "tau", "--out", plan)
    run(monkeypatch, "solve", "--plan", plan, "--input", LOG, "--out", out, "--differentiate", 51, "--dt", 0.001)
    with gzip.open(LOG, "rt") as file:
        names = [name.strip() for name in file.readline().split(",")]
        columns = [names.index(f"tau_J[{k}]") for k in range(7)]
        measured = np.loadtxt(file, delimiter=",", usecols=columns)
    with np.load(out) as archive:
        tau = archive["tau"]
    error = np.sqrt(np.mean((tau - measured) ** 2, axis=0))
    np.testing.assert_allclose(error, [0.46, 2.11, 0.38, 0.82, 0.99, 0.11, 0.22], atol=0.006)
    for joint, correlation in ((1, 0.97), (3, 0.97), (5, 0.85)):
        assert np.corrcoef(tau[:, joint], measured[:, joint])[0, 1] == pytest.approx(correlation, abs=0.006)


@pytest.mark.filterwarnings("ignore:robot 'panda'. its mimic joints")
def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["nori-dyn", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 0
