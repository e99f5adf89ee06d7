"""What the README shows runs as it stands."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import yaml

import nori_dyn as nd
from nori_dyn.program.compiler import find_compiler
from tests.exported import compile_c
from tests.robots import ROBOTS
from tests.tolerances import ROUNDING, SOLVED, assert_close

README = (Path(__file__).parents[1] / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_lines_of_python_run(tmp_path, monkeypatch, capsys):
    (tmp_path / "panda.urdf").symlink_to(ROBOTS["panda"])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "touch.yaml").write_text(blocks("yaml")[1])
    first, *others = blocks("python")
    scope: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.NoriWarning)
        exec(first, scope)
        given = scope["qdd"]
        assert scope["estimate"].tau.shape == (7,)
        for code in others:
            exec(code, scope)
    tau = scope["estimate"].tau
    assert_close(scope["qdd"], given, SOLVED)
    assert_close(scope["Gamma"] @ scope["qd"], scope["C"], ROUNDING)
    assert_close(scope["tau"], tau, SOLVED)
    assert_close(scope["taus"], np.stack([tau, tau]), SOLVED)
    assert_close(scope["by_qdd"], scope["H"], SOLVED)
    assert (tmp_path / "panda.plan").exists()
    assert capsys.readouterr().out


@pytest.mark.parametrize("text", blocks("yaml"))
def test_the_sensor_configs_are_valid(text):
    config = yaml.safe_load(text)
    config.pop("from_model", None)  # that needs the model
    assert nd.SensorSet.from_dict(config).measurements


@pytest.mark.skipif(find_compiler() is None, reason="there is no C compiler here")
def test_the_lines_of_c_compile(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.NoriWarning)
        tree = nd.load_urdf(ROBOTS["panda"])
    nd.plan(nd.System(tree, nd.sensors("inverse_dynamics")), cache=False).export(tmp_path / "panda_c")
    (code,) = blocks("c")
    source = tmp_path / "tick.c"
    source.write_text(f'#include "panda.h"\nvoid stop(void);\nvoid tick(void);\nvoid tick(void) {{\n{code}}}\n')
    compile_c("-I", tmp_path / "panda_c", "-c", "-o", tmp_path / "tick.o", source)


@pytest.mark.parametrize("path", re.findall(r"\]\(([\w/.]+)\)", README))
def test_what_it_links_to_exists(path):
    assert (Path(__file__).parents[1] / path).exists()
