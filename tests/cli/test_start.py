"""What `--help` and wrong usage import; counted, not timed: each takes as long as what it imports."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer.main

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
