"""Samples of a log, as a solver takes them."""

from collections.abc import Mapping, Sequence
from os import PathLike

import nori_dyn as nd
from nori_dyn.logs.motion.differentiation import Differentiator
from nori_dyn.logs.reading import LogCounts, SampleReader
from nori_dyn.logs.samples import Samples
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.solve.over_ticks import joined
from nori_dyn.system.inputs import Missing


def samples_in(
    path: str | PathLike[str],
    system: nd.System | Mapping[ContactState, nd.System],
    differentiation: Differentiator | None = None,
    missing: Missing = "refuse",
    contacts: Sequence[str] = (),
    closed: ContactState | None = None,
    mapping: object = None,
    counts: LogCounts | None = None,
) -> Samples:
    """All samples of a log that can be estimated."""
    systems = {(): system} if isinstance(system, nd.System) else system
    reading = SampleReader(systems, contacts, closed, differentiation, missing)
    log = nd.read_log(path, mapping)
    return joined([*reading.chunks(log, counts or LogCounts())])
