"""How the tests of the command line call it."""

import json
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
            warnings.simplefilter("default", nd.errors.NoriWarning)
            with pytest.raises(SystemExit) as stopped:
                main()
        output, errors = capsys.readouterr()
        return stopped.value.code, output, errors

    return call


@pytest.fixture
def figures(run):
    """Run a command with `--json`; return what it prints."""

    def call(*arguments, status=0):
        found, output, errors = run(*arguments, "--json")
        assert found == status, errors
        return json.loads(output)

    return call
