"""Plans as source code in a folder: all files of an export, or none."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from nori_dyn.errors import FileFormatError, UnknownNameError
from nori_dyn.export.files import CExport
from nori_dyn.export.text import MARK
from nori_dyn.io.files import put_files, reason, usual_mode
from nori_dyn.program.emit import FOLDER

LANGUAGES = ("c",)


def export(folder: str | Path, lang: str, make: Callable[[], CExport]) -> CExport:
    """Write source code that stands alone, and return the files written.

    Args:
        folder: where to; made when it does not exist. One that holds files of anything but an earlier export of the
            same name is refused.
        lang: the language: "c".
        make: makes it.

    Raises:
        UnknownNameError: there is no such language.
        FileFormatError: the folder cannot be written, or holds other files.
    """
    if lang not in LANGUAGES:
        raise UnknownNameError("language of export", lang, LANGUAGES)
    made = make()
    write_folder(folder, made.files, made.name)
    return made


def check_folder(folder: str | Path) -> None:
    """Check, before the work, that a folder can be made or written.

    Raises:
        FileFormatError: it cannot.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise FileFormatError(f"{folder}: is a file; name a folder.")
    existing = folder if folder.exists() else folder.parent
    if not existing.is_dir():
        raise FileFormatError(f"{folder}: its folder '{existing}' does not exist.")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise FileFormatError(f"{folder}: '{existing}' is not writable.")


def write_folder(folder: str | Path, files: Mapping[str, str], name: str = "") -> None:
    """Write the files of an export: all of them, or none, see `put_files`.

    Hidden files and folders inside are left alone. What an earlier export of the same name wrote and this one does not,
    such as a monitor, is removed.

    Args:
        folder: where to.
        files: the text of each file, by its name.
        name: the name of the code.

    Raises:
        FileFormatError: the folder cannot be written, or holds files that are not of an export of the same name.
    """
    folder = Path(folder)
    check_folder(folder)
    is_new = not folder.exists()
    stage = None
    try:
        stale = [] if is_new else _stale(folder, files, name)
        stage = Path(tempfile.mkdtemp(dir=folder.parent if is_new else folder, prefix=".export-"))
        for file, text in files.items():
            (stage / file).parent.mkdir(exist_ok=True)
            (stage / file).write_text(text, encoding="ascii", newline="\n")
        if is_new:
            os.chmod(stage, usual_mode(0o777))
            os.rename(stage, folder)
        else:
            put_files(folder, {file: stage / file for file in files}, stale)
    except OSError as error:
        raise FileFormatError(f"{folder}: cannot be written: {reason(error)}.") from None
    finally:
        if stage is not None:
            shutil.rmtree(stage, ignore_errors=True)


def _stale(folder: Path, files: Mapping[str, str], name: str) -> list[str]:
    """Files of an earlier export of the same name that this one does not write.

    Raises:
        FileFormatError: there are files that are of no such export.
    """
    parts = r"(_monitor|_states|_state_\w+|_parts|_rows|_outputs|_tick)\.[ch]"
    ours = re.compile(rf"{re.escape(name)}{parts}|{FOLDER}/\w+\.h")
    paths = [*folder.iterdir(), *((folder / FOLDER).iterdir() if (folder / FOLDER).is_dir() else ())]
    seen = sorted(path for path in paths if path.is_file() and not path.name.startswith("."))
    found = {path.relative_to(folder).as_posix(): path for path in seen}
    stale = [file for file in found if file not in files and ours.fullmatch(file)]
    others = [file for file, path in found.items() if file not in {*files, *stale} or MARK not in _beginning(path)]
    others += [file for file in files if (folder / file).is_dir()]
    if others:
        shown = ", ".join(others[:6]) + (", ..." if len(others) > 6 else "")
        raise FileFormatError(
            f"{folder}: holds files not of an earlier export of this name: {shown}. Name a new or an empty folder."
        )
    return stale


def _beginning(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(1000).decode("ascii", "replace")
