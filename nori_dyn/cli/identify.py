"""nori-dyn identify: a robot's parameters from its logs, and the motion to record for that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import nori_dyn as nd
from nori_dyn.cli.common import (
    ask,
    how_differentiated,
    named,
    named_contacts,
    next_command,
    refuse_given,
    show_found,
    told_and_asked,
)
from nori_dyn.cli.estimator import EstimatorOptions
from nori_dyn.cli.exciting import EXCITED, MotionOptions
from nori_dyn.cli.loaded_robot import LoadedRobot, lacks_position
from nori_dyn.cli.options import Differentiated, Json, Missing, Model, RobotOptions, option_names
from nori_dyn.errors import InputError, NoriError
from nori_dyn.io.files import check_writable
from nori_dyn.tables import unbroken

if TYPE_CHECKING:
    from nori_dyn.estimation.preset_logs import PresetLog, TiedLog
    from nori_dyn.filtering.history import History
    from nori_dyn.identification.findings import Identification
    from nori_dyn.logs.log import Log

WANTED = "inertias,friction,rotors,offsets"
"""Parameters that are identified unless others are named."""

AS_THEY_ARE = ("load_on", "physical", "robust", "moving", "cutoff", "missing", "backend")
"""The options that `nd.identify` takes as they are."""


@dataclass(frozen=True)
class FitOptions:
    """How parameters are identified from logs, and the files that are written.

    Attributes:
        mapping: A YAML file that ties the logs' columns to the robot, as in `estimate`. Without it they go by their
            usual names, or by a draft, of which what is doubtful is asked.
        yes: Take drafts as they are, whatever is doubtful about them.
        recognise: A plan, of sensors with memory and the same contacts, that recognises them.
        held_out: On what the fit is judged: a share at the end of each log, or other logs, a pattern in quotes. 0 for
            nothing.
        loaded: A log in which the robot carries a load; repeatable.
        load_on: The link that carries the load.
        known: A parameter that is known, such as m:load=2.5; repeatable.
        physical: Inertias that bodies can have, or those of least squares alone.
        robust: Readings that are far off count less (Huber); reads the logs five times.
        moving: Torques count only while their joint moves faster than that [rad/s or m/s], such as 0.02: at rest,
            friction is whatever it takes to stand still.
        cutoff: A low-pass without delay, over readings and motion alike: 5 Hz suits arms.
        dt: Time between samples [s], where the logs have no times.
        missing: Samples with what is no number: refuse the log, or drop them.
        components_out: Write friction, rotors and springs as a YAML file for --components.
        stiction: With --components-out, write with friction what it leaves open, at rest and in motion, for sensors
            with `memory`.
        mapping_out: Write the mapping of the logs with the offsets and gains that were found: a YAML file for
            --mapping.
        payload_out: Write the load, or what a link is beyond its model, as vendors take it: .json for Franka's Desk,
            .script for Universal Robots, .yaml for ros2_control.
        payload_frame: With --payload-out: the flange, such as tool0, in whose coordinates it is.
        html: Write what was found as a web page, with curves.
        backend: As in `estimate`.
    """

    mapping: Path | None = None
    yes: Annotated[bool, typer.Option("--yes")] = False
    recognise: Annotated[Path | None, typer.Option(metavar="PLAN")] = None
    held_out: Annotated[str, typer.Option(metavar="SHARE|PATTERN")] = "0.33"
    loaded: Annotated[list[Path] | None, typer.Option(metavar="LOG")] = None
    load_on: Annotated[str | None, typer.Option(metavar="LINK")] = None
    known: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE")] = None
    physical: bool = True
    robust: bool = False
    moving: Annotated[float | None, typer.Option(metavar="SPEED")] = None
    cutoff: Annotated[float | None, typer.Option(metavar="HZ")] = None
    differentiate: Differentiated = None
    dt: float | None = None
    missing: Missing = "refuse"
    components_out: Path | None = None
    stiction: bool = False
    mapping_out: Path | None = None
    payload_out: Path | None = None
    payload_frame: Annotated[str | None, typer.Option(metavar="FRAME")] = None
    html: Path | None = None
    backend: str = "auto"

    def check(self, of: LoadedRobot, out: Path | None) -> None:
        """Check, before the work, that the files can be written.

        Raises:
            NoriError: one cannot.
            BadParameter: a payload is to be written, and its frame is not given.
        """
        from nori_dyn.descriptions.identified import check_robot
        from nori_dyn.descriptions.payloads import check_payload

        check_writable(self.components_out, self.mapping_out, self.html)
        if out is not None:
            check_robot(of.source, out)
        if (self.payload_out is None) != (self.payload_frame is None):
            raise typer.BadParameter("--payload-out and --payload-frame go together.", param_hint="--payload-out")
        if self.payload_out is not None:
            check_payload(self.payload_out)

    def found(
        self,
        logs: Sequence[Path],
        of: LoadedRobot,
        contacts: str | None,
        wanted: str,
        still: Sequence[str],
        as_json: bool,
    ) -> tuple[Identification, nd.tools.LogMapping | None]:
        """What is identified from logs, and the mapping of the first; joints that stand still are asked about.

        Raises:
            BadParameter: contacts are given, and recognised.
            DoubtfulLogError: it is doubtful what the columns of a log are.
        """
        given, share = dict(map(_known, self.known or ())), _share(self.held_out)
        way, mappings = (how_differentiated(self.differentiate), self.dt), list[nd.tools.LogMapping | None]()

        def tied(log: Log) -> Log:
            nonlocal way
            own = self._tied(log, of, still, as_json)
            mappings.append(own.mapping)
            way = own.way(*way)
            return own.log

        read = _logs(logs, self.mapping, tied)
        first = next(iter(read if isinstance(read, list) else [log for own in read.values() for log in own]))
        closed: History | tuple[str, ...] | None = None if contacts is None else named_contacts(contacts)
        if self.recognise is not None:
            if closed is not None:
                raise typer.BadParameter("contacts are given or recognised, not both.", param_hint="--recognise")
            closed = self._recognised(first, self.recognise)
        found = nd.identify(
            read,
            of.tree,
            named(wanted),
            sensors=of.sensors,
            contacts=closed,
            held_out=_logs(_called(self.held_out), self.mapping, tied) if share is None else share,
            loaded=_logs(self.loaded or (), self.mapping, tied),
            known=given,
            differentiate=way[0],
            dt=way[1],
            curves=self.html is not None,
            **{name: getattr(self, name) for name in AS_THEY_ARE},
        )
        return found, mappings[0]

    def _tied(self, log: Log, of: LoadedRobot, still: Sequence[str], as_json: bool) -> TiedLog:
        """A log tied to the robot; what is doubtful about that is asked.

        A floating base that it holds nothing of stands beside its columns, as `estimate` has it.
        """
        tied, estimator, lacking = of.tied(log, of.record, still), None, ""
        if of.has_base and self.recognise is None and lacks_position(tied.log, of.record, of.root):
            (estimator, lacking), tied = of.estimator(log), of.tied(log, of.record_but_base, still)
        reasons, questions = tied.reasons, tied.questions
        if estimator is not None:
            reasons += (*estimator.reasons, f"'{of.root}': estimated by its IMU, encoders and torques")
            questions += estimator.questions
        if lacking:
            reasons += (f"'{of.root}': not estimated, for which no column is of {lacking}",)
        told_and_asked(log, reasons, questions, self.yes, as_json)
        if estimator is not None:
            tied = replace(tied, log=tied.log.beside(self._base(estimator), of.tree))
        return tied

    def _base(self, by: PresetLog) -> History:
        """The floating base of a log as estimated; what is doubtful is asked.

        Raises:
            DoubtfulLogError: it is doubtful what the log says.
        """
        from nori_dyn.estimation.log_estimate import LogHistory, estimated
        from nori_dyn.estimation.log_run import LogRunner
        from nori_dyn.estimation.run_options import options_of

        way = by.way(how_differentiated(self.differentiate), self.dt)
        options = options_of(*way, by.contacts, missing=self.missing, backend=self.backend)
        found = estimated(LogRunner(by.plan, options), by.log)
        assert isinstance(found, LogHistory)  # as its base is memory
        if not self.yes:
            ask(by.log.path.name, [doubt.message for doubt in found.report.doubts])
        return replace(found.history, contacts=None)  # an instant late where they change: feet are unknown throughout

    def _recognised(self, log: Log, plan: Path) -> History:
        """Contacts of a log, as a plan recognises them."""
        from nori_dyn.estimation.log_estimate import LogHistory
        from nori_dyn.estimation.run_options import RECOGNISE

        way = how_differentiated(self.differentiate), self.dt, self.missing
        found = nd.estimate(log, nd.Plan.load(plan), *way, contacts=EstimatorOptions(plan).contacts(RECOGNISE))
        assert isinstance(found, LogHistory)  # as what recognises has memory
        return found.history

    def write(
        self, found: Identification, of: LoadedRobot, out: Path | None, mapping: nd.tools.LogMapping | None
    ) -> tuple[dict[str, Path], list[str], list[str]]:
        """Write what was found: the files by what they hold, notes on them, and why others are not there."""
        notes, source = list[str](), (f"Identified from {', '.join(found.logs)}.",)
        writers: dict[str, tuple[Path | None, Callable[[Path], Any]]] = {
            "page": (self.html, partial(nd.tools.save_html, found))
        }
        for name, own in found.robots.items():
            several = len(found.robots) > 1
            paths = (out, self.components_out, self.mapping_out)
            asked = [_of(path, name) if path and several else path for path in paths]
            whose = f" of {name}" if several else ""

            def save_friction(path: Path, name: str = name, own: nd.KinematicTree = own) -> None:
                nd.tools.save_components(found.with_stiction(name) if self.stiction else own, path, source)

            def save_calibrated(path: Path, name: str = name) -> None:
                nd.tools.save_mapping(found.calibrated(mapping, name), path, source)

            writers["robot" + whose] = asked[0], partial(nd.tools.save_robot, own, of.source)
            writers["components" + whose] = asked[1], save_friction
            writers["mapping" + whose] = asked[2], save_calibrated
        writers["payload"] = (
            self.payload_out,
            lambda path: nd.tools.save_payload(found.payload(self.payload_frame or ""), path),
        )
        written, problems = dict[str, Path](), list[str]()
        for what, (path, write) in writers.items():
            if path is not None:
                try:  # what was found is worth more than the file that cannot hold it
                    notes += write(path) or ()  # save_robot has some
                    written[what] = path
                except NoriError as error:
                    problems.append(str(error))
        return written, notes, problems


def identify(
    ctx: typer.Context,
    robot: Annotated[str, typer.Option(metavar="ROBOT")],
    logs: Annotated[list[Path] | None, typer.Argument(metavar="LOG...")] = None,
    sensors: str | None = None,
    contacts: str | None = None,
    parameters: str | None = None,
    out: Path | None = None,
    *,
    fit: FitOptions,
    excite: bool = False,
    motion: MotionOptions,
    model: Model = None,
    loading: RobotOptions,
    as_json: Json = False,
) -> None:
    """Identify a robot's own parameters from logs: inertias, friction, rotors, offsets and gains of sensors, a load.

    Which combinations are identifiable from the sensors is exact; these are estimated from the logs, with standard
    deviations, and the rest stays next to the model. Only options that name files write any.

    Example: nori-dyn identify run.csv --robot arm.urdf --differentiate 11 --cutoff 5 --out identified.urdf

    Example: nori-dyn identify free.csv --robot arm.urdf --loaded loaded.csv --load-on wrist --html load.html

    Example: nori-dyn identify --robot arm.urdf --excite --acceleration 5 --out motion.csv

    Args:
        ctx: The call.
        robot: A robot, as in `estimate`: one that has a preset, by which its logs are read, and before which go --base,
            --lock, --keep, --components and --gravity; or a URDF or MJCF file, or the name of a model.
        logs: Logs, of any format as in `estimate`; of several robots of one type as ROBOT=LOG: they share inertias, and
            have their own friction, offsets and gains, and files FOUND.ROBOT.urdf and so on.
        sensors: A shipped set of sensors, or a YAML file. Joint torques, when left out: `identification`, or
            `identification_floating` with a floating base, where feet whose wrench the logs lack may feel any. A base
            that they lack is estimated, as by `estimate`.
        contacts: Of sensors with contacts, those that are closed throughout: l_foot,r_foot, or none. Otherwise columns
            contact:l_foot and so on of the logs say it at each sample, by 1 and 0. With --excite, links or frames that
            stand on the ground: flat, or LF_FOOT:point on a point.
        parameters: What to look for, with commas: inertias, friction, quadratic_friction, asymmetric_friction,
            stribeck_friction, weight_friction, presliding, harmonics, rotors, springs, offsets, gains, names such as
            m:forearm, or patterns such as viscous:l_*. `offsets` alone calibrates sensors; `presliding` suits motor
            currents. inertias,friction,rotors,offsets when left out; with --excite inertias,friction.
        out: Write the robot's file anew, with what was found: .urdf of a URDF, .xml of an MJCF model. With --excite,
            the table of the motion, .csv or .csv.gz: t, q, qd, qdd, tau.
        fit: See `FitOptions`.
        excite: Find the motion, within limits, that identifies the parameters best. Limits that are not given are nine
            tenths of those in the robot's file. Loops stay closed, and the robot's shapes apart. What else it could hit
            is not known: look at the motion in a simulator first.
        motion: See `MotionOptions`.
        model: A model of your own, in place of that of the preset: a URDF or MJCF file.
        loading: See `RobotOptions`.
        as_json: Print the figures as JSON.
    """
    of = LoadedRobot(robot, loading, model, sensors)
    if of.has_preset:
        refuse_given(ctx, ["inertias"], "does not go with a preset, of which the nearest are taken.")
    if excite:
        refuse_given(ctx, ["logs", *option_names(FitOptions)], "does not go with --excite, which needs no log.")
        motion.find(of, named(parameters or EXCITED), contacts, out, as_json)
        return
    refuse_given(ctx, option_names(MotionOptions), "needs --excite.")
    if not logs:
        raise typer.BadParameter("name a log, or find a motion to record by --excite.", param_hint="LOG...")

    fit.check(of, out)
    wanted, first = parameters or WANTED, nd.read_log(_parted(logs)[0][2], fit.mapping)
    if still := of.still_in(first):
        of = of.with_locked(still)
    if fit.payload_frame is not None:
        of.tree.frame(fit.payload_frame)  # refused before the work
    found, mapping = fit.found(logs, of, contacts, wanted, still, as_json)
    written, notes, problems = fit.write(found, of, out, mapping)
    load = _loading(written, of)
    lines = [f"note: {note}" for note in notes]
    lines += [f"{what.capitalize()} written to {unbroken(str(path))}." for what, path in written.items()]
    if out is None and found.has_robot:
        lines.append("The robot was not written: --out ROBOT.urdf does that.")
    if load is not None:
        lines.append(f"Load it: {unbroken(load)}")
        if of.has_preset:
            friction = ("--components", written["components"]) if "components" in written else ()
            used = "estimate", "LOG", "--robot", of.name, "--model", written["robot"], *friction
            lines.append(next_command(*used).replace("Next", "Use it", 1))
    if found.n_identified < len(found.directions):
        wish = "--parameters", ",".join(named(wanted)), *of.words()
        lines.append(next_command("identify", "--robot", robot, "--excite", *wish, "--out", "MOTION.csv"))
    files = {what: str(path) for what, path in written.items()}
    show_found(found, as_json, *lines, written=files, load=load, notes_on_files=notes, errors=problems)
    for problem in problems:
        typer.echo(f"failed: {problem}", err=True)
    if problems:
        raise typer.Exit(1)


def _parted(paths: Sequence[Path]) -> list[tuple[str, str, str]]:
    """Robot, sign and log of each ROBOT=LOG; without the former where it is a log alone."""
    return [("", "", str(path)) if path.exists() else str(path).partition("=") for path in paths]


def _logs(paths: Sequence[Path], mapping: Path | None, tied: Callable[[Log], Log]) -> list[Log] | dict[str, list[Log]]:
    """Logs, or those of each robot by its name where they are named as ROBOT=LOG.

    Raises:
        BadParameter: some are named so, and others are not.
    """
    parted = _parted(paths)
    if not any(sign for _, sign, _ in parted):
        return [tied(nd.read_log(path, mapping)) for path in paths]
    if not all(sign for _, sign, _ in parted):
        raise typer.BadParameter(
            "name the robot of each log, or of none: first=a.csv second=b.csv.", param_hint="LOG..."
        )
    found: dict[str, list[Log]] = {}
    for name, _, path in parted:
        found.setdefault(name, []).append(tied(nd.read_log(path, mapping)))
    return found


def _called(pattern: str) -> list[Path]:
    """The logs of a pattern, or the one of a robot, ROBOT=LOG."""
    from nori_dyn.logs.log import logs_called

    return [Path(pattern)] if "=" in pattern else logs_called(pattern)


def _of(path: Path, robot: str) -> Path:
    """The file of a robot of several: found.first.urdf."""
    return path.with_name(f"{path.stem}.{robot}{path.suffix}")


def _known(given: str) -> tuple[str, float]:
    """Name and value of a known parameter.

    Raises:
        InputError: something else.
    """
    name, sign, value = given.rpartition("=")
    try:
        if sign and name:
            return name.strip(), float(value)
    except ValueError:
        pass
    raise InputError(f"--known {given}: must be a parameter and its value, such as m:load=2.5.")


def _share(given: str) -> float | None:
    """Share that is held out; None where it is a log."""
    try:
        return float(given)
    except ValueError:
        return None


def _loading(written: Mapping[str, Path], of: LoadedRobot) -> str | None:
    """Python call that loads the robot that was written, with all that was found; None where none was.

    Of components of a YAML file the friction is in the robot's file as well now: they are not to be added again.
    """
    if "robot" not in written:
        return None
    options = {name: value for name, value in of.options.keywords().items() if name != "components"}
    if "components" in written:
        options["components"] = str(written["components"])
    elif of.options.components == "own":
        options["components"] = True
    call = f"nd.preset({of.name!r}, " if of.has_preset else "nd.load_robot("
    if of.has_preset:
        options = {name: value for name, value in options.items() if name in ("gravity", "components")}
    arguments = [repr(str(written["robot"])), *(f"{name}={value!r}" for name, value in options.items())]
    return f"{call}{', '.join(arguments)})"
