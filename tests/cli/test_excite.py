"""nori-dyn excite: what it prints and writes, and what it refuses."""

import numpy as np

import nori_dyn as nd
from tests.robots import ROBOTS
from tests.words import plain

QUICK = ("--robot", ROBOTS["ur5"], "--duration", "4", "--harmonics", "3", "--starts", "1", "--parameters", "inertias")


def test_the_table_and_what_is_said_of_it(told, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    out = tmp_path / "motion.csv"
    limits = ("--speed", "1.5", "--position", "elbow_joint=-1:0.5", "--torque", "elbow_joint=60")
    output = told("excite", *QUICK, *limits, "--out", out, "--rate", "50")
    lines = output.splitlines()
    assert lines[0] == "Exciting motion of ur5"
    assert plain(output).endswith(f"201 samples written to {out}.")
    (elbow,) = [line for line in lines if line.startswith("elbow_joint")]
    assert "-1.00 to 0.50" in elbow
    assert elbow.endswith(" of 60")
    table = np.genfromtxt(out, delimiter=",", names=True, deletechars="")
    assert np.abs(table["qd:elbow_joint"]).max() <= 1.5
    assert len(nd.read_log(out).streams[0].columns) == 1 + 4 * 6


def test_json(figures):
    found = figures("excite", *QUICK, "--criterion", "A", "--periodic", "--joint", "elbow_joint")
    assert (found["criterion"], found["joints"], found["samples"]) == ("A", ["elbow_joint"], None)
    assert found["value"] >= found["best_of_random"]
    assert all(parameter["deviation"] > 0 for parameter in found["parameters"])


REFUSED = [
    (("--speed", "fast"), 2, "'fast' is no limit"),
    (("--speed", "1:2"), 2, "'1:2' is no limit"),
    (("--speed", "1", "--speed", "elbow_joint=2"), 2, "is for all joints, and others are given"),
    (("--speed", "elbow=2"), 1, "Did you mean 'elbow_joint'?"),
    (("--duration", "0"), 1, "duration is 0 s"),
    (("--torque", "0.1"), 1, "no posture in which robot 'ur5' can rest"),
    (("--sensors", "nothing"), 1, "unknown set of sensors"),
    (("--criterion", "E"), 2, "Invalid value"),
    (("--out", "none/motion.csv"), 1, "does not exist"),
    (("--out", "motion.xlsx"), 1, "must end in .csv"),
]


def test_what_cannot_be_done(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for options, status, message in REFUSED:
        found, _, errors = run("excite", *QUICK, *options)
        assert found == status, options
        assert message in plain(errors)
        assert not list(tmp_path.iterdir()), options
