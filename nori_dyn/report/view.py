"""Pictures of a log: a page for the browser, or a recording for the Rerun viewer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from nori_dyn.errors import FileFormatError, InputError, NoriError, WrongKindError
from nori_dyn.estimation.log_estimate import LogEstimate, LogHistory
from nori_dyn.estimation.plan import Plan
from nori_dyn.estimation.system import System
from nori_dyn.io.extras import needed
from nori_dyn.io.files import check_writable, write_bytes
from nori_dyn.logs.fields import EXTRAS
from nori_dyn.logs.formats.writer import SIGMA
from nori_dyn.logs.log import Log
from nori_dyn.logs.mapping.record import ALWAYS
from nori_dyn.logs.reading import samples_of
from nori_dyn.logs.samples import contact_states
from nori_dyn.measurements.binding import OffsetReading
from nori_dyn.measurements.contacts import COLLISION
from nori_dyn.measurements.contacts import CONTACT as PROBABILITY
from nori_dyn.measurements.floating_base import floating_root
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.report.layout import rendered
from nori_dyn.report.log_page import log_page
from nori_dyn.report.recorded import CONTACT, DROPPED, FELL_BACK, SINGULAR, RecordedLog, StateSeries, chosen
from nori_dyn.report.recording import save_recording
from nori_dyn.report.shows.logs import notes_on_streams
from nori_dyn.solve.over_ticks import joined
from nori_dyn.system.inputs import unusable
from nori_dyn.typing import Booleans, Floats

PAGE, RECORDING = (".html", ".htm"), (".rrd",)


def view(
    found: LogEstimate,
    path: str | os.PathLike[str],
    names: Sequence[str] = (),
    robot: str | os.PathLike[str] | None = None,
    log: Log | None = None,
) -> tuple[str, ...]:
    """Write pictures of a log: what to look at before reading numbers.

    A page (.html) stands alone, and needs no library to be written or seen: a verdict in words, what happened when,
    residuals by sensor in sigma with suspects marked, estimates with bands of two standard deviations, readings as
    they were and as they should have been. A recording (.rrd, extra `rerun`) shows the robot as it moves, contact
    wrenches as arrows, and the same series.

    Args:
        found: what `nd.estimate` returns; with `monitor=True` its readings are judged.
        path: the file; its ending says which.
        names: estimates to draw, such as "tau", "fx:l_sole" or "fx:l_sole.mz"; all when empty.
        robot: of a recording, the URDF whose meshes are drawn; without it links are capsules from joint to joint.
        log: the log, to draw beside the estimated torques those that it holds though the plan does not read them.

    Returns:
        Notes on the picture, such as that meshes were not found.

    Raises:
        FileFormatError: the file ends otherwise, or cannot be written; the URDF cannot be read.
        MissingExtraError: a recording, and the extra `rerun` is not installed.
        UnknownOutputError: there are no estimates of such a name.
        WrongKindError: something else than estimates of a log.

    Example:
        >>> t = np.arange(100) * 1e-3
        >>> np.savez("log.npz", t=t, q=np.zeros((100, 2)), qd=np.zeros((100, 2)), qdd=np.zeros((100, 2)))
        >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
        >>> nd.view(nd.estimate("log.npz", plan), "log.html")
        ()
    """
    given: object = found
    if not isinstance(given, LogEstimate):
        example = 'nd.view(nd.estimate("log.mcap", plan, monitor=True), "log.html")'
        raise WrongKindError("nd.view", "what nd.estimate returns", given, example)
    path = Path(path)
    check_picture(path)
    drawn = recorded(found, log)
    chosen(drawn.estimates, names, drawn.name)  # refused before anything is drawn
    if path.suffix in RECORDING:
        return save_recording(drawn, path, names, None if robot is None else Path(robot))
    write_bytes(path, rendered(log_page(drawn, names)).encode())
    return ()


def check_picture(path: str | os.PathLike[str]) -> None:
    """Check, before the work, that a picture can be written.

    Raises:
        FileFormatError: its name ends otherwise, or its folder cannot be written.
        MissingExtraError: a recording, and the extra `rerun` is not installed.
    """
    if str(path).endswith(RECORDING):
        needed("a Rerun recording", "rerun", "rerun")
    elif not str(path).endswith(PAGE):
        raise FileFormatError(f"{path}: must end in .html, for a page, or .rrd, for a recording of the Rerun viewer.")
    check_writable(Path(path))


def recorded(found: LogEstimate, log: Log | None = None) -> RecordedLog:
    """A log as its pictures need it; see `view`."""
    samples, estimate = found.samples, found.estimate
    if not len(samples):
        raise InputError("there are no samples to draw.")
    systems = tuple(samples.record.systems.values())
    t, dt = samples.t, found.report.counts.dt
    if t is None and dt is not None:
        t = np.asarray(dt * samples.numbers, dtype=float)
    time = samples.numbers - samples.numbers[0] if t is None else t - t[0]
    unjudged = ""
    if isinstance(found, LogHistory):
        unjudged = "Estimates over time are judged as a whole, not sensor by sensor."
    elif found.diagnosis is None and len(systems) > 1:
        unjudged = "A monitor judges one contact state, and this plan has several: nothing is judged."
    elif found.diagnosis is None and not systems[0].is_weighted:
        unjudged = "All sensors are exact. Give a sigma to those that may be wrong, and have more than needed."
    elif found.diagnosis is None and systems[0].n_noise_weights:
        unjudged = "The equations of motion have a sigma; readings are judged where they hold exactly."
    elif found.diagnosis is None:
        unjudged = "No reading is to spare, or no monitor was requested."
    return RecordedLog(
        name=found.schema.metadata.get("nori_dyn.log", "log"),
        systems=systems,
        outputs=estimate.outputs,
        time=np.asarray(time, dtype=float),
        start=None if t is None else float(t[0]),
        q=_configurations(found),
        readings=dict(zip(samples.record.measurement_names, samples.y.T, strict=True)),
        values=estimate.values,
        held=_offset(found) | ({} if log is None else torques_beside(found, log)),
        flags=dict(_flags(found)),
        diagnosis=found.diagnosis,
        spread=found.deviations if isinstance(found, LogHistory) else {},
        states=_states(found),
        consistency=found.history.consistency if isinstance(found, LogHistory) else None,
        history=found.history if isinstance(found, LogHistory) else None,
        unjudged=unjudged,
        residual=found.report.largest_residual,
        doubts=found.report.doubts,
        notes=tuple(notes_on_streams(found.report)),
    )


def _configurations(found: LogEstimate) -> Floats:
    """The configurations (N, nq), with the pose of a base that is estimated."""
    q, base = found.samples.q, found.history.base if isinstance(found, LogHistory) else None
    if base is None:
        return q
    tree, q = found.samples.record.tree, q.copy()
    q[:, tree.q_slices[floating_root(tree)]] = base.q
    return q


def _states(found: LogEstimate) -> dict[str, StateSeries]:
    """What persists, where it is no output."""
    outputs = {output.name for output in found.estimate.outputs}
    states: dict[str, StateSeries] = {}
    for each in found.schema.fields if isinstance(found, LogHistory) else ():
        if each.name in {*outputs, *EXTRAS} or each.name.startswith((SIGMA, PROBABILITY, COLLISION, "touch.")):
            continue
        columns = found.written[each.name].reshape(len(found.samples), -1).T
        spread = found.written.get(f"{SIGMA}{each.name}")
        deviations = [None] * len(columns) if spread is None else spread.reshape(len(found.samples), -1).T
        states |= zip(each.labels, map(StateSeries, columns, deviations, each.units), strict=True)
    return states


def _offset(found: LogEstimate) -> dict[str, Floats]:
    """The readings (N,) of what is estimated apart from their offsets, by the names of both."""
    record, estimated = found.samples.record, {label for each in found.schema.fields for label in each.labels}
    rows = (row for row in next(iter(record.systems.values())).measurements if isinstance(row.equation, OffsetReading))
    names = [name for row in rows for name in row.component_names if name in estimated]
    return {name: found.samples.y[:, record.measurement_names.index(name)] for name in names}


def torques_beside(found: LogEstimate, log: Log) -> dict[str, Floats]:
    """The torques (N,) that a log holds and that no sensor of the plan reads, by their names.

    They are found by the log's mapping, or by their usual names, as those of a sensor would be.
    """
    samples, tree = found.samples, found.samples.record.tree
    moved = [name for name, joint in zip(tree.joint_names, tree.joints, strict=True) if joint.nv]
    if not moved:
        return {}
    reading = {"type": "joint_torque", "joints": "all", "sigma": 1.0}
    sensors = SensorSet.from_dict({"name": "torques", "measurements": [reading]})
    parts, numbered = [], set[str]()
    with suppress(NoriError), log.opened({ALWAYS: System(tree, sensors)}) as (source, binding):
        parts = list(samples_of(source, binding))
        numbered = {name for name, column in binding.columns.items() if column.rpartition(".")[2].startswith("y[")}
    if not parts:
        return {}
    whole = joined(parts)
    places = np.searchsorted(whole.numbers, samples.numbers).clip(0, len(whole) - 1)
    if not np.array_equal(whole.numbers[places], samples.numbers):
        return {}
    columns = zip(whole.record.measurement_names, whole.y[places].T, strict=True)
    there = {*samples.record.measurement_names, *numbered}  # y[0] is a reading of the plan
    return {name: x for name, x in columns if name not in there and np.isfinite(x).any()}


def _flags(found: LogEstimate) -> Iterator[tuple[str, Booleans]]:
    """Yield the flags of samples."""
    samples, systems = found.samples, found.samples.record.systems
    yield SINGULAR, np.asarray(found.estimate.singular)
    yield FELL_BACK, np.asarray(found.estimate.fell_back)
    if found.report.dropped:
        yield from _dropped(found).items()
    of = found.history.contacts if isinstance(found, LogHistory) else None
    if of is not None:
        for name, closed in zip(of.names, of.closed.T, strict=True):
            if name not in of.touched:
                yield f"{CONTACT}{name}", closed
    elif samples.contacts is not None and len(systems) > 1:
        for name, closed in zip(samples.record.contacts, samples.contacts.T, strict=True):
            yield f"{CONTACT}{name}", closed == 1


def _dropped(found: LogEstimate) -> Mapping[str, Booleans]:
    """In which samples each sensor was dropped that was at all."""
    samples, record = found.samples, found.samples.record
    lost = {f"{DROPPED}{name}": np.zeros(len(samples), dtype=bool) for name in found.report.dropped}
    states = (
        contact_states(samples)
        if samples.contacts is not None
        else {next(iter(record.systems)): np.arange(len(samples))}
    )
    for state, places in states.items():
        system = record.systems[state]
        flags = unusable(system, record.own_readings(state, samples.y[places]))
        for name, flag in zip(system.weight_names, flags.T, strict=True):
            if flag.any():
                lost[f"{DROPPED}{name}"][places] |= flag
    return lost


def can_be_judged(plans: Plan) -> bool:
    """Whether a monitor says something of readings: of sensors with sigmas, with some to spare.

    Not where the equations of motion have sigmas, and not where each reading to spare has an offset of its own.
    """
    system = plans.states.first.system
    if plans.contact_names or not system.is_weighted or system.n_noise_weights:
        return False
    offsets = sum(len(row.component_names) for row in system.rows if row.name.startswith("prior:offset:"))
    return system.shape[0] - system.shape[1] > offsets
