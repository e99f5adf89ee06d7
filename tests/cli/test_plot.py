"""From a robot and a log to a picture of what touches the tool, without code; and what pictures are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nori_dyn.report.estimate_picture import Line

LOG = Path(__file__).parents[1] / "data" / "panda_motion" / "panda_motion.csv.gz"
FINGERS = ("--lock", "panda_finger_joint1", "--lock", "panda_finger_joint2")


def test_three_commands_from_nothing_to_a_picture(run, tmp_path, monkeypatch):
    """The real log of an arm that nothing touches, and that has no hand: what is left is the weight of the hand."""
    monkeypatch.chdir(tmp_path)
    plan = ("plan", "panda", *FINGERS, "--sensors", "touch", "--outputs", "fx:panda_hand", "--out", "touch.plan")
    status, output, _ = run(*plan)
    assert status == 0
    assert output.endswith("Next: nori-dyn solve --plan touch.plan --input LOG.csv --out ESTIMATES.csv\n")
    solve = ("solve", "--plan", "touch.plan", "--input", LOG, "--out", "wrench.csv", "--differentiate", 9)
    status, output, errors = run(*solve)
    assert (status, errors) == (0, "")
    assert output.endswith("Next: nori-dyn plot wrench.csv --out PICTURE.png\n")
    assert "The residual is not computed" in output
    status, output, _ = run("plot", "wrench.csv", "--out", "wrench.png")
    assert (status, output) == (0, "6 estimates drawn: wrench.png.\n")
    assert Path("wrench.png").read_bytes().startswith(b"\x89PNG")
    table = np.genfromtxt("wrench.csv", delimiter=",", names=True, deletechars="", replace_space=" ")
    assert table.dtype.names[:2] == ("t", "fx:panda_hand.mx")
    force = np.sqrt(sum(table[f"fx:panda_hand.{c}"] ** 2 for c in ("fx", "fy", "fz")))
    assert 2 < np.median(force) < 12


def test_names_choose_what_is_drawn(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("e.csv").write_text(
        "t,tau:a,tau:b,fx:foot.mx,fx:foot.fz,sigma:tau:a,fell_back\n0,1,2,3,4,0.1,0\n1,1,2,3,4,0.1,0\n"
    )
    for names, n in ((("tau",), 2), (("fx:foot.fz", "fx:foot.fz"), 1), (("fx",), 2), ((), 4)):
        for ending in ("png", "svg", "pdf"):
            out = f"e.{ending}"
            assert run("plot", "e.csv", *names, "--out", out) == (0, f"{n} estimates drawn: {out}.\n", "")
    assert run("plot", "e.csv")[1] == "4 estimates drawn: e.png.\n"
    Path("e.png").unlink()
    assert "unknown estimate 'tua' in e.csv. Did you mean 'tau'?" in run("plot", "e.csv", "tua")[2]
    assert "must end in .png, .svg or .pdf" in run("plot", "e.csv", "--out", "e.jpg")[2]
    Path("none.csv").write_text("t,residual\n1,2\n")
    assert "holds no estimates" in run("plot", "none.csv")[2]
    Path("many.csv").write_text(",".join(f"a:link{k}.ax" for k in range(20)) + "\n" + ",".join(["1"] * 20) + "\n")
    assert "need 20 panels, more than a picture holds (12)" in run("plot", "many.csv")[2]
    assert not Path("many.png").exists()


def test_an_npz_has_the_same_panels(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("e.npz", **{"fx:foot": np.ones((3, 6)), "tau": np.ones((3, 2))})
    assert run("plot", "e.npz", "fx:foot.mz", "tau")[1] == "3 estimates drawn: e.png.\n"


def test_pictures_need_their_extra(run, tmp_path, monkeypatch):
    monkeypatch.setattr("nori_dyn.report.estimate_picture.importlib.util.find_spec", lambda name: None)
    assert "pip install 'nori_dyn[plot]'" in run("plot", tmp_path / "e.csv")[2]


@pytest.mark.parametrize(
    ("column", "panel", "unit"),
    [
        ("fx:l_sole.mz", "external wrench on l_sole: moment", "N m"),
        ("f:arm.v2.fx", "wrench through the joint of arm.v2: force", "N"),
        ("tau:l_knee", "joint torques tau", ""),
    ],
)
def test_what_panels_are_called(column, panel, unit):
    line = Line.of(column)
    assert (line.panel, line.unit) == (panel, unit)
