"""What the README shows runs as it stands."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import yaml

import nori_dyn as nd
from tests.robots import ROBOTS

README = (Path(__file__).parents[1] / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_lines_of_python_run(tmp_path, monkeypatch, capsys):
    (tmp_path / "panda.urdf").symlink_to(ROBOTS["panda"])
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("python")
    scope: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.NoriWarning)
        exec(code, scope)
    assert scope["estimate"].tau.shape == (7,)
    assert np.isfinite(scope["estimate"].tau).all()
    assert (tmp_path / "panda.plan").exists()
    assert capsys.readouterr().out


def test_the_sensor_config_is_valid():
    (text,) = blocks("yaml")
    assert len(nd.SensorSet.from_dict(yaml.safe_load(text)).measurements) == 4


@pytest.mark.parametrize("path", re.findall(r"\]\(([\w/.]+)\)", README))
def test_what_it_links_to_exists(path):
    assert (Path(__file__).parents[1] / path).exists()
