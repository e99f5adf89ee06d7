"""Reading and writing files: whole or not at all, with errors that name the file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from nori_dyn.errors import FileFormatError


def read_text(path: str | Path) -> str:
    """Return the content of a text file.

    Raises:
        FileFormatError: it does not exist, cannot be read, or is not text.
    """
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise FileFormatError(f"{path}: is not a text file.") from None


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a file.

    Raises:
        FileFormatError: it does not exist or cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise FileFormatError(f"{path}: there is no such file.") from None
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path}: cannot be read: {reason(error)}.") from None


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file atomically: it appears whole, or not at all; into what is no file, such as a pipe, it is written.

    Raises:
        FileFormatError: the folder does not exist or cannot be written, or is full.
    """
    path = Path(path)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            path.write_bytes(content)
        else:
            _replace(path, content)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path}: cannot be written: {reason(error)}.") from None


def reason(error: Exception) -> str:
    """Return in a few words why a file cannot be read or written."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for it"
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def _replace(path: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".partial-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.chmod(name, usual_mode(0o666))
        os.replace(name, path)
    except BaseException:  # an interrupt as well
        Path(name).unlink(missing_ok=True)
        raise


def usual_mode(wanted: int) -> int:
    """Return the mode that a new file or folder gets where it is made with some mode, by the umask."""
    umask = os.umask(0)
    os.umask(umask)
    return wanted & ~umask


def check_writable(path: str | Path) -> None:
    """Check, before the work, that a file can be written.

    Raises:
        FileFormatError: its folder does not exist or cannot be written, or it is a folder itself.
    """
    path = Path(path)
    if path.is_dir():
        raise FileFormatError(f"{path}: is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise FileFormatError(f"{path}: its folder '{path.parent}' does not exist. Make it first, or name another.")
    if not os.access(path.parent, os.W_OK):
        raise FileFormatError(f"{path}: its folder '{path.parent}' is not writable.")
