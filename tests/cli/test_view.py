"""nori-dyn estimate --view and info --plot: pages, recordings and pictures of a log; and what is refused at once."""

import gzip
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import yaml

import nori_dyn as nd
from benchmarks.urdf_writer import to_urdf
from nori_dyn.report.pictures import place_of_estimate
from tests.browser import parsed, text
from tests.recorded_logs import checked_plan, exact_plan, log_file
from tests.unit.logs.test_reading import FOOT

LOG = Path(__file__).parents[1] / "data" / "panda_motion" / "panda_motion.csv.gz"
FINGERS = ("--lock", "panda_finger_joint1", "--lock", "panda_finger_joint2")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checked_plan().save("checked.plan")
    exact_plan(("tau",)).save("exact.plan")
    return tmp_path


def test_a_page_and_a_recording_of_a_log(run, here):
    name = log_file()
    command, log = ("estimate", "--plan"), ("--input", name, "--backend", "numpy")
    status, output, errors = run(*command, "checked.plan", *log, "--view", "log.html")
    assert (status, output.splitlines()[-1]) == (0, "Drawn: log.html. Open it in a browser.")
    assert "gaps, the longest 2.01 s" in errors
    heading = text(parsed(Path("log.html").read_text()).find(".//h1"))
    assert heading.endswith("second:panda_joint2 does not fit the other sensors")
    pytest.importorskip("rerun", reason="needs the extra rerun")
    output = run(*command, "exact.plan", *log, "tau", "--view", "log.rrd", "--meshes", "panda")[1]
    assert output.endswith("Drawn: log.rrd. Look at it: rerun log.rrd\n")
    assert Path("log.rrd").stat().st_size > 10_000


def test_samples_of_no_use_are_shown_and_not_refused(run, here):
    """What solve refuses: to look at a log is how one finds out what is wrong with it."""
    with np.load(log_file("sound")) as archive:
        log = dict(archive)
    log["y"][5, 25] = np.nan
    np.savez("gaps.npz", **log)
    command = ("--plan", "checked.plan", "--input", "gaps.npz", "--backend", "numpy")
    assert run("solve", *command, "--out", "out.npz")[0] == 1
    assert run("estimate", *command, "--view", "gaps.html")[0] == 0
    assert "1 of 2,000" in text(parsed(Path("gaps.html").read_text()))
    assert run("estimate", *command, "--view", "gaps.html", "--missing", "refuse")[0] == 1


def test_contacts_that_come_and_go_are_strips(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("arm.urdf").write_text(to_urdf(nd.autotree(1)))
    Path("foot.yaml").write_text(yaml.safe_dump(FOOT.to_dict()))
    command = ("--sensors", "foot.yaml", "--contacts", "all", "--outputs", "tau", "--out", "foot.plan")
    assert run("plan", "arm.urdf", *command)[0] == 0
    names = nd.Plan.load("foot.plan").measurement_names
    columns = ["t", "q[0]", "qd[0]", *names, "contact:tip"]
    table = np.ones((100, len(columns)))
    table[:, 0], table[:, -1] = np.arange(100), np.arange(100) < 40
    np.savetxt("log.csv", table, delimiter=",", header=",".join(columns), comments="")
    assert run("estimate", "--plan", "foot.plan", "--input", "log.csv", "--view", "log.html")[0] == 0
    root = parsed(Path("log.html").read_text())
    assert "A monitor judges one contact state" in text(root.find(".//header"))
    assert "closed: tip40 of 100" in text(root)


def test_what_is_refused_before_the_work(run, refused, here):
    view = ("estimate", "--plan", "exact.plan")
    assert run(*view)[0] == 2
    assert run(*view, "--input", "log.npz")[0] == run(*view, "--view", "log.html")[0] == 2
    for more, said in (
        (("tau", "--out", "log.csv"), "NAME: needs --view"),
        (("--view", "log.html", "--chunk", 9), "--chunk: does not go with --view"),
    ):
        assert said in refused(*view, "--input", "log.npz", *more, status=2)
    log = ("--input", log_file("sound"))
    assert "must end in .html, for a page, or .rrd" in run(*view, *log, "--view", "log.pdf")[2]
    assert "its folder 'no' does not exist" in run(*view, *log, "--view", "no/log.html")[2]
    assert "unknown estimate 'tua'" in refused(*view, *log, "tua", "--view", "log.html", "--backend", "numpy")
    assert run(*view, *log, "--view", "log.rrd", "--meshes", "no_such_robot")[0] == 1
    assert not [*here.glob("log*")]


ROOT = Path(__file__).parents[2]


def test_three_commands_from_nothing_to_a_picture(run, told, tmp_path, monkeypatch):
    """Those of the document, on the real log of a free arm without a hand: its weight is left."""
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_bytes(gzip.decompress(LOG.read_bytes()))
    section = (ROOT / "docs" / "tutorials" / "arm_and_log.md").read_text().partition("## Without a line of code")[2]
    lines = re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)[0].replace("panda.urdf", "panda")
    plan, solve, plot = (shlex.split(line)[1:] for line in lines.splitlines()[:3])
    assert told(*plan).endswith("Next: nori-dyn estimate --plan touch.plan --input LOG.csv --out ESTIMATES.csv\n")
    output = told(*solve)
    assert output.endswith("Next: nori-dyn info wrench.csv --plot PICTURE.png\n")
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
        assert run("info", "e.csv", *names, "--plot", out) == (0, f"{n} estimates drawn: {out}.\n", "")
    assert "e.csv is a log: --robot ROBOT ties it to a robot" in run("info", "e.csv")[2]
    assert "unknown estimate 'tua' in e.csv. Did you mean 'tau'?" in run("info", "e.csv", "tua", "--plot", "e.png")[2]
    assert "must end in .png, .svg or .pdf" in run("info", "e.csv", "--plot", "e.jpg")[2]
    Path("none.csv").write_text("t,residual\n1,2\n")
    assert "holds no estimates" in run("info", "none.csv", "--plot", "none.png")[2]
    Path("many.csv").write_text(",".join(f"a:link{k}.ax" for k in range(20)) + "\n" + ",".join(["1"] * 20) + "\n")
    assert "need 20 panels, more than a picture holds (12)" in run("info", "many.csv", "--plot", "many.png")[2]
    assert not Path("many.png").exists()
    np.savez("e.npz", **{"fx:foot": np.ones((3, 6)), "tau": np.ones((3, 2))})
    assert run("info", "e.npz", "fx:foot[2]", "tau", "--plot", "e.png")[1] == "3 estimates drawn: e.png.\n"


def test_pictures_need_their_extra(run, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'nori_dyn[plot]'" in run("info", tmp_path / "e.csv", "--plot", "e.png")[2]


def test_what_panels_are_called():
    for column, panel, unit in (
        ("fx:l_sole.mz", "external wrench on l_sole: moment", "N m"),
        ("f:arm.v2.fx", "wrench through the joint of arm.v2: force", "N"),
        ("tau:l_knee", "joint torques tau", ""),
    ):
        assert place_of_estimate(column)[::2] == (panel, unit)
