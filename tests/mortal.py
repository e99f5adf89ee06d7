"""A runner that dies over a log: apart from `tasks`, as what it needs takes workers long to load."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from nori_dyn.api.log_run import LogRunner


@dataclass(frozen=True, eq=False)
class Mortal(LogRunner):
    """A runner that kills the process that it runs in over one log: once a part of it is written, or always at once."""

    folder: Path = Path()
    victim: str = ""
    always: bool = False
    owner: int = 0

    def solved(self, log, report, first=0, watched=None):
        dies = log.path.name == self.victim and os.getpid() != self.owner
        if dies and self.always:
            os.kill(os.getpid(), signal.SIGKILL)
        for chunk in LogRunner.solved(self, log, report, first, watched):
            yield chunk
            if dies and not [*self.folder.glob("died-*")]:
                while not [*self.folder.glob(f"**/{self.victim}.partial/journal.json")]:
                    time.sleep(0.01)
                (self.folder / f"died-{os.getpid()}").touch()
                os.kill(os.getpid(), signal.SIGKILL)
