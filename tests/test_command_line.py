"""The lines of docs/command_line.md that lead from a log to a picture run as they stand."""

from __future__ import annotations

import gzip
import re
import shlex
import sys
from pathlib import Path

import pytest

from nori_dyn.cli import main

ROOT = Path(__file__).parents[1]
LOG = ROOT / "tests" / "data" / "panda_motion" / "panda_motion.csv.gz"


def test_what_touches_my_tool(tmp_path, monkeypatch):
    section = (ROOT / "docs" / "command_line.md").read_text().partition("## What touches my tool?")[2]
    lines = re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)[0].splitlines()
    assert len(lines) == 3
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_bytes(gzip.decompress(LOG.read_bytes()))
    for line in lines:
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 0
    assert (tmp_path / "wrench.png").read_bytes().startswith(b"\x89PNG")
