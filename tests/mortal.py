"""A runner that dies over a log: apart from `tasks`, as what it needs takes workers long to load."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from nori_dyn.estimation.log_run import LogRunner


@dataclass(frozen=True, eq=False)
class Mortal(LogRunner):
    """A runner that kills the process that it runs in over one log, once, after its first part."""

    folder: Path = Path()
    victim: str = ""
    owner: int = 0

    def parts(self, log, *others, **more):
        dies = log.path.name == self.victim and os.getpid() != self.owner
        for part in LogRunner.parts(self, log, *others, **more):
            yield part
            if dies and not [*self.folder.glob("died-*")]:
                (self.folder / f"died-{os.getpid()}").touch()
                os.kill(os.getpid(), signal.SIGKILL)
