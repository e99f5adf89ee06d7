"""Parameters of a robot identified from its logs: `nd.identify`.

Options and parameters make a regression (`Formulation`); logs give their moments (`LogMoments`); these an estimate
(`Solution`); and that is judged (`Identification`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_limits

from nori_dyn.components.friction import ANY_EXCESS
from nori_dyn.descriptions.legs import Legs, legs_of
from nori_dyn.descriptions.sensor_configs import load_sensors
from nori_dyn.errors import InputError, UnknownNameError, WrongKindError
from nori_dyn.filtering.history import History
from nori_dyn.identification.consistent import with_load
from nori_dyn.identification.estimation import Solution
from nori_dyn.identification.findings import Identification
from nori_dyn.identification.fits import IDENTIFIED, combinations_of, fits_of, stictions
from nori_dyn.identification.formulation import Formulation, IdentifyOptions, LogMoments
from nori_dyn.identification.log_reader import LogReader
from nori_dyn.identification.moments import Evidence, FilterNoise, triangular
from nori_dyn.identification.parameters import CURVE, OF_MOTION, Parameters, with_presliding
from nori_dyn.identification.physical import is_physical
from nori_dyn.identification.plausibility import (
    constant_readings,
    contradicted_priors,
    delays,
    doubts_of_logs,
    flat_curves,
    flat_joints,
    insignificant_harmonics,
    late_readings,
    opposite_readings,
    significant,
    still_joints,
    turned_signs,
    unconnected_readings,
    unlikely_masses,
    unread,
    weak_motion,
)
from nori_dyn.identification.prior import ParameterPrior
from nori_dyn.logs.log import Log, read_log
from nori_dyn.logs.mapping.record import ALWAYS, SampleRecord
from nori_dyn.logs.motion.differentiation import Differentiate, differentiator
from nori_dyn.logs.reading import SampleReader
from nori_dyn.measurements.base import Measurement
from nori_dyn.measurements.contacts import CONTACT, Contact
from nori_dyn.measurements.external_wrench import ExternalWrench
from nori_dyn.measurements.joint_torque import JointTorque
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.joints import Free
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import Missing
from nori_dyn.tables import listed
from nori_dyn.tables.progress import Watched, progress_bar

ROBUST_ROUNDS = 4
"""Times that a log is read again where residuals that are far off are to count less."""

SIGMA_ROUNDS = 2
"""Times that logs are read again where unknown wrenches are weighed by deviations of rows that are not declared."""

WEIGHT_ROUNDS = 2
"""Times that logs are read again where friction depends on weight: that is the weight of what was found before."""

CURVE_ROUNDS = 8
"""Most times that they are read again where equations are taken to first order about what was found before."""

SETTLED = 0.02
"""Relative change of what they are not linear in from which on that has settled."""

AT_MOST = 3.0
"""Factor by which that changes at most at a time."""

OWN = ("friction", "harmonics", "quadratic_friction", "asymmetric_friction", "weight_friction", "offsets", "gains")
"""Parameters that each robot of a fleet has of its own."""


def identify(
    logs: Given,
    system: System | KinematicTree,
    parameters: Sequence[str] = ("inertias", "friction", "rotors", "offsets"),
    *,
    sensors: SensorSet | str | None = None,
    contacts: Iterable[str] | History | None = None,
    own: Sequence[str] = OWN,
    held_out: Given | float = 1 / 3,
    loaded: Given = (),
    load_on: str | None = None,
    known: Mapping[str, float] | None = None,
    physical: bool = True,
    hulls: Mapping[str, ArrayLike] | None = None,
    robust: bool = False,
    moving: float | None = None,
    cutoff: float | None = None,
    differentiate: Differentiate = "auto",
    dt: float | None = None,
    missing: Missing = "refuse",
    curves: bool = False,
    backend: str = "auto",
    progress: Watched = None,
) -> Identification:
    """Identify a robot's parameters from logs: inertias, friction, rotors, springs, offsets and gains of sensors.

    Every sensor of forces is used: joint torques, motor currents, force-torque sensors anywhere, plates. Which
    combinations of parameters are identifiable at all is found exactly; within these, what the log leaves open stays
    next to what the model says.

    Args:
        logs: one log or several, as files or as `nd.read_log` returns them; of several robots of one type, those of
            each by its name.
        system: the robot and its sensors; a robot alone has those of the set "identification", which are joint torques,
            or of "identification_floating" where its base floats. There, what the logs do not hold of wrenches is
            unknown on feet, and zero on the ends of other limbs. Accelerations of the joints are read, made of
            velocities (`differentiate`), or estimated from accelerometers.
        sensors: of a robot alone, its sensors: a set, or the name of a shipped one. Those with `contacts` are of one
            set of rows in each contact state, and samples count in that of theirs.
        contacts: of sensors with contacts, those that are closed throughout; or how they were recognised, and how a
            floating base moves, the `history` of `nd.estimate(log, plan, contacts="recognise")`, see `Log.beside`; None
            takes them from the log.
        own: of several robots, the parameters that each has of its own; all others are shared.
        parameters: what to look for: words ("inertias", "friction", "rotors", "springs", "offsets", "gains"), names
            ("m:forearm", "viscous:elbow") or patterns ("I:*", "*:l_*"). All others are known from the model.
            "presliding" has Coulomb friction go by how far a joint has moved since it turned back, which suits motor
            currents of arms.
        held_out: the share at the end of each log that is left out of a first fit, on which that is judged; or other
            logs for that. What is returned is found from all of `logs`.
        loaded: further logs, in which the robot carries a load.
        load_on: the link that carries it. Its parameters are called "m:load", "mc:load.x", "I:load.xx" and so on, in
            the frame of that link.
        known: values of parameters that are known, by name, such as {"m:load": 2.5}.
        physical: whether to return inertias that bodies can have.
        hulls: for links, points (n_points, 3) in the link's frame [m], in whose convex hull its centre of mass is, for
            inertias that bodies can have; "load" is the load, in the frame of its link.
        robust: whether residuals that are far off count less (Huber); reads the logs several times.
        moving: speed [rad/s or m/s] above which a joint moves: its torque counts only then, as friction is whatever it
            takes to stand still; all count when None.
        cutoff: frequency [Hz] of a zero-phase low-pass over regressor and readings alike; none when None.
        differentiate: how accelerations are made of velocities, as in `estimate`.
        dt: time between samples [s]; that of the log's times when None.
        missing: "drop" leaves samples out that hold what is no number.
        curves: whether to keep readings over the time beside what is found, for a page: `nd.tools.save_html`.
        backend: as for `compile`.
        progress: as for `plan`.

    Raises:
        InputError: the log lacks what is needed, the sensors say nothing of forces or of the motion, or gains of all
            sensors are free and nothing is known that fixes their common factor.
        UnknownNameError: a parameter, joint or link that does not exist.
        MappingError: the mapping fits neither the log nor the robot.
        FileFormatError: the log is damaged.

    Source: Atkeson, An and Hollerbach (1986); Gautier (1991); Lee, Wensing and Park (2020).

    Example:
        >>> arm = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))
        >>> t = np.arange(0.0, 10.0, 0.01)
        >>> motion = [f(w * t) * w**k for k, f in enumerate((np.sin, np.cos)) for w in (1.0, 2.3)]
        >>> q, qd = np.stack(motion[:2], axis=1), np.stack(motion[2:], axis=1)
        >>> qdd = -q * np.array([1.0, 2.3]) ** 2
        >>> tau = nd.compile(nd.rnea, arm).batch(q, qd, qdd)
        >>> np.savez("log.npz", t=t, q=q, qd=qd, qdd=qdd, tau=tau)
        >>> wrong = arm.replace(I=1.1 * arm.I)
        >>> found = nd.identify("log.npz", wrong, ["inertias"], physical=False)
        >>> print(max(fit.after for fit in found.fits) < 1e-6)
        True
    """
    given: object = system
    if not isinstance(given, KinematicTree | System):
        example = "write nd.identify('log.csv', nd.load_robot('panda'))"
        raise WrongKindError("nd.identify", "a robot (KinematicTree) or a system after the logs", given, example)
    robots = tuple(logs) if isinstance(logs, Mapping) else ("",)
    if "presliding" in ((parameters,) if isinstance(parameters, str) else parameters):
        if isinstance(system, System):
            system = system.replace(with_presliding(system.tree))
        else:
            system = with_presliding(system)
    others = [] if isinstance(held_out, float | int) else logs_of(held_out, robots)
    unloaded, carrying = logs_of(logs, robots), logs_of(loaded, robots)
    if isinstance(contacts, History):
        if carrying or others or len(unloaded) != 1:
            raise InputError("what was estimated is of one log alone. Of several: log.beside(history, tree) of each.")
        tree, ((of, log),) = system.tree if isinstance(system, System) else system, unloaded
        unloaded, contacts = [(of, log.beside(contacts, tree))], None
    options = IdentifyOptions(
        **in_contact(system, sensors, contacts, [log for _, log in (*unloaded, *carrying, *others)]),
        robots=robots,
        own=(own,) if isinstance(own, str) else tuple(own),
        differentiation=differentiator(differentiate, dt),
        dt=dt,
        moving=moving,
        cutoff=cutoff,
        missing=missing,
        backend=backend,
        is_physical=physical,
        hulls=dict(hulls or {}),
        has_curves=curves,
    )
    if moving is not None and not 0 <= moving < math.inf:
        raise InputError(f"the speed above which a joint moves is {moving:g}: it must be a number not below zero.")
    if hulls and not physical:
        raise InputError("hulls are for inertias that bodies can have: leave out physical=False, or the hulls.")
    share = 0.0 if not isinstance(held_out, float | int) else float(held_out)
    if not 0 <= share < 1:
        raise InputError(f"the share held out is {share:g}: it must be at least 0 and less than 1.")
    with progress_bar("identifying", progress) as stage:
        if not unloaded and not carrying:
            raise InputError("there is no log to identify from.")
        if carrying and load_on is None:
            tip = options.tree.names[-1]
            raise InputError(f"which link carries the load? Name it: load_on='{tip}' (--load-on {tip}).")

        def estimated(taken_at: KinematicTree, flat: Sequence[str]) -> tuple[_Estimation, LogReader]:
            stage("which combinations are identifiable")
            formulation = Formulation.of(options, parameters, load_on, known or {}, taken_at)
            stage("compiling")
            reader = LogReader(formulation, stage)
            moments = [reader.read(log, robot=of) for of, log in unloaded]
            moments += [reader.read(log, is_loaded=True, robot=of) for of, log in carrying]
            validation = [reader.read(log, robot=of) for of, log in others]
            stage("estimating")
            still = still_joints(options.tree, moments)
            advice = "Give a log in which these joints move."
            formulation = formulation.without(OF_MOTION, still, "stood still all the time", advice)
            constant = constant_readings(formulation.row_names, formulation.readings, moments)
            advice = "Leave out of the mapping what is not measured, and give logs in which the rest changes."
            formulation = formulation.without(("gain",), constant, "never changed", advice)
            advice = "Ask for other parameters, or let these joints turn back more often."
            formulation = formulation.without(CURVE, flat, "showed no Stribeck friction", advice)
            prior = formulation.prior(moments)
            solution, weighted = formulation.solution(moments, prior), moments
            for _ in range(SIGMA_ROUNDS if formulation.is_weighed_anew else 0):
                moments, validation = (reader.read_again(logs, solution) for logs in (moments, validation))
                solution, weighted = formulation.solution(moments, prior), moments
            for _ in range(ROBUST_ROUNDS if robust else 0):
                weighted = reader.read_again(weighted, solution, robust)
                solution = formulation.solution(weighted, prior)
            formulation, prior, solution, insignificant = significant(formulation, weighted, prior, solution)
            return _Estimation(
                formulation, moments, weighted, validation, still, constant, insignificant, prior, solution
            ), reader

        def settled(flat: Sequence[str] = ()) -> tuple[_Estimation, LogReader]:
            before, (estimation, reader) = options.tree, estimated(options.tree, flat)
            for k in range(CURVE_ROUNDS):
                taken_at = estimation.found(before)
                problem = estimation.formulation.problem
                is_by_weight = k < WEIGHT_ROUNDS and any(problem.all_parameters[i].kind == "mu" for i in problem.free)
                if not is_by_weight and estimation.is_settled(before, taken_at):
                    break
                before, (estimation, reader) = taken_at, estimated(taken_at, flat)
            return estimation, reader

        with threadpool_limits(1):  # factors are small: threads of the BLAS would wait for each other
            estimation, reader = settled()
            if flat := flat_joints(estimation.formulation.problem, estimation.solution):
                estimation, reader = settled(flat)
            return estimation.findings(reader, share, flat)


@dataclass(frozen=True, slots=True, eq=False)
class _Estimation:
    """An estimate, and what it was made from.

    Attributes:
        formulation: the regression.
        moments: of all logs, where all residuals count alike.
        weighted: those that the estimate is from, where residuals that are far off may count less.
        validation: of other logs.
        still: the joints that stand still.
        constant: the readings that never change.
        insignificant: the joints without harmonics that logs show.
        prior: the prior.
        solution: the estimate.
    """

    formulation: Formulation
    moments: Sequence[LogMoments]
    weighted: Sequence[LogMoments]
    validation: Sequence[LogMoments]
    still: Sequence[str]
    constant: Sequence[str]
    insignificant: Sequence[str]
    prior: ParameterPrior
    solution: Solution

    def found(self, before: KinematicTree) -> KinematicTree:
        """The robot found, whether bodies can have its inertias or not: their weight is as the logs have it.

        A velocity v of Stribeck's curve, taken to first order, is determined by v - v_0 times the excess: it is that of
        now by which one divides.

        Args:
            before: the robot about which the curve was expanded.

        Source: Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
        variables separate (1973); Kaufman (1975).
        """
        problem = self.formulation.problem
        parameters = problem.parameters
        values = problem.whole(self.solution.values)[: len(parameters)]
        about = Parameters(before, parameters.each).prior
        for k in parameters.of_kinds("stribeck"):
            excess, step = parameters.place.get(f"excess:{parameters.each[k].owner}"), values[k] - about[k]
            if excess is not None:
                step *= (about[excess] or ANY_EXCESS) / (values[excess] or ANY_EXCESS)
            values[k] = np.clip(about[k] + step, about[k] / AT_MOST, about[k] * AT_MOST)
        return parameters.applied(values)

    def is_settled(self, before: KinematicTree, now: KinematicTree) -> bool:
        """Whether what equations are not linear in is as it was before."""
        parameters = self.formulation.problem.parameters
        curve = parameters.of_kinds(*CURVE) if parameters.of_kinds("stribeck") else []
        about, values = (Parameters(tree, parameters.each).prior[curve] for tree in (before, now))
        return bool((np.abs(values - about) <= SETTLED * np.abs(about)).all())

    def held_out(self, share: float) -> tuple[list[Evidence], Solution, str]:
        """Evidence that was held out, an estimate without it, and what it is, in words.

        It is of other logs, or of the last segments of each, with an estimate from those before them.
        """
        evidence, others, weighted = self.formulation.evidence, self.validation, self.weighted
        if others:
            return [evidence(each) for each in others], self.solution, listed(each.name for each in others)
        ends = [_end(each, share) for each in weighted]
        if not share or not all(0 < end < len(each.segments) for end, each in zip(ends, weighted, strict=True)):
            return [], self.solution, ""
        rows = [evidence(each, slice(end, None)) for end, each in zip(ends, self.moments, strict=True)]
        return rows, self.formulation.solution(weighted, self.prior, ends), f"the last {100 * share:.2g} % of each log"

    def findings(self, reader: LogReader, share: float, flat: Sequence[str]) -> Identification:
        """Judge the estimate, on other logs or on a share of each at its end; joints without Stribeck's curve noted."""
        formulation, solution, weighted = self.formulation, self.solution, self.weighted
        problem, names, evidence = formulation.problem, formulation.row_names, formulation.evidence
        held_out, without, words = self.held_out(share)
        logs = [evidence(each) for each in weighted]
        before, plain = problem.before[problem.free], problem.whole(solution.values)
        values, notes = formulation.returned(solution)
        judged = values if without is solution else formulation.returned(without)[0]
        late = delays(names, logs, solution, weighted[0].dt)
        inverse = solve_triangular(triangular(np.array(solution.prior.L)), np.eye(len(before)))
        singular = np.linalg.svd(solution.R @ inverse, compute_uv=False)[: len(problem.identifiable)]
        directions = 1.0 / np.sqrt(1.0 + singular**2)
        combinations = combinations_of(problem, solution, plain, inverse @ inverse.T)
        doubts = [*doubts_of_logs([*weighted, *self.validation]), *turned_signs(problem.parameters, plain)]
        doubts += unlikely_masses(problem.parameters, values)
        doubts += contradicted_priors(solution.checks)
        doubts += late_readings(late, problem.tree, formulation.options.cutoff)
        doubts += opposite_readings(names, logs, before)
        doubts += unconnected_readings(self.constant, names, logs, before)
        identified = [each.name for each in combinations if each.is_identified]
        doubts += weak_motion(self.still, identified, int(np.sum(directions < IDENTIFIED)), len(directions))
        first = {each.is_loaded: each for each in reversed(self.validation or weighted)}
        drawn = sorted(first) if formulation.options.has_curves else ()
        all_logs = [evidence(each) for each in self.moments]
        found, others, sigma = values[problem.free], judged[problem.free], solution.sigma
        noise = FilterNoise.deviations(each.noise for each in (*self.moments, *self.validation))
        fits = fits_of(formulation, all_logs, held_out, found, others, sigma, late, noise)
        shown = [fit.name for fit in fits]
        rest = stictions(problem, names, fits, held_out or all_logs, others, bool(self.validation))
        return Identification(
            problem=problem,
            values=values,
            plain=plain,
            solution=solution,
            fits=fits,
            stictions=dict(rest),
            combinations=combinations,
            directions=directions,
            doubts=tuple(doubts),
            remarks=(
                *notes,
                *formulation.options.remarks,
                *flat_curves(flat),
                *insignificant_harmonics(self.insignificant),
            ),
            n_samples=sum(each.n_samples for each in weighted),
            is_physical=is_physical(with_load(problem, plain), found),
            prior_covariance=inverse @ inverse.T,
            logs=tuple(each.name for each in weighted),
            held_out=words,
            curves=tuple(reader.curves(first[k], evidence(first[k]), (before, found), sigma, shown) for k in drawn),
        )


def _end(moments: LogMoments, share: float) -> int:
    """Number of segments before the last ones that hold a share of the samples."""
    counts = np.cumsum([sum(row.n for row in segment) for segment in moments.segments])
    return int(np.searchsorted(counts, (1.0 - share) * counts[-1], side="right"))


OneLog: TypeAlias = Log | str | os.PathLike[str]
"""A log as it is given."""

Given: TypeAlias = OneLog | Sequence[OneLog] | Mapping[str, OneLog | Sequence[OneLog]]
"""Logs as they are given: one, several, or those of each robot by its name."""

SENSORS = {False: "identification", True: "identification_floating"}
"""The shipped set of sensors that is taken where only a robot is given, by whether its base floats."""


def in_contact(
    system: System | KinematicTree,
    sensors: SensorSet | str | None,
    contacts: Iterable[str] | None,
    logs: Sequence[Log],
) -> dict[str, Any]:
    """The systems of the contact states that occur, the names of the contacts, and what tells which are closed.

    Raises:
        InputError: contacts of sensors that have none; contacts of several logs that were recognised in one.
        UnknownSensorNameError: there is no such contact.
    """
    remarks, are_told = tuple[str, ...](), True
    if isinstance(system, System):
        if sensors is not None:
            raise InputError("a System has its sensors: give the robot, to name others.")
        tree, chosen = system.tree, None
    elif sensors is None:
        tree, (chosen, remarks, are_told) = system, _read_by(system, logs)
    else:
        tree, chosen = system, load_sensors(sensors) if isinstance(sensors, str) else sensors
    names = () if chosen is None else chosen.contact_names
    if chosen is None or not names:
        if contacts is not None:
            raise InputError("the sensors have no contacts. Give the robot, and `sensors` that have.")
        own = system if isinstance(system, System) or chosen is None else System(tree, chosen)
        return {"systems": {ALWAYS: own}, "contact_names": (), "contacts": None, "remarks": remarks}
    contacts = contacts if are_told or contacts is not None else names
    if contacts is not None:
        contacts = chosen.contact_state(contacts)
        states = {contacts}
    else:
        every = {state: System(tree, chosen.in_contact(*state)) for state in ((), names)}  # have all readings
        states = set().union(*(SampleReader(every, names).states(log) for log in logs))
    systems = {state: System(tree, chosen.in_contact(*state)) for state in sorted(states)}
    return {"systems": systems, "contact_names": names, "contacts": contacts, "remarks": remarks}


def usual_sensors(tree: KinematicTree) -> SensorSet:
    """What is read of a log where only a robot is given: the shipped set, with the feet of a floating base as contacts.

    Readings of a foot and its contact stand for each other: a log holds the one or the other, and these have no rows.
    """
    floats = any(isinstance(joint, Free) for joint in tree.joints)
    usual, legs = load_sensors(SENSORS[floats]), legs_of(tree) if floats else None
    return usual if legs is None else replace(usual, contacts=tuple(Contact(foot, (), ()) for foot in legs.feet))


def _with_feet(sensors: SensorSet, legs: Legs, feet: Sequence[str]) -> SensorSet:
    ground = SensorSet.from_dict({"name": sensors.name, **legs.ground(feet)})
    return replace(sensors, measurements=(*sensors.measurements, *ground.measurements), contacts=ground.contacts)


def _read_by(tree: KinematicTree, logs: Sequence[Log]) -> tuple[SensorSet, tuple[str, ...], bool]:
    """The usual sensors but for what logs hold nothing of, remarks on that, and whether they tell which feet stand.

    Torques are not read of joints of which logs hold none, if they hold that of others. On a robot with feet wrenches
    that they do not hold are unknown on these, and zero on the ends of other limbs.
    """
    usual, lacking = usual_sensors(tree), set[str]()
    plain = load_sensors(usual.name)
    legs, record = legs_of(tree) if usual.contacts else None, SampleRecord.of_sensors(tree, usual)
    for log in logs:
        with log.opened(record.systems, record.contacts) as (_, binding):
            lacking |= {*binding.lacking}
    silent = {name for name, own in record.groups.items() if lacking & {*own}}
    has_torques = any(name.startswith("tau:") and name not in lacking for name in record.measurement_names)
    feet = {} if legs is None else {tree.names[tree.frame(name).link]: name for name in legs.feet}
    read, joints, standing, others = list[Measurement](), list[str](), list[str](), list[str]()
    for one in plain.measurements:
        is_reading = isinstance(one, JointTorque | ExternalWrench) and one.value is None
        for own in one.each(tree) if is_reading else [one]:
            if isinstance(own, JointTorque) and has_torques and f"tau:{own.joints}" in silent:
                joints.append(str(own.joints))
            elif isinstance(own, ExternalWrench) and feet and f"fx:{own.links}" in silent:
                if own.links in feet:
                    standing.append(feet[own.links])
                else:
                    others.append(str(own.links))
                    read.append(own.model_copy(update={"value": 0.0}))
            else:
                read.append(own)
    chosen = replace(plain, measurements=tuple(read))
    chosen = chosen if legs is None else _with_feet(chosen, legs, standing)
    are_told = not lacking & {f"{CONTACT}{name}" for name in standing}
    return chosen, tuple(unread(joints, standing, others, are_told)), are_told


def logs_of(given: Given, robots: tuple[str, ...]) -> list[tuple[int, Log]]:
    """Logs, with the number of the robot that each is of.

    Raises:
        InputError: of several robots, it is not given which of them these are of.
        UnknownNameError: of a robot that has no other log.
    """
    if not isinstance(given, Mapping):
        each = _listed(given)
        if each and len(robots) > 1:
            raise InputError(f"of which robot are they? Give the logs of each by its name: {{'{robots[0]}': ...}}.")
        given = dict.fromkeys(robots, each)
    found = []
    for name, own in given.items():
        if name not in robots:
            raise UnknownNameError("robot", name, robots, "the logs")
        found += [(robots.index(name), log if isinstance(log, Log) else read_log(log)) for log in _listed(own)]
    return found


def _listed(given: Any) -> list[Any]:
    """A log, or several."""
    return [*given] if isinstance(given, Iterable) and not isinstance(given, Log | str | os.PathLike) else [given]
