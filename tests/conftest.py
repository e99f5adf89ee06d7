"""One thread for BLAS, so that results repeat; and a plan cache of its own for every test."""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # read when NumPy is first imported
    os.environ.setdefault(variable, "1")

import uuid  # noqa: E402

import pytest  # noqa: E402


@pytest.fixture(autouse=True)
def plan_cache(tmp_path_factory, monkeypatch):
    """Return the cache folder of this test; it does not exist yet."""
    folder = tmp_path_factory.getbasetemp() / f"cache-{uuid.uuid4().hex}"
    monkeypatch.setenv("NORI_DYN_CACHE", str(folder))
    return folder


def pytest_addoption(parser):
    group = parser.getgroup("attack", "how long, and from which seed, tests/attack tries to break things")
    group.addoption("--attack-scale", type=float, default=1.0, help="how many times as many cases as by default")
    group.addoption("--attack-seed", type=int, default=0, help="seed of the cases")
