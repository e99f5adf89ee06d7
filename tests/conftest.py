"""One thread for BLAS, so that results repeat; and one cache of plans and programs for the run."""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # read when NumPy is first imported
    os.environ.setdefault(variable, "1")

import importlib.abc  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

import pytest  # noqa: E402

PEERS = (
    *("pinocchio", "mujoco", "idyntree", "casadi", "sympy", "icub_models"),
    *("playwright", "nbclient", "nbformat", "mkdocs", "latex2mathml"),
)


class MissingPeer(importlib.abc.MetaPathFinder):
    """Comes after all who find modules: a test that needs a library that is not installed is skipped."""

    def find_spec(self, name, path=None, target=None):
        if name in PEERS:
            pytest.skip(f"{name} is not installed", allow_module_level=True)


sys.meta_path.append(MissingPeer())


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory) -> Path:
    """Return the cache folder of this run: what one test plans and compiles, the others find, in any worker."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"


@pytest.fixture(autouse=True)
def cache(shared_cache, monkeypatch) -> Path:
    """Return the cache folder that this test uses."""
    monkeypatch.setenv("NORI_DYN_CACHE", str(shared_cache))
    return shared_cache


@pytest.fixture
def own_cache(cache, tmp_path, monkeypatch) -> Path:
    """Return a cache folder of this test's own, which does not exist yet: for tests of what is cached, and when."""
    folder = tmp_path / "own-cache"
    monkeypatch.setenv("NORI_DYN_CACHE", str(folder))
    return folder


def pytest_addoption(parser):
    group = parser.getgroup("attack", "how long, and from which seed, tests/attack tries to break things")
    group.addoption("--attack-scale", type=float, default=1.0, help="how many times as many cases as by default")
    group.addoption("--attack-seed", type=int, default=0, help="seed of the cases")
