"""What `--help` and wrong usage import (counted, not timed: each takes as long as what it imports), and how they look;
version, completion, interrupts.
"""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer.main

import nori_dyn as nd
from nori_dyn.cli import app, identify, observe, options, place
from nori_dyn.cli.renamed import RENAMED, renamed
from nori_dyn.errors import ModelError
from nori_dyn.observe.conditioning import SWEPT
from nori_dyn.observe.poses import POSES
from nori_dyn.placement.selection import EFFORT
from tests.words import plain

COMMANDS = typer.main.get_command(app).commands
HEAVY = (
    "numpy",
    "scipy",
    "pydantic",
    "networkx",
    "matplotlib",
    "mujoco",
    "jinja2",
    "concurrent.futures",
    "lxml",
    "cffi",
    "yaml",
)


ONE_BY_ONE = """
import contextlib, io, sys
from nori_dyn.cli import main

for arguments in {each}:
    sys.argv = ["nori-dyn", *arguments]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main()
        except SystemExit as stopped:
            status = stopped.code
    print(*arguments, status, [m for m in {heavy} if m in sys.modules])
"""


def test_help_and_wrong_usage_import_nothing_heavy():
    """One after the other in a process of their own: the first that imports something is named."""
    assert {"plan", "estimate", "solve", "observe", "place", "info", "export", "demo", "bench", "schema"} <= {*COMMANDS}
    expected = {(*where, "--help"): 0 for where in ((), *((command,) for command in COMMANDS))}
    expected |= {(): 2, ("no-such-command",): 2}
    code = ONE_BY_ONE.format(each=list(expected), heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [" ".join([*what, str(status), "[]"]) for what, status in expected.items()]


def test_what_help_says_is_so():
    assert tuple(POSES) == options.POSES
    help = {name: {each.name: each.help for each in command.params} for name, command in COMMANDS.items()}
    assert all(", ".join(POSES) in help[name]["where"] for name in ("observe", "place"))
    assert f"{identify.WANTED} when left out; with --excite {identify.EXCITED}." in help["identify"]["parameters"]
    assert all(text for own in help.values() for name, text in own.items()), help
    assert SWEPT == observe.SWEPT
    assert EFFORT == place.EFFORT
    for asked, function in ((identify.WANTED, nd.identify), (identify.EXCITED, nd.exciting_motion)):
        assert asked == ",".join(inspect.signature(function).parameters["parameters"].default)


def test_the_version_and_the_package_as_a_command(run):
    assert run("--version") == (0, f"nori-dyn {nd.__version__}\n", "")
    called = subprocess.run([sys.executable, "-m", "nori_dyn", "--version"], capture_output=True, text=True, check=True)
    assert called.stdout == f"nori-dyn {nd.__version__}\n"


OLD_WORDS = {
    "map run.mcap --robot panda --out=panda.yaml": "info run.mcap --robot panda --draft=panda.yaml",
    "plot runs/e.csv.gz tau": "info runs/e.csv.gz tau --plot e.png",
    "plot e.csv tau --out e.svg": "info e.csv tau --plot e.svg",
    "view tau --plan a.plan --out l.rrd --robot a.urdf": "estimate tau --plan a.plan --view l.rrd --meshes a.urdf",
    "filter --plan a.plan": "estimate --plan a.plan",
    "smooth --plan a.plan": "estimate --plan a.plan --smooth",
    "identifiability a.urdf --still j1": "observe a.urdf --still j1 --parameters inertias",
    "identifiability a.urdf --parameters=gains": "observe a.urdf --parameters=gains",
    "excite --robot a.urdf --speed 1": "identify --robot a.urdf --speed 1 --excite",
}


def test_at_most_fourteen_commands_are_listed_and_old_words_still_work(told, run, capsys, tmp_path, monkeypatch):
    listed = told("--help").partition("Commands:")[2]
    assert [line.split()[0] for line in listed.strip().splitlines()] == [*COMMANDS]
    assert len(COMMANDS) <= 14
    assert {line.split()[0] for line in OLD_WORDS} == {*RENAMED}
    for old, new in OLD_WORDS.items():
        name, *arguments = old.split()
        assert renamed(name, arguments) == new.split()
        assert capsys.readouterr().err.count("is now") == 1
        assert new.split()[0] in COMMANDS
        assert name not in COMMANDS
    (tmp_path / "e.csv").write_text("t,tau:a\n0,1\n1,2\n")
    note = "note: 'nori-dyn plot' is now 'nori-dyn info ESTIMATES --plot PICTURE', and goes with the next release\n"
    monkeypatch.chdir(tmp_path)
    assert run("plot", "e.csv", "--out", "e.svg") == (0, "1 estimates drawn: e.svg.\n", note)


def test_shells_complete_it(told, monkeypatch):
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    assert "complete -o default -F _nori_dyn_completion nori-dyn" in told("--show-completion")


def test_help_has_an_example_folds_no_name_and_takes_nothing_for_markup(run, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    piped = run("solve", "--help")[1]
    assert re.search(r"\n  --dt <float> +Time between samples \[s\], ", piped)
    assert max(map(len, piped.splitlines())) > 120
    for width in (80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        for command in COMMANDS:
            lines = run(command, "--help")[1].splitlines()
            assert f"Example: nori-dyn {command}" in plain("\n".join(lines))
            assert max(map(len, lines)) <= width
            assert not any(line.rstrip().endswith("-") for line in lines)  # a name, broken at its hyphen


@pytest.mark.parametrize("arguments", [("info", "panda"), ("plan", "panda", "--sensors", "x", "--out", "x.plan")])
def test_an_interrupt_is_one_line(run, monkeypatch, tmp_path, arguments):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nd, "load_robot", interrupted)
    assert run(*arguments) == (130, "", "interrupted; nothing was written\n")
    assert not list(tmp_path.iterdir())


INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
ODD = f"""
<robot name="odd">
  <link name="base"/>
  <link name="upper">{INERTIAL}</link>
  <link name="tip"/>
  <joint name="j1" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/></joint>
  <joint name="j2" type="continuous"><parent link="upper"/><child link="tip"/><axis xyz="0 1 0"/></joint>
</robot>
"""
SOUND = ODD.replace('<link name="tip"/>', f'<link name="tip">{INERTIAL}</link>')
SOUND = SOUND.replace("<axis", '<limit lower="-1" upper="1"/><axis')


def test_joints_without_limits_and_links_without_inertia(told, figures, tmp_path):
    (tmp_path / "odd.urdf").write_text(ODD)
    (tmp_path / "sound.urdf").write_text(SOUND)
    notes = figures("info", tmp_path / "odd.urdf")["notes"]
    assert "revolute or prismatic, and without limits: j1" in notes
    assert any(
        note.startswith("without inertia: all that moves with j2. Forward dynamics are singular") for note in notes
    )
    assert "without inertia: all that moves with j2" in told("info", tmp_path / "odd.urdf")
    sound = told("info", tmp_path / "sound.urdf")
    assert "without" not in sound


def test_what_was_found_is_written_where_it_can_be(run, tmp_path, monkeypatch):
    (tmp_path / "sound.urdf").write_text(SOUND)
    tree, t = nd.load_robot(tmp_path / "sound.urdf"), 0.01 * np.arange(200)
    q, qd, qdd = (np.column_stack([f(t), f(2 * t)]) for f in (np.sin, np.cos, lambda x: -np.sin(x)))
    tau = nd.rnea(tree, q.T, qd.T, qdd.T).T
    np.savez(tmp_path / "log.npz", t=t, q=q, qd=qd, qdd=qdd, tau=tau)

    def refuse(*arguments):
        raise ModelError("the friction of 'j1' cannot be in a file: coulomb is -0.004.")

    monkeypatch.setattr(nd.tools, "save_components", refuse)
    files = {
        "--out": tmp_path / "found.urdf",
        "--html": tmp_path / "page.html",
        "--components-out": tmp_path / "c.yaml",
    }
    words = (
        "--robot",
        tmp_path / "sound.urdf",
        "--parameters",
        "friction",
        *(x for pair in files.items() for x in pair),
    )
    status, output, errors = run("identify", tmp_path / "log.npz", *words)
    assert status == 1
    assert "failed: the friction of 'j1' cannot be in a file" in errors
    assert "Page written to" in output
    assert "Robot written to" in output
    assert [path.exists() for path in files.values()] == [True, True, False]


@pytest.mark.parametrize("buffered", ["", "1"])
def test_standard_output_that_is_full_is_told_in_a_line(buffered):
    """A traceback, or an exit status of 120."""
    command = [sys.executable, "-m", "nori_dyn", "schema"]
    environment = {**os.environ, "PYTHONPATH": str(Path(nd.__file__).parents[1]), "PYTHONUNBUFFERED": buffered}
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment)
    words = "error: standard output cannot be written: No space left on device.\n"
    assert (done.returncode, done.stderr) == (1, words)


IN_PYTHON = (
    ("plan", nd.plan),
    ("solve", nd.estimate),
    ("estimate", nd.estimate),
    ("identify", nd.identify),
    ("observe", nd.identifiability),
    ("identify", nd.exciting_motion),
    ("place", nd.place),
)


def test_what_is_left_out_is_as_in_python_and_switches_are_off():
    given = {name: {each.name: each.default for each in command.params} for name, command in COMMANDS.items()}
    for name, function in IN_PYTHON:
        for each in inspect.signature(function).parameters.values():
            default = ",".join(each.default) if isinstance(each.default, tuple) else each.default
            here = given[name].get(each.name)
            if here is not None and isinstance(here, type(default)):
                assert here == default, (name, each.name)
    assert {option for each in given.values() for option, default in each.items() if default is True} == {
        "cache",
        "physical",
        "shapes",
    }
