"""Tasks for sweeps, in a module that workers load quickly."""

import importlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from nori_dyn.errors import SystemShapeError


def squares(part):
    """The squared lengths, and the process that computed them."""
    return (part**2).sum(axis=1), os.getpid()


@dataclass(frozen=True)
class Dies:
    """A task that kills the process that it runs in, the first few times; not its owner's."""

    folder: Path
    times: int
    owner: int

    def __call__(self, part):
        if os.getpid() != self.owner and len([*self.folder.iterdir()]) < self.times:
            (self.folder / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return squares(part)


class Lacking:
    """A task of a module that workers do not have."""

    def __reduce__(self):
        return importlib.import_module, ("only_here",)


def refuses(part):
    """Raise an error that has more than a message, but for the first chunk."""
    if part[0, 0] != 0:
        raise SystemShapeError("too many rows", 3, 2)
    return squares(part)


class Threads:
    """Squares, and in addition how many threads each library of linear algebra has; SciPy's comes with the task."""

    def __reduce__(self):
        return _threads, ()

    def __call__(self, part):
        from threadpoolctl import threadpool_info

        time.sleep(0.2)  # so that the other worker gets its share, which may start later
        threads = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
        return *squares(part), threads


def _threads():
    import scipy.linalg  # noqa: F401

    return Threads()
