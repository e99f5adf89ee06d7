"""Files of which a part was left behind, or that were half there, where the disk gave out in the middle."""

import builtins
import errno
import io
import os
import resource
import signal
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import FileFormatError
from nori_dyn.estimation.log_file import write_whole
from nori_dyn.logs.formats.writer import Field, FileSchema

ARM = nd.autotree(2)


@contextmanager
def a_full_disk(numbers, *names: str):
    """Let some calls of functions of `os` fail, by their numbers from 1; what is done is refused for that."""

    def failing(real):
        calls = count(1)

        def sometimes(*arguments, **more):
            if next(calls) in numbers:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*arguments, **more)

        return sometimes

    with pytest.MonkeyPatch.context() as patched:
        for name in names:
            patched.setattr(os, name, failing(getattr(os, name)))
        with pytest.raises(FileFormatError, match="cannot be written: No space left on device") as told:
            yield told


SCHEMA = FileSchema((Field("tau", (2,), ("tau:a", "tau:b"), ("N m", "N m")),), True, {})


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_export_is_there_whole_or_not_at_all(tmp_path):
    """Files were moved one by one: where one could not be, the others were there."""
    plan, folder = nd.plan(nd.System(ARM, "inverse_dynamics"), outputs=["tau"]), tmp_path / "c"
    with a_full_disk({1}, "rename"):
        plan.export(folder)
    assert not list(tmp_path.iterdir())
    plan.export(folder, monitor=False)
    before = contents(folder)
    other = nd.plan(nd.System(ARM, "forward_dynamics"), outputs=["qdd"])
    for number in (1, 4, 6, 10):
        with a_full_disk({number}, "replace"):
            other.export(folder)
        assert contents(folder) == before
    other.export(folder)
    assert contents(folder) != before
    assert {*contents(folder)} == {*before}


@pytest.mark.parametrize("number", [1, 2])
def test_a_table_and_what_is_known_of_it_are_of_one_run(number, tmp_path):
    """What is known of a new table stood beside the old one, where that could not be replaced."""

    def write(gain: float, unit: str) -> None:
        schema = FileSchema((Field("tau", (1,), ("tau:a",), (unit,)),), True, {})
        write_whole(tmp_path / "out.csv", schema, np.arange(9.0), {"tau": np.full((9, 1), gain)})

    write(1.0, "N m")
    before = contents(tmp_path)
    with a_full_disk({number}, "replace"):
        write(1e3, "mN m")
    assert contents(tmp_path) == before
    write(1e3, "mN m")
    assert {*contents(tmp_path)} == {*before}
    assert not {*contents(tmp_path).items()} & {*before.items()}


def test_a_corrected_model_that_cannot_be_written_leaves_nothing(tmp_path):
    """The draft that MuJoCo is asked of stayed there."""
    pytest.importorskip("mujoco")
    (tmp_path / "arm.xml").write_text(
        '<mujoco><worldbody><body><joint name="hinge"/><geom size="1"/></body></worldbody></mujoco>'
    )
    tree = nd.load_robot(tmp_path / "arm.xml")
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2, before[1]))
    try:
        with pytest.raises(FileFormatError, match=r"out\.xml: cannot be written: File too large"):
            nd.tools.save_robot(tree.replace(I=2 * tree.I), tmp_path / "arm.xml", tmp_path / "out.xml")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert {path.name for path in tmp_path.iterdir()} == {"arm.xml"}


def test_a_file_of_matlab_that_cannot_be_opened_says_why(tmp_path, monkeypatch):
    """SciPy says `Reader needs file name or open file-like object` whatever the reason."""
    real = builtins.open

    def denied_open(path, *arguments, **more):
        if str(path).endswith(".mat"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(path, *arguments, **more)

    monkeypatch.setattr(builtins, "open", denied_open)
    monkeypatch.setattr(io, "open", denied_open)
    with pytest.raises(FileFormatError, match="Read-only file system"):
        write_whole(tmp_path / "out.mat", SCHEMA, np.arange(9.0), {"tau": np.zeros((9, 2))})
