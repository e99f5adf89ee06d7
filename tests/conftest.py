"""Which tests run, one thread for BLAS so that results repeat, and the caches of plans and of compiled programs."""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # read when NumPy is first imported
    os.environ.setdefault(variable, "1")
os.environ.pop("COLUMNS", None)  # what is printed is as wide as in a pipe

import contextlib  # noqa: E402
import gc  # noqa: E402
import importlib.abc  # noqa: E402
import json  # noqa: E402
import shutil  # noqa: E402
import sys  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from pathlib import Path  # noqa: E402

import hypothesis  # noqa: E402
import pytest  # noqa: E402

import nori_dyn as nd  # noqa: E402
from nori_dyn.cli import main  # noqa: E402
from tests import compilers, covering  # noqa: E402
from tests.words import plain  # noqa: E402

OPTIONAL = ("icub_models", "playwright", "nbclient", "nbformat", "mkdocs", "latex2mathml", "torch", "jax")
OPTIONAL += ("pinocchio", "idyntree", "casadi", "cvxpy")

KEPT = ("native", "plans")
"""Folders of the cache that stay between runs: an entry is found by all that it depends on, the code of the planner
among it, so that none is ever out of date."""

LARGEST_CACHE = 2**30
"""Size [bytes] from which on they are removed, and made anew."""

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")


class MissingModule(importlib.abc.MetaPathFinder):
    """Comes after all who find modules: a test that needs a library that is not installed is skipped."""

    def find_spec(self, name, path=None, target=None):
        if name in OPTIONAL:
            pytest.skip(f"{name} is not installed", allow_module_level=True)


sys.meta_path.append(MissingModule())


def pytest_addoption(parser):
    group = parser.getgroup("nori_dyn", "how much is tested")
    group.addoption("--all", action="store_true", help="long tests too, and products instead of pairs that cover")
    group.addoption(
        "--attack-scale", type=float, default=1.0, help="how many times as many cases of attack as by default"
    )
    group.addoption("--attack-seed", type=int, default=0, help="seed of the attacks")


def pytest_configure(config):
    covering.ALL = config.getoption("--all")
    if hasattr(config, "cache") and not hasattr(config, "workerinput"):
        folders = [config.cache.mkdir(name) for name in KEPT]
        whole = [file for folder in folders for file in folder.glob("[!.]*")]  # others another run is writing
        if sum(file.stat().st_size for file in whole) > LARGEST_CACHE:
            for folder in folders:
                shutil.rmtree(folder)


def pytest_collection_finish():
    """Let the garbage collector pass over what stays until the end, and come less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def pytest_collection_modifyitems(config, items):
    if config.getoption("--all"):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.fixture(scope="session")
def kept_folders(request) -> dict[str, Path]:
    """The folders that stay between runs, by their names in the cache; none where pytest keeps nothing."""
    if not hasattr(request.config, "cache"):
        return {}
    folders = {name: request.config.cache.mkdir(name) for name in KEPT}
    for folder in folders.values():
        folder.chmod(0o700)
    return folders


@pytest.fixture(scope="session", autouse=True)
def shared_cache(tmp_path_factory, kept_folders) -> Iterator[Path]:
    """The cache folder of this run: what one test or fixture plans and compiles, the others find, in any worker."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    folder.mkdir(exist_ok=True)
    for name, stays in kept_folders.items():
        with contextlib.suppress(FileExistsError):  # by another worker
            (folder / name).symlink_to(stays)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("NORI_DYN_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def quickly_compiled() -> Iterator[None]:
    """Spare the compiler most of its effort: tests look at what code computes, not at how fast."""
    with compilers.compiled_with(compilers.AS_SHIPPED if covering.ALL else compilers.QUICK):
        yield


@pytest.fixture(scope="module")
def compiled_as_shipped() -> Iterator[None]:
    """Compile as for users, for tests of the code itself."""
    with compilers.compiled_with(compilers.AS_SHIPPED):
        yield


@pytest.fixture
def own_cache(tmp_path, monkeypatch) -> Path:
    """A cache folder of this test's own, which does not exist yet: for tests of what is cached, and when."""
    folder = tmp_path / "own-cache"
    monkeypatch.setenv("NORI_DYN_CACHE", str(folder))
    return folder


@pytest.fixture(params=compilers.WIDTHS, ids="{} lanes".format)
def lanes(request, monkeypatch) -> int:
    """The doubles of a vector for which this test compiles, whatever the processor has."""
    compilers.compile_for(request.param, monkeypatch)
    return request.param


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


@pytest.fixture
def told(run):
    """What a command prints that does its work and complains of nothing."""

    def call(*arguments):
        status, output, errors = run(*arguments)
        assert (status, errors) == (0, ""), arguments
        return output

    return call


@pytest.fixture
def refused(run):
    """Why a command is refused, which prints nothing else. Mistakes but those of usage are one line."""

    def call(*arguments, status=1):
        found, output, errors = run(*arguments)
        assert (found, output) == (status, ""), arguments
        assert status == 2 or errors.splitlines()[-1].startswith("error: "), errors
        return plain(errors)

    return call
