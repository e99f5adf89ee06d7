"""What `--help` and wrong usage import (counted, not timed: each takes as long as what it imports), and how they look;
version, completion, interrupts.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer.main

import nori_dyn as nd
from nori_dyn.cli import app, observe, place
from nori_dyn.observe.conditioning import SWEPT
from nori_dyn.observe.poses import POSES
from nori_dyn.placement.selection import SECONDS

COMMANDS = tuple(typer.main.get_command(app).commands)
HEAVY = ("numpy", "scipy", "pydantic", "networkx", "matplotlib", "mujoco", "jinja2", "loky", "lxml", "cffi", "yaml")


def start(*arguments):
    """Return the exit status of `nori-dyn ARGUMENTS`, and which heavy modules it has imported."""
    code = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print('\\n', [m for m in {HEAVY} if m in sys.modules]))\n"
        f"sys.argv = ['nori-dyn', *{arguments}]\n"
        "from nori_dyn.cli import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()[-1].strip()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_imports_nothing_heavy(command):
    assert start(command, "--help") == (0, "[]")


def test_the_list_of_commands_imports_nothing_heavy():
    assert {"plan", "solve", "observe", "place", "info", "export", "demo", "bench", "schema"} <= {*COMMANDS}
    assert start("--help") == (0, "[]")
    assert start() == (2, "[]")
    assert start("no-such-command") == (2, "[]")


def test_what_help_says_is_so():
    assert tuple(POSES) == observe.POSES
    assert SWEPT == observe.SWEPT
    assert SECONDS == place.SECONDS


def test_the_version_and_the_package_as_a_command(run):
    assert run("--version") == (0, f"nori-dyn {nd.__version__}\n", "")
    called = subprocess.run([sys.executable, "-m", "nori_dyn", "--version"], capture_output=True, text=True, check=True)
    assert called.stdout == f"nori-dyn {nd.__version__}\n"


def test_shells_complete_it(run, monkeypatch):
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    status, output, _ = run("--show-completion")
    assert status == 0
    assert "complete -o default -F _nori_dyn_completion nori-dyn" in output


def test_help_folds_no_name_and_takes_nothing_for_markup(run, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    piped = run("solve", "--help")[1]
    assert "  --dt <float>             Time between samples [s], " in piped
    assert max(map(len, piped.splitlines())) > 120
    for width in (80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        for command in COMMANDS:
            lines = run(command, "--help")[1].splitlines()
            assert max(map(len, lines)) <= width
            assert not any(line.rstrip().endswith("-") for line in lines)  # a name, broken at its hyphen


@pytest.mark.parametrize("arguments", [("info", "panda"), ("plan", "panda", "--sensors", "x", "--out", "x.plan")])
def test_an_interrupt_is_one_line(run, monkeypatch, tmp_path, arguments):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nori_dyn.io.robots.load_robot", interrupted)
    assert run(*arguments) == (130, "", "interrupted; nothing was written\n")
    assert not list(tmp_path.iterdir())
