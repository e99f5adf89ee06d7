"""How the tests of the command line call it."""

from __future__ import annotations

import sys
import warnings

import pytest

import nori_dyn as nd
from nori_dyn.cli import main


@pytest.fixture
def run(monkeypatch, capsys):
    """Run `nori-dyn ARGUMENTS`; return its exit status, output and errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["nori-dyn", *map(str, arguments)])
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
        with warnings.catch_warnings():
            warnings.simplefilter("default", nd.NoriWarning)
            with pytest.raises(SystemExit) as stopped:
                main()
        output, errors = capsys.readouterr()
        return stopped.value.code, output, errors

    return call
