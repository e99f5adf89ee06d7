"""Processes that plan, compile, solve and export, and are killed or denied the disk at a counted point on the way.

`python -m tests.attack.victims` loads all once, then forks a child for each job that it reads, and tells what became of
it; see `Victims` for the other end.
"""

import contextlib
import errno
import io
import json
import os
import resource
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[2]

OURS = tuple(str(ROOT / "nori_dyn" / name) for name in ("io/", "program/c"))
THEIRS = ("tempfile.py", "shutil.py", "pathlib.py")
"""The code in which processes die: what writes files, ours and that of the standard library that it calls."""

WRITES = {"open", "os.mkdir", "os.rename", "os.chmod", "tempfile.mkstemp", "tempfile.mkdtemp"}
"""Audit events of what needs room, or leave to write; of `open` those for writing."""


@dataclass(frozen=True)
class Injury:
    """What happens to a process.

    Attributes:
        kind: "kill at line", "kill at byte" (of a file), "fail at write", "fail from write" on, "fail at byte"; ""
            leaves it alone.
        at: the number of the line, write or byte.
    """

    kind: str = ""
    at: int = 0


@dataclass(frozen=True)
class Outcome:
    """What became of a process.

    Attributes:
        killed: whether it was.
        code: its exit status; None when it was killed, or ended with an error that is not ours.
        text: what it printed, errors after all else.
        lines: how many lines of the watched code it ran.
        writes: how often it touched the disk.
    """

    killed: bool
    code: int | None
    text: str = ""
    lines: int = 0
    writes: int = 0


class Victims:
    """A process that starts others cheaply; to be closed."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.victims"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, commands: list[list[str]], cache: Path, *injuries: Injury) -> list[Outcome]:
        """Run commands of `nori-dyn` one after the other, in a process for each injury, all at once."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        job = {"commands": commands, "cache": str(cache), "injuries": [[i.kind, i.at] for i in injuries or (Injury(),)]}
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        return [Outcome(**outcome) for outcome in json.loads(self._server.stdout.readline())]

    def close(self) -> None:
        """End the process."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()


# --------------------------------------------------------------------- in the process that forks


def serve() -> None:
    """Run jobs until there are no more."""
    from nori_dyn.cli import main
    from nori_dyn.planning.identity import code_identity
    from nori_dyn.program import compiler

    compiler.find_compiler()
    code_identity()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        sys.argv = ["nori-dyn", "info", str(ROOT / "tests/attack/corpus/arm.urdf")]
        main()
    for line in sys.stdin:
        job = json.loads(line)
        os.environ["NORI_DYN_CACHE"] = job["cache"]
        started = [_start(job["commands"], Injury(*injury)) for injury in job["injuries"]]
        print(json.dumps([_awaited(*child) for child in started]), flush=True)


def _start(commands: list[list[str]], injury: Injury) -> tuple[int, int]:
    """Start a child; return its process id, and where it tells how it went."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    os.close(reader)
    told: dict[str, Any] = {"killed": False, "code": None, "text": ""}
    try:
        counts = _injure(injury)
        told["code"], told["text"] = _commands(commands)
        sys.settrace(None)
        told |= counts
    except BaseException as error:
        told["text"] = f"Traceback: {error!r}"
    finally:
        os.write(writer, json.dumps(told).encode())
        os._exit(0)


def _awaited(child: int, reader: int) -> dict[str, Any]:
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return dict(json.loads(text)) if text else {"killed": os.WIFSIGNALED(status), "code": None}


def _commands(commands: list[list[str]]) -> tuple[int, str]:
    from nori_dyn.cli import main

    printed, errors, code = io.StringIO(), io.StringIO(), 0
    for command in commands:
        sys.argv = ["nori-dyn", *command]
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors), warnings.catch_warnings():
            warnings.simplefilter("default")
            try:
                main()
            except SystemExit as stopped:
                code = code or int(stopped.code or 0)
    return code, printed.getvalue() + errors.getvalue()


def _injure(injury: Injury) -> dict[str, int]:
    """Prepare what is to happen to this process; return what counts the lines and writes up to then."""
    counts = {"lines": 0, "writes": 0}
    at = {injury.kind: injury.at}
    if injury.kind.endswith("byte"):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (injury.at, injury.at))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if injury.kind.startswith("kill") else signal.SIG_IGN)
    _count_writes(counts, injury)
    if injury.kind in ("", "kill at line"):  # which takes its time
        sys.settrace(_counting(counts, at.get("kill at line")))
    return counts


def _counting(counts: dict[str, int], last: int | None) -> Callable[..., Any]:
    def line(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            counts["lines"] += 1
            if counts["lines"] == last:
                os.kill(os.getpid(), signal.SIGKILL)
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        return line if name.startswith(OURS) or name.endswith(THEIRS) else None

    return call


def _count_writes(counts: dict[str, int], injury: Injury) -> None:
    """Count what touches the disk, and deny it where it is to be denied, as a full or a read-only disk does."""
    reasons = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.EMFILE)
    reason = reasons[injury.at % len(reasons)]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in WRITES or (event == "open" and not _for_writing(arguments)):
            return
        counts["writes"] += 1
        denied = {"fail at write": counts["writes"] == injury.at, "fail from write": counts["writes"] >= injury.at}
        if denied.get(injury.kind):
            raise OSError(reason, os.strerror(reason), str(arguments[0]))

    sys.addaudithook(hook)


def _for_writing(arguments: tuple[Any, ...]) -> bool:
    path, _, flags = arguments
    return isinstance(path, str) and bool(flags & (os.O_WRONLY | os.O_RDWR)) and not path.startswith("/dev")


if __name__ == "__main__":
    serve()
