"""What there is of a file of estimates while it is made: finished parts, and a journal of them.

Beside `out.parquet` stands a folder `out.parquet.partial`: parts that are whole, each a file of the same format, and
`journal.json`, which tells what run they are of and where it goes on. After the last part they become one file, under
its final name, whole or not at all; a run that was killed goes on after the last part that the journal knows.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nori_dyn.errors import FileFormatError
from nori_dyn.io.files import reason, write_bytes
from nori_dyn.logs.writer import Schema, Writer

VERSION = 1
"""Version of the journal."""

JOURNAL = "journal.json"


@dataclass(slots=True)
class Partial:
    """The parts of a file that is being made.

    Attributes:
        out: the file.
        identity: what run it is: only parts of the same are gone on from.
        parts: the parts that are whole.
        next: the number of the sample in the log that comes next.
        state: what else is to be known to go on.
    """

    out: Path
    identity: str
    parts: list[str] = field(default_factory=list)
    next: int = 0
    state: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where the parts are."""
        return self.out.with_name(f"{self.out.name}.partial")

    @staticmethod
    def of(out: Path, identity: str, restart: bool = False) -> Partial:
        """Return the parts that there are of a run; those of another run are removed.

        Args:
            out: the file.
            identity: what run it is.
            restart: whether to begin anew in any case.

        Raises:
            FileFormatError: the folder cannot be read or written.
        """
        made = Partial(out, identity)
        try:
            found = None if restart else made._found()
            if found is not None:
                return found
            if made.folder.is_dir():
                shutil.rmtree(made.folder)
        except OSError as error:
            raise FileFormatError(f"{made.folder}: cannot be read: {reason(error)}.") from None
        return made

    def _found(self) -> Partial | None:
        """Return what the journal knows, where it is of the same run and its parts are there."""
        try:
            told = json.loads((self.folder / JOURNAL).read_bytes())
        except (OSError, ValueError):
            return None
        if not isinstance(told, dict) or (told.get("version"), told.get("identity")) != (VERSION, self.identity):
            return None
        parts = [str(name) for name in told["parts"]]
        if not all((self.folder / Path(name).name).exists() for name in parts):
            return None
        return Partial(self.out, self.identity, parts, int(told["next"]), dict(told["state"]))

    def new_part(self) -> Path:
        """Return the file of the part that comes next; what a run that was killed left of it is removed.

        Raises:
            OSError: the folder cannot be written.
        """
        self.folder.mkdir(exist_ok=True)
        endings = "".join(self.out.suffixes[-2:] if self.out.suffixes[-1:] == [".gz"] else self.out.suffixes[-1:])
        path = self.folder / f"part-{len(self.parts):06d}{endings}"
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
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
        self.parts.append(part.name)
        self.next, self.state = following, state
        told = {"version": VERSION, "identity": self.identity, "parts": self.parts, "next": following, "state": state}
        write_bytes(self.folder / JOURNAL, json.dumps(told).encode())

    def tidy(self) -> None:
        """Remove the folder where no part in it is whole: there is nothing to go on from."""
        if not self.parts:
            shutil.rmtree(self.folder, ignore_errors=True)

    def finish(self, writer: type[Writer], schema: Schema) -> None:
        """Make one file of all parts, under its final name, and remove them.

        Raises:
            OSError: the disk is full, or the like.
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
            writer.beside(self.out, schema)
            if self.out.is_dir():
                shutil.rmtree(self.out)
            os.replace(whole, self.out)
        shutil.rmtree(self.folder)


def identity_of(*what: Any) -> str:
    """Return a name for what a run is of: anything that JSON can say."""
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:32]
