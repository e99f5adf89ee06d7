"""What is said of samples in a Rerun recording: states that change, suspects, and the verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nori_dyn.model.kinematics import velocities
from nori_dyn.report.log_verdict import facts, verdict
from nori_dyn.report.recorded import RecordedLog
from nori_dyn.report.recording_robot import link_path
from nori_dyn.report.recording_stream import Recording
from nori_dyn.tables import spaced
from nori_dyn.typing import Booleans

FINE = "-"
"""The state of what is as it should be."""

SUSPECT = (200, 30, 30)
"""The colour of suspects."""


def write_states(into: Recording) -> None:
    """Write what is said of samples as states that change."""
    for label, flag in into.log.flags.items():
        if flag.any():
            _write_state(into, ("said", label), flag, "yes")


def _write_state(into: Recording, parts: Sequence[str], flag: Booleans, word: str) -> None:
    changes = np.flatnonzero(np.diff(flag, prepend=not flag[0]))
    for k in changes.tolist():
        into.at(k)
        into.stream.log(into.entity(*parts), into.rr.StateChange(state=word if flag[k] else FINE))
    into.stream.reset_time()


def write_suspects(into: Recording, extent: float) -> None:
    """Write who is a suspect when: as a state, as a line of text, and as a red ball where it is the clearest."""
    rr, log, tree = into.rr, into.log, into.log.system.tree
    for sensor, own in log.suspects.items():
        row = log.row(sensor)
        bodies = [] if row is None else [key.body for key in row.equation.blocks(_still(log)) if key.body is not None]
        ball = link_path(rr, tree.names[bodies[0]], "suspect", sensor) if bodies else None
        states: dict[int, str] = {0: FINE}
        for each in own:
            states[each.first] = "clearest" if each.is_first else "disturbed"
            states.setdefault(each.stop, FINE)
            if each.is_first:
                into.at(each.first)
                text = (
                    f"{sensor} does not fit the others: {each.fault.reading} is {each.strength:.1f} sigma off at most"
                )
                into.stream.log("suspects", rr.TextLog(text, level="WARN"))
        before = FINE
        for sample, state in sorted(states.items()):
            into.at(sample)
            into.stream.log(into.entity("said", "suspect", sensor), rr.StateChange(state=state))
            if ball is not None and (state == "clearest") != (before == "clearest"):
                balls = rr.Points3D([[0.0, 0.0, 0.0]], radii=[0.035 * extent], colors=[list(SUSPECT)], labels=[sensor])
                into.stream.log(ball, balls if state == "clearest" else rr.Clear(recursive=False))
            before = state
    into.stream.reset_time()


def _still(log: RecordedLog) -> Any:
    tree = log.system.tree
    return velocities(tree, log.q[0], np.zeros(tree.nv))


def write_words(into: Recording) -> None:
    """Write what is said of the log, as a text."""
    said = verdict(into.log)
    lines = [f"# {said.heading}", *said.sentences, *(f"- {doubt.message}" for doubt in into.log.doubts)]
    lines += [f"- {name}: {words}" for name, words in facts(into.log)]
    text = spaced("\n\n".join(line for line in lines if line))
    into.stream.log("verdict", into.rr.TextDocument(text, media_type="text/markdown"), static=True)
