"""From a robot and a log to a picture of what touches the tool, without code; and what pictures are refused."""

import gzip
import re
import shlex
from pathlib import Path

import numpy as np

from nori_dyn.report.estimate_picture import Line

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests" / "data" / "panda_motion" / "panda_motion.csv.gz"


def test_three_commands_from_nothing_to_a_picture(run, told, tmp_path, monkeypatch):
    """Those of the document, on the real log of a free arm without a hand: its weight is left."""
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_bytes(gzip.decompress(LOG.read_bytes()))
    section = (ROOT / "docs" / "command_line.md").read_text().partition("## What touches my tool?")[2]
    lines = re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)[0]
    assert " --differentiate 51 --dt 0.001" in lines  # for a log at a kilohertz, which this one is not
    lines = lines.replace(" --differentiate 51 --dt 0.001", " --differentiate 9")
    plan, solve, plot = (shlex.split(line)[1:] for line in lines.splitlines())
    assert told(*plan).endswith("Next: nori-dyn solve --plan touch.plan --input LOG.csv --out ESTIMATES.csv\n")
    output = told(*solve)
    assert output.endswith("Next: nori-dyn plot wrench.csv --out PICTURE.png\n")
    assert "The residual is not computed" in output
    status, output, _ = run(*plot)
    assert (status, output) == (0, "6 estimates drawn: wrench.png.\n")
    assert Path("wrench.png").read_bytes().startswith(b"\x89PNG")
    table = np.genfromtxt("wrench.csv", delimiter=",", names=True, deletechars="", replace_space=" ")
    assert table.dtype.names[:2] == ("t", "fx:panda_hand.mx")
    force = np.sqrt(sum(table[f"fx:panda_hand.{c}"] ** 2 for c in ("fx", "fy", "fz")))
    assert 2 < np.median(force) < 12


def test_names_choose_what_is_drawn(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = "t,tau:a,tau:b,fx:foot.mx,fx:foot.fz,sigma:tau:a,fell_back"
    Path("e.csv").write_text(f"{names}\n0,1,2,3,4,0.1,0\n1,1,2,3,4,0.1,0\n")
    for names, n, out in ((("tau",), 2, "e.svg"), (("fx:foot.fz",) * 2, 1, "e.pdf"), (("fx",), 2, "f.png")):
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
    np.savez("e.npz", **{"fx:foot": np.ones((3, 6)), "tau": np.ones((3, 2))})
    assert run("plot", "e.npz", "fx:foot.mz", "tau")[1] == "3 estimates drawn: e.png.\n"


def test_pictures_need_their_extra(run, tmp_path, monkeypatch):
    monkeypatch.setattr("nori_dyn.report.estimate_picture.importlib.util.find_spec", lambda name: None)
    assert "pip install 'nori_dyn[plot]'" in run("plot", tmp_path / "e.csv")[2]


def test_what_panels_are_called():
    for column, panel, unit in (
        ("fx:l_sole.mz", "external wrench on l_sole: moment", "N m"),
        ("f:arm.v2.fx", "wrench through the joint of arm.v2: force", "N"),
        ("tau:l_knee", "joint torques tau", ""),
    ):
        line = Line.of(column)
        assert (line.panel, line.unit) == (panel, unit)
