"""Plan files and cached plans that once ended in a traceback."""

from __future__ import annotations

import json

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.api.plan import cache_folder
from nori_dyn.io.plan_files import FORMAT, sealed

pytestmark = pytest.mark.usefixtures("own_cache")

DEEP = '{"tree":' + "[" * 100_000


def planned() -> nd.Plan:
    return nd.plan(nd.System(nd.autotree(2), nd.sensors("inverse_dynamics")))


@pytest.fixture
def content(tmp_path):
    planned().save(tmp_path / "plan")
    return json.loads((tmp_path / "plan").read_text())


def save(path, content):
    """Write a plan file of some content, with a checksum that fits it."""
    own = ("format", "version", "checksum")
    path.write_text(sealed(FORMAT, {key: value for key, value in content.items() if key not in own}))


def test_a_deeply_nested_plan_file_is_refused(tmp_path):
    path = tmp_path / "deep.plan"
    path.write_text(DEEP)
    with pytest.raises(nd.errors.PlanError, match=r"deep\.plan: .*nested too deeply"):
        nd.Plan.load(path)


@pytest.mark.parametrize("damage", [DEEP.encode(), b"\xff\xfe\x00", b'{"a": ' + b"9" * 10_000 + b"}"])
def test_a_damaged_cache_entry_is_made_anew(damage):
    expected = planned()
    (entry,) = cache_folder().iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(damage)
    np.testing.assert_array_equal(planned().row_permutation, expected.row_permutation)
    assert entry.read_bytes() == whole


def test_a_folder_at_the_name_of_a_cache_entry_is_replaced(recwarn):
    planned()
    (entry,) = cache_folder().iterdir()
    whole = entry.read_bytes()
    entry.unlink()
    entry.mkdir()
    (entry / "file").write_text("")
    planned()
    assert entry.read_bytes() == whole
    assert not recwarn.list


@pytest.mark.parametrize("seed", [-1, -(10**30)])
def test_a_seed_below_zero_is_refused(tmp_path, content, seed):
    save(tmp_path / "changed.plan", {**content, "seed": seed})
    with pytest.raises(nd.errors.PlanError, match="its entry 'seed' is wrong"):
        nd.Plan.load(tmp_path / "changed.plan")
    with pytest.raises(nd.errors.PlanError, match=f"the seed is {seed}"):
        nd.plan(nd.System(nd.autotree(2), nd.sensors("inverse_dynamics")), seed=seed)
