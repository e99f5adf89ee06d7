"""What there is of a file of estimates while it is made: finished parts, and a journal of them.

Beside `out.parquet` stands a folder `out.parquet.partial`: parts that are whole, each a file of the same format, and
`journal.json`, which tells what run they are of and where it goes on. After the last part they become one file, under
its final name, whole or not at all; a run that was killed goes on after the last part that the journal knows.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nori_dyn.errors import FileFormatError, NoriWarning
from nori_dyn.io.files import put_files, reason, write_bytes
from nori_dyn.logs.writer import Schema, Writer

VERSION = 1
"""Version of the journal."""

JOURNAL, LOCK = "journal.json", "lock"


@dataclass(slots=True)
class Partial:
    """The parts of a file that is being made.

    Attributes:
        out: the file.
        identity: what run it is: only parts of the same are gone on from.
        parts: the parts that are whole.
        next: the number of the sample in the log that comes next.
        state: what else is to be known to go on.
        lock: what keeps other runs from them, while this one has them.
    """

    out: Path
    identity: str
    parts: list[str] = field(default_factory=list)
    next: int = 0
    state: dict[str, Any] = field(default_factory=dict)
    lock: int | None = None

    @property
    def folder(self) -> Path:
        """Where the parts are."""
        return self.out.with_name(f"{self.out.name}.partial")

    @staticmethod
    def of(out: Path, identity: str, restart: bool = False) -> Partial:
        """Return the parts that there are of a run; those of another run are removed.

        Until `tidy` no other run can have them: one that wants to write the same file waits.

        Args:
            out: the file.
            identity: what run it is.
            restart: whether to begin anew in any case.

        Raises:
            FileFormatError: the folder cannot be read or written.
        """
        made = Partial(out, identity)
        try:
            made._hold()
            if restart or not made._take():
                for left in made.folder.iterdir():
                    if left.name != LOCK:
                        _remove(left)
        except OSError as error:
            if made.lock is None:
                with suppress(OSError):  # it may be that of another run
                    made.folder.rmdir()
            else:
                made.tidy()
            raise FileFormatError(f"{made.folder}: cannot be written: {reason(error)}.") from None
        return made

    def _hold(self) -> None:
        """Keep other runs from the folder, for as long as this process lives; one that is at it is waited for.

        Raises:
            OSError: the folder cannot be written.
        """
        path = self.folder / LOCK
        while self.lock is None:
            self.folder.mkdir(exist_ok=True)
            lock = os.open(path, os.O_CREAT | os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                warnings.warn(f"{self.out}: another run is writing it, and is waited for.", NoriWarning, stacklevel=2)
                fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists() and path.stat().st_ino == os.fstat(lock).st_ino:
                self.lock = lock
            else:  # the other one was done, and the folder went with it
                os.close(lock)

    def _take(self) -> bool:
        """Take what the journal knows, where it is of the same run and its parts are there; return whether it is."""
        try:
            told = json.loads((self.folder / JOURNAL).read_bytes())
        except (OSError, ValueError):
            return False
        if not isinstance(told, dict) or (told.get("version"), told.get("identity")) != (VERSION, self.identity):
            return False
        parts = [str(name) for name in told["parts"]]
        if not all((self.folder / Path(name).name).exists() for name in parts):
            return False
        self.parts, self.next, self.state = parts, int(told["next"]), dict(told["state"])
        return True

    def new_part(self) -> Path:
        """Return the file of the part that comes next; what a run that was killed left of it is removed.

        Raises:
            OSError: the folder cannot be written.
        """
        endings = "".join(self.out.suffixes[-2:] if self.out.suffixes[-1:] == [".gz"] else self.out.suffixes[-1:])
        path = self.folder / f"part-{len(self.parts):06d}{endings}"
        _remove(path)
        return path

    def keep(self, part: Path, following: int, state: dict[str, Any]) -> None:
        """Write down that a part is whole.

        Args:
            part: the part.
            following: the number of the sample in the log that comes after it.
            state: what else is to be known to go on.

        Raises:
            OSError: the disk is full, or the like.
        """
        if part.is_file():
            with part.open("rb") as file:
                os.fsync(file.fileno())
        parts = [*self.parts, part.name]
        told = {"version": VERSION, "identity": self.identity, "parts": parts, "next": following, "state": state}
        write_bytes(self.folder / JOURNAL, json.dumps(told).encode())
        self.parts, self.next, self.state = parts, following, state

    def tidy(self, goes_on: bool = True) -> None:
        """Let other runs have the parts; where none is whole, or nothing goes on from them, the folder goes.

        Args:
            goes_on: whether a later run goes on from them.
        """
        if not self.parts or not goes_on:
            shutil.rmtree(self.folder, ignore_errors=True)
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    def finish(self, writer: type[Writer], schema: Schema) -> None:
        """Make one file of all parts, under its final name, and remove them.

        Raises:
            OSError: the disk is full, or the like.
            FileFormatError: see `put_files`.
        """
        parts = [self.folder / name for name in self.parts]
        if len(parts) == 1:
            whole = parts[0]
        else:
            whole = self.new_part()
            writer.join(parts, whole, schema)
        if self.out.exists() and not (self.out.is_file() or self.out.is_dir()):
            with whole.open("rb") as file, self.out.open("wb") as pipe:
                shutil.copyfileobj(file, pipe)
        else:
            beside = writer.beside(self.out, schema)
            for name, content in beside.items():
                (self.folder / name).write_bytes(content)
            put_files(self.out.parent, {name: self.folder / name for name in beside} | {self.out.name: whole})
        shutil.rmtree(self.folder)


def _remove(path: Path) -> None:
    """Remove a part, a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def identity_of(*what: Any) -> str:
    """Return a name for what a run is of: anything that JSON can say."""
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:32]
