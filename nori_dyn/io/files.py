"""Files read and written whole or not at all, with errors that name the file."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from nori_dyn.errors import FileFormatError, WrongKindError

BEFORE = ".before-"
"""How the name of a folder begins that holds old files while new ones take their place."""


def file_name(path: object) -> str:
    """The name of a file that a user gives.

    Raises:
        WrongKindError: neither text nor a path.
    """
    if isinstance(path, str | os.PathLike):
        return os.fspath(path)
    raise WrongKindError("reading a file", "its path", path, "write 'run.csv', and of several one after the other")


def read_text(path: str | Path) -> str:
    """Read a text file.

    Raises:
        FileFormatError: it does not exist, cannot be read, or is not text.
    """
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise FileFormatError(f"{path}: is not a text file.") from None


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a file.

    Raises:
        FileFormatError: it does not exist or cannot be read.
    """
    try:
        return Path(file_name(path)).read_bytes()
    except FileNotFoundError:
        raise FileFormatError(f"{path}: there is no such file.") from None
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path}: cannot be read: {reason(error)}.") from None


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file atomically: it appears whole, or not at all; into what is no file, such as a pipe, it is written.

    Raises:
        FileFormatError: the folder does not exist or cannot be written, or is full.
    """
    try:
        with drafted(Path(path)) as draft:
            draft.write_bytes(content)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path}: cannot be written: {reason(error)}.") from None


def reason(error: Exception) -> str:
    """Reason, in a few words, why a file cannot be read or written."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def put_files(folder: Path, files: Mapping[str, Path], stale: Sequence[str] = ()) -> None:
    """Put finished files in a folder, in the place of those there: all of them, or none.

    A name never stands for a part of a file. All old files but the last are copied beforehand into a folder `.before-*`
    beside them, from which they are put back where a new one cannot be put. It stays where they cannot be put back, and
    where the process is killed before the last is put.

    Args:
        folder: where to.
        files: where each is, on the same disk, by its name in the folder; one at least.
        stale: names of old files that are removed.

    Raises:
        OSError: one cannot be put, and all is as it was.
        FileFormatError: one cannot be put, nor can old ones be put back.
    """
    *first, (last, made) = files.items()
    old = [name for name in (*stale, *dict(first)) if (folder / name).exists()]
    spare = Path(tempfile.mkdtemp(dir=folder, prefix=BEFORE)) if old else None
    copies = {name: spare / name for name in old} if spare else {}
    is_whole = False
    try:
        for name, copy in copies.items():
            copy.parent.mkdir(exist_ok=True)
            shutil.copy2(folder / name, copy)
        for name in files:
            (folder / name).parent.mkdir(exist_ok=True)
        for name in stale:
            (folder / name).unlink()
        for name, path in first:
            os.replace(path, folder / name)
        os.replace(made, folder / last)
        is_whole = True
    except BaseException as error:  # an interrupt as well
        changed = [name for name in stale if not (folder / name).exists()]
        changed += [name for name, path in first if not path.exists()]
        is_whole = not made.exists() or _is_put_back(folder, changed, copies)
        for parent in {(folder / name).parent for name in files} - {folder}:
            with suppress(OSError):
                parent.rmdir()  # where it is empty
        if is_whole or not isinstance(error, OSError):
            raise
        why = f"{reason(error)}, and the previous files cannot be restored: they are in '{spare}'"
        raise FileFormatError(f"{folder}: cannot be written: {why}.") from None
    finally:
        if spare and is_whole:
            shutil.rmtree(spare, ignore_errors=True)


def _is_put_back(folder: Path, changed: Sequence[str], copies: Mapping[str, Path]) -> bool:
    """Put old files back, and remove new ones in the place of none; return whether that was possible."""
    is_back = True
    for name in changed:
        try:
            if name in copies:
                os.replace(copies[name], folder / name)
            else:
                (folder / name).unlink()
        except OSError:
            is_back = False
    return is_back


def usual_mode(wanted: int) -> int:
    """Mode of a new file or folder under the umask."""
    umask = os.umask(0)
    os.umask(umask)
    return wanted & ~umask


def check_writable(*files: str | Path | None) -> None:
    """Check, before the work, that files can be written; those that are None are not asked for.

    Raises:
        FileFormatError: the folder of one does not exist or cannot be written, or it is a folder itself.
    """
    for path in (Path(file) for file in files if file is not None):
        if path.is_dir():
            raise FileFormatError(f"{path}: is a folder; name a file in it.")
        if not path.parent.is_dir():
            raise FileFormatError(f"{path}: its folder '{path.parent}' does not exist. Make it first, or name another.")
        if not os.access(path.parent, os.W_OK):
            raise FileFormatError(f"{path}: its folder '{path.parent}' is not writable.")


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
    """Make a folder, and a descriptor that locks it while this process lives."""
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
    """Open a descriptor that locks a folder until it is closed; file systems without locks do not lock."""
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
