"""Files that take long to write: each appears whole, or not at all, whatever ends the process that writes it."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nori_dyn.errors import FileFormatError
from nori_dyn.io.files import put_files, reason

LONGEST = 64
"""Letters of a file's name in that of the folder of its draft, at most."""


@contextmanager
def drafted(out: Path) -> Iterator[Path]:
    """Yield the path of a draft of a file, alone in a folder of its own beside it, `.partial-NAME-*`.

    When the block ends, the draft and all that was written beside it are flushed to the disk and moved to where the
    file is to be; a pipe takes its content instead. Where the block raises, nothing has happened. Any number of
    processes may draft the same file: the last to end wins. The folder of a process that was killed is removed by the
    next one that drafts the same file; a live process holds a lock on its own.

    Args:
        out: the file, or the folder, that is to appear.

    Raises:
        FileFormatError: the disk is full, the folder cannot be written, or the like; also where the block raises
            OSError.
    """
    is_pipe = out.exists() and not (out.is_file() or out.is_dir())
    where = Path(tempfile.gettempdir()) if is_pipe else out.parent
    folder, lock = None, -1
    try:
        _remove_abandoned(where, out.name)
        folder, lock = _new_folder(where, out.name)
        yield folder / out.name
        if is_pipe:
            with (folder / out.name).open("rb") as draft, out.open("wb") as pipe:
                shutil.copyfileobj(draft, pipe)
        else:
            _publish(folder, out)
    except OSError as error:
        raise FileFormatError(f"{out}: cannot be written: {reason(error)}.") from None
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _prefix(name: str) -> str:
    return f".partial-{name[:LONGEST]}-"


def _new_folder(where: Path, name: str) -> tuple[Path, int]:
    """Return a new folder, and what holds the lock on it for as long as this process lives."""
    while True:
        folder = Path(tempfile.mkdtemp(dir=where, prefix=_prefix(name)))
        try:
            lock = _lock(folder)
        except FileNotFoundError:  # another process took it for abandoned before it was locked
            continue
        except OSError:
            folder.rmdir()
            raise
        if folder.exists():
            return folder, lock
        os.close(lock)


def _lock(folder: Path) -> int:
    """Return what holds the lock on a folder until it is closed; nothing does on a file system without locks."""
    lock = os.open(folder, os.O_RDONLY)
    with suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _remove_abandoned(where: Path, name: str) -> None:
    """Remove the folders of processes that were killed: those on which nobody holds a lock."""
    for left in where.glob(f"{glob.escape(_prefix(name))}*"):
        with suppress(OSError):
            lock = os.open(left, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)
            finally:
                os.close(lock)


def _publish(folder: Path, out: Path) -> None:
    """Move a draft, after what stands beside it, to its place; of two processes the files stay together."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    made = sorted(folder.iterdir(), key=lambda each: each.name == out.name)
    lock = _lock(out.parent)
    try:
        put_files(out.parent, {path.name: path for path in made})
    finally:
        os.close(lock)
