"""The picture of a plan: each nonzero is drawn, in the colour of its kind of unknown."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.report.pictures import COLOURS, OTHERS, draw_plan
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set

pytest.importorskip("matplotlib")
pytest.importorskip("networkx")
from matplotlib.colors import to_rgb
from matplotlib.image import imread


def share(picture, colour):
    """How much of a picture is of a colour."""
    return np.mean(np.abs(picture[..., :3] - to_rgb(colour)).max(axis=2) < 0.02)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_each_kind_has_its_colour_multipliers_of_weighted_rows_too(tmp_path, is_weighted):
    sigma = {"sigma": 0.1} if is_weighted else {}
    rows = [{**ACCELERATIONS, **sigma}, *([{**TORQUES, **sigma}] if is_weighted else ()), UNLOADED]
    draw_plan(nd.plan(nd.System(nd.autotree(2), sensor_set(*rows))), tmp_path / "plan.png")
    picture = imread(tmp_path / "plan.png")
    for kind in ("a", "f", "tau", "fx", "qdd"):
        assert share(picture, COLOURS[kind]) > 0, kind
    assert (share(picture, OTHERS) > share(picture, COLOURS["a"])) == is_weighted
