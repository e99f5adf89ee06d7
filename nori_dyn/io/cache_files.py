"""The user's cache: entries appear whole or not at all, and other files at the name of one are ignored.

What a process that was killed left half-done has a name of its own, and is removed when the next entry is written.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

CACHE_VARIABLE = "NORI_DYN_CACHE"
"""Environment variable that names another cache folder."""

PARTIAL = ".partial-"
"""How the names of unfinished entries begin."""

ABANDONED = 3600.0
"""Age [s] from which on an unfinished entry is nobody's."""


def cache_root() -> Path:
    """The user's cache folder, or the one that NORI_DYN_CACHE names.

    On Linux that is XDG_CACHE_HOME, or else ~/.cache (XDG Base Directory Specification); on macOS ~/Library/Caches.
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not folder.is_absolute():  # such are to be ignored
        folder = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return folder / "nori_dyn"


def read_entry(entry: Path) -> bytes | None:
    """The content of an entry; None where there is none that can be read."""
    try:
        return entry.read_bytes() if entry.is_file() else None
    except OSError:
        return None


def write_entry(entry: Path, content: bytes) -> None:
    """Write an entry, whole or not at all.

    Raises:
        OSError: the folder cannot be written, or is full.
    """
    with partial_folder(entry.parent) as work:
        made = Path(work) / entry.name
        made.write_bytes(content)
        put_entry(made, entry)


def put_entry(made: Path, entry: Path) -> None:
    """Move a finished file to the name of an entry; a folder that is in its way is removed.

    Raises:
        OSError: the folder cannot be written.
    """
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    os.replace(made, entry)


def partial_folder(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder for unfinished entries, inside that of the finished ones; as a context it is removed at the end.

    Raises:
        OSError: the folder cannot be written, or is full.
    """
    for left in folder.glob(f"{PARTIAL}*"):
        with contextlib.suppress(OSError):  # another process may be removing it as well
            if time.time() - left.stat().st_mtime > ABANDONED:
                shutil.rmtree(left)
    return tempfile.TemporaryDirectory(dir=folder, prefix=PARTIAL, ignore_cleanup_errors=True)
