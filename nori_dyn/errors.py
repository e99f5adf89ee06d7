"""The family of errors: each names the offending thing, what is known about it, and what to do.

Example:
    >>> try:
    ...     nd.autotree(2).joint("elbow")
    ... except nd.errors.NoriError as error:
    ...     print(error)
    unknown moving joint 'elbow' in robot 'autotree(2, 1, 0, 1)'. Known: joint1, joint2.
"""

from __future__ import annotations

import copyreg
import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager


class NoriError(Exception):
    """Base of every error that nori_dyn raises on purpose; the message is meant to be read by a person.

    Catch it where any mistake of a user may come from; its subclasses say which.
    """

    def __reduce__(self) -> tuple[object, ...]:
        """Parts of an error for another process: those with attributes take other arguments than their message."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


@contextmanager
def naming(place: object) -> Iterator[None]:
    """Put what an error is about, such as a file or an entry, in front of its message."""
    try:
        yield
    except NoriError as error:
        error.args = (f"{place}: {error}",)
        raise


class ModelError(NoriError):
    """A robot model that cannot be used: its topology, its inertias, its joints, or its file.

    What to do: mend the place in the file that the message names; `nori-dyn info` shows what was read.
    """


class UnsupportedComponentError(ModelError):
    """A component of the robot that an algorithm does not take in, such as a loop in a recursion.

    What to do: plan the robot, which takes in all components: `nd.plan(nd.System(tree, "forward_dynamics"))`.

    Attributes:
        part: what is not taken in: "loop:bar".
    """

    def __init__(self, message: str, part: str) -> None:
        self.part = part
        super().__init__(message)


class SensorConfigError(NoriError):
    """A set of sensors that cannot be read, or does not fit the robot.

    What to do: mend the entry that the message names; `nori-dyn schema` helps an editor to see such mistakes.
    """


class _AtPath(NoriError):
    """An error at a place of a config, by the keys and indices that lead there."""

    def __init__(self, message: str, path: tuple[str | int, ...]) -> None:
        self.path = path
        super().__init__(message)


class InvalidConfigError(_AtPath, SensorConfigError):
    """A config that does not follow the schema.

    What to do: mend the entry at `path`; the message says what is expected there.

    Attributes:
        path: keys and indices that lead to the offending entry.
    """


class UnknownNameError(NoriError):
    """A name that is not among the known ones; suggests the closest.

    What to do: take one of the known names; the message lists them, or the one that is meant.

    Attributes:
        name: the name asked for.
        known: the names that exist.
    """

    def __init__(self, what: str, name: str, known: Iterable[str], where: str = "") -> None:
        self.name = name
        self.known = tuple(known)
        close = difflib.get_close_matches(str(name), self.known, n=1, cutoff=0.5)
        place = f" in {where}" if where else ""
        if close:
            hint = f"Did you mean '{close[0]}'?"
        elif self.known:
            more = len(self.known) - 12
            hint = f"Known: {', '.join(self.known[:12])}{f' and {more} more' if more > 0 else ''}."
        else:
            hint = "There is none."
        super().__init__(f"unknown {what} '{name}'{place}. {hint}")


class UnknownSensorNameError(UnknownNameError, SensorConfigError):
    """A sensor type, link, joint, frame or component that a set of sensors names and that does not exist.

    What to do: take one of the known names; `nori-dyn info ROBOT --frames` lists places of a robot.

    Attributes:
        path: keys and indices that lead to it in a config, where they are known.
    """

    path: tuple[str | int, ...] = ()


class UnknownConfigError(UnknownNameError, SensorConfigError):
    """A set of sensors that is not shipped.

    What to do: name a shipped one, or a YAML file; a path with a folder or a `.yaml` is always a file.
    """


class UnknownModelNameError(UnknownNameError, ModelError):
    """A link, joint or frame that the robot does not have.

    What to do: take one of the known names; what is fixed to a moving link is a frame on it.
    """


class SystemShapeError(NoriError):
    """A system with more or fewer rows than unknowns, where an exact (square) one is needed.

    What to do: add or leave out as many rows as the message says, or give the readings a `sigma`.

    Attributes:
        n_rows: number of scalar equations.
        n_variables: number of scalar unknowns.
    """

    def __init__(self, message: str, n_rows: int, n_variables: int) -> None:
        self.n_rows = n_rows
        self.n_variables = n_variables
        super().__init__(message)


class SingularSystemError(NoriError):
    """A system without a unique solution, at every configuration or at the one given.

    What to do: at one state, go on with the next, or from the last estimate; at every one, add what
    `nd.observability(system).additions` proposes.

    To say what is not determined takes as long as a rank: it is worked out when the message, or `undetermined`, is
    first asked for, so that a control loop that catches the error does not wait for it.

    Attributes:
        undetermined: names of the variables that the null space moves, the largest first.

    Args:
        message: what is singular, and where.
        undetermined: see above.
        explain: returns the rest of the message, and `undetermined`.

    Example:
        >>> joint = {"type": "joint_acceleration", "joints": "joint1"}
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> twice = [joint | {"name": "left"}, joint | {"name": "right"}, unloaded]
        >>> try:
        ...     nd.plan(nd.System(nd.autotree(2), nd.SensorSet.from_dict({"name": "twice", "measurements": twice})))
        ... except nd.errors.SingularSystemError as error:
        ...     print("qdd:joint1" in error.undetermined, "qdd:joint2" in error.undetermined)
        False True
    """

    def __init__(
        self,
        message: str,
        undetermined: tuple[str, ...] = (),
        explain: Callable[[], tuple[str, tuple[str, ...]]] | None = None,
    ) -> None:
        super().__init__(message)
        self._undetermined, self._explain = undetermined, explain

    @property
    def undetermined(self) -> tuple[str, ...]:
        self._worked_out()
        return self._undetermined

    def __str__(self) -> str:
        self._worked_out()
        return super().__str__()

    def __reduce__(self) -> tuple[object, ...]:
        self._worked_out()
        return super().__reduce__()

    def _worked_out(self) -> None:
        explain, self._explain = self._explain, None
        if explain is not None:
            rest, self._undetermined = explain()
            self.args = (f"{self.args[0]} {rest}",)


class PlanError(NoriError):
    """A plan that cannot be made, read, or used with this model or version.

    What to do: what the message says; a plan file of another version, or of another robot, is made anew.
    """


class UnknownOrderingError(UnknownNameError, PlanError):
    """An ordering that does not exist.

    What to do: leave `ordering` at "auto", or take one of the known.
    """


class UnknownOutputError(UnknownNameError, PlanError):
    """An output that the system does not have.

    What to do: ask for a kind (a, f, tau, fx, qdd), or for a kind at one place, such as "fx:tool0".
    """


class InputError(NoriError):
    """Values given to a solver that have the wrong shape, the wrong name, or are not finite.

    What to do: give what the message says is expected; `system.measurement_names` is the order of y.

    Example:
        >>> nd.crba(nd.autotree(2), np.zeros(3))
        Traceback (most recent call last):
            ...
        nori_dyn.errors.InputError: q has shape (3,), expected (2,), or batch axes after that.
    """


class WrongKindError(InputError):
    """An argument of the wrong kind, such as a robot in place of a system.

    What to do: write what the message proposes.

    Attributes:
        given: the name of its type.

    Args:
        call: the function that was called.
        expected: what it takes there.
        given: what it was given.
        advice: what to write instead.
    """

    def __init__(self, call: str, expected: str, given: object, advice: str) -> None:
        self.given = type(given).__name__
        article = "an" if self.given[0] in "aeiouAEIOU" else "a"
        is_shown = given is None or isinstance(given, str | bytes | int | float | os.PathLike)
        shown = f"{given!r:.60}" if is_shown else f"{article} {self.given}"
        super().__init__(f"{call} takes {expected}, not {shown}: {advice}.")


class UnknownReadingError(UnknownNameError, InputError):
    """A reading by a name that no measurement has.

    What to do: name readings as `system.measurement_names` does.
    """


class SaturatedReadingError(InputError):
    """A reading at an end of its sensor's range, or beyond: the true value may be any from there on.

    What to do: solve with `missing="drop"`, if the sensor has a `sigma`; or widen its `range`, if that is wrong.

    Attributes:
        name: of the reading.
        value: what it is.
        range: the readings between which the sensor works.
        is_exact: whether it holds exactly.
    """

    def __init__(self, where: str, name: str, value: float, range: tuple[float, float], is_exact: bool) -> None:
        self.name, self.value, self.range, self.is_exact = name, value, range, is_exact
        hint = "The sensor is exact and cannot be left out: give it a `sigma`; then" if is_exact else "With"
        super().__init__(
            f"{where} ('{name}') is {value:g}: the sensor is saturated, it works between {range[0]:g} and "
            f"{range[1]:g}. {hint} missing='drop' the estimate does without it."
        )


class NotRequestedError(InputError):
    """A value that the plan was not asked to compute.

    What to do: plan with it among `outputs`.
    """


class UnknownContactError(UnknownNameError, InputError):
    """A contact that the sensors do not have.

    What to do: name contacts as `sensors.contact_names` does.
    """


def named_contacts(state: Sequence[str]) -> str:
    """Name of a contact state in messages: "l_foot, r_foot", or "no contact"."""
    return ", ".join(state) or "no contact"


class UnplannedStateError(InputError):
    """A contact state without a plan.

    What to do: plan it too, by the argument `states` of `nd.plan`; where it was left out, it is singular.

    Attributes:
        state: the contacts that are closed in it.
        planned: the states that have a plan.
    """

    def __init__(self, state: tuple[str, ...], planned: Sequence[tuple[str, ...]]) -> None:
        self.state, self.planned = state, tuple(planned)
        known = "; ".join(named_contacts(one) for one in planned)
        super().__init__(f"the contact state '{named_contacts(state)}' is not planned. Planned: {known}.")


class OfOneStateError(PlanError, AttributeError):
    """A property of one contact state, asked of a plan of several.

    What to do: ask the plan of one state for it, `plan.states[closed]`.

    Attributes:
        planned: the states that have a plan.
    """

    def __init__(self, what: str, planned: Sequence[tuple[str, ...]]) -> None:
        self.planned = tuple(planned)
        states = "; ".join(map(named_contacts, planned))
        super().__init__(f"`{what}` is of one contact state: `states[closed].{what}`. Planned are: {states}.")


class NotClosedError(InputError):
    """A configuration whose loops or couplings are open, and cannot be closed from there.

    What to do: begin nearer to a closed configuration, let more joints move, or mend the frames of the loop.

    Attributes:
        part: the loop or coupling that stays open the most: "loop:bar".
        gap: how far it does [m or rad].
    """

    def __init__(self, message: str, part: str, gap: float) -> None:
        self.part = part
        self.gap = gap
        super().__init__(message)


class NotPositiveDefiniteError(InputError):
    """A matrix that is not positive definite.

    What to do: look at the inertias of the links beyond that freedom; where some distribution of mass has each, and all
    weigh something, H is. `nd.load_robot(robot, inertias="nearest")` mends those that none has.

    Attributes:
        freedom: the number of the freedom whose pivot is not positive.
        pivot: that pivot [kg m^2 or kg].
    """

    def __init__(self, freedom: int, pivot: float) -> None:
        self.freedom = freedom
        self.pivot = pivot
        super().__init__(f"H is not positive definite: the pivot of freedom {freedom} is {pivot:.3g}.")


class IdentifierError(InputError):
    """A name for exported code that C, C++ or CMake would not take.

    What to do: choose letters, digits and underscores, and no word of these languages.

    Attributes:
        name: the name.
    """

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        super().__init__(f"{name!r} cannot name exported code: {why}. Name it like 'left_arm'.")


class UnknownPoseError(UnknownNameError, InputError):
    """A special pose by a name that none has.

    What to do: take one of the known.
    """


class NoConfigurationError(NoriError):
    """No configuration was found that satisfies a condition.

    What to do: ask for other frames or normals, or let the base float.

    Attributes:
        condition: its name.
        frames: the frames that it is on.
        residual: the smallest that was reached [m, rad].
    """

    def __init__(
        self, robot: str, condition: str, meaning: str, frames: Sequence[str], residual: float, found: int
    ) -> None:
        self.condition = condition
        self.frames = tuple(frames)
        self.residual = residual
        some = f"only {found} configurations were" if found else "no configuration was"
        advice = (
            "Ask for other frames or normals, or load the robot with base='floating' if it should be free to move."
            if frames
            else "Its loops and couplings are open there: ask for another pose."
        )
        of_frames = f"with {', '.join(frames)} " if frames else ""
        super().__init__(
            f"robot '{robot}': {some} found {of_frames}{meaning}, within the joint limits; the nearest misses it by "
            f"{residual:.1e} m or rad. {advice}"
        )


class NoPlacementError(NoriError):
    """No choice of candidates determines the outputs, within the rules and the budget.

    What to do: offer candidates that see what `undetermined` names, or raise the budget.

    Attributes:
        undetermined: outputs that all candidates together do not determine.
    """

    def __init__(self, message: str, undetermined: Sequence[str] = ()) -> None:
        self.undetermined = tuple(undetermined)
        super().__init__(message)


class FileFormatError(NoriError):
    """A file that cannot be read as what it should be, or an output that cannot be written.

    What to do: look at the line that the message names; or write to a folder that exists.
    """


class MappingError(NoriError):
    """A mapping that does not follow its schema, or fits neither the log nor the robot.

    What to do: mend the entry that the message names; `nori-dyn info LOG --robot ROBOT` drafts one that fits.
    """


class InvalidMappingError(_AtPath, MappingError):
    """A mapping that does not follow the schema.

    What to do: mend the entry at `path`; the message says what is expected there.

    Attributes:
        path: keys and indices that lead to the offending entry.
    """


class PresetError(NoriError):
    """The file of a preset that is not YAML, or does not follow the schema.

    What to do: mend the line that the message names; `nori-dyn schema --presets` prints the schema.
    """


class UnknownPresetError(UnknownNameError, PresetError):
    """A preset that is not shipped, or an estimate that a preset has not.

    What to do: take one of the known names, which `nori-dyn robots` lists; or name the YAML file of a preset.
    """


class DoubtfulLogError(InputError):
    """A log that was not read, since it is doubtful what its columns are, or whether it is of this robot.

    What to do: look at the questions. Where the log is as they suspect, give a mapping that says so, or another preset;
    where it is right after all, say `accept=True` (`--yes`).

    Attributes:
        questions: what is to be looked at, each a sentence or two.
    """

    def __init__(self, log: str, questions: Iterable[str]) -> None:
        self.questions = tuple(questions)
        listed = "".join(f"\n  - {question}" for question in self.questions)
        super().__init__(
            f"{log} was not read: {len(self.questions)} thing{'s' * (len(self.questions) != 1)} to look at first."
            f"{listed}\nIf the log is right, say so: --yes, in Python accept=True. If not, give a mapping: --mapping "
            "FILE, which `nori-dyn info LOG --robot ROBOT --draft FILE` begins."
        )


class MissingExtraError(NoriError):
    """An optional dependency that is not installed, and is needed here.

    What to do: the `pip install` that the message says.

    Attributes:
        extra: the name of the extra that brings it.
    """

    def __init__(self, what: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{what} needs the extra '{extra}': pip install 'nori_dyn[{extra}]'")


class BackendError(NoriError):
    """A backend that does not exist or cannot run here.

    What to do: leave the backend at "auto", which takes one that runs here.
    """


class UnknownBackendError(UnknownNameError, BackendError):
    """A backend that does not exist.

    What to do: take one of the known, or "auto".
    """


class CompilerError(BackendError):
    """A compiler that is missing or fails; carries its own message.

    What to do: install a C compiler, or `pip install 'nori_dyn[compiler]'`; without one, the backend `numpy` serves.
    """


class SweepError(NoriError):
    """A sweep that cannot be run where it was asked to, or whose workers failed.

    What to do: run it in this process, with workers=1.
    """


class WorkerDiedError(SweepError):
    """Processes of this machine that die again and again.

    What to do: run with fewer workers, as each needs memory of its own.
    """


class TransportError(NoriError):
    """A live stream that cannot be listened to, or what it should connect to does not answer.

    What to do: listen at a port that is free, or connect to what listens there already, such as a Zenoh router.

    Attributes:
        listen: the endpoints to listen at.
        connect: the endpoints to connect to.
    """

    def __init__(self, listen: Sequence[str], connect: Sequence[str], why: str) -> None:
        self.listen, self.connect = tuple(listen), tuple(connect)
        wanted = [f"listen at {', '.join(listen)}"] if listen else []
        wanted += [f"connect to {', '.join(connect)}"] if connect else []
        super().__init__(
            f"cannot {' and '.join(wanted)}: {why}. Listen elsewhere, or connect to what listens there: an endpoint is "
            "written tcp/127.0.0.1:7447."
        )


class NoriWarning(UserWarning):
    """A warning: worth knowing, and the work goes on.

    What to do: read it; `warnings.simplefilter("error", nd.errors.NoriWarning)` makes errors of all.
    """
