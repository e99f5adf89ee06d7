"""Identified parameters of a robot: values, standard deviations, how well readings fit, what is implausible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from nori_dyn.components.base import OnJoints
from nori_dyn.components.friction import Friction, Stiction
from nori_dyn.components.harmonics import Harmonics
from nori_dyn.descriptions.payloads import Payload
from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.identification.base_parameters import BaseParameters
from nori_dyn.identification.estimation import Solution
from nori_dyn.identification.fits import IDENTIFIED, BaseParameterEstimate, Curves, ReadingFit
from nori_dyn.identification.parameters import OF_READINGS, Parameters
from nori_dyn.identification.prior import PriorCheck
from nori_dyn.identification.problem import LOAD, IdentificationProblem
from nori_dyn.logs.mapping.log_mapping import Calibration, LogMapping
from nori_dyn.model.inertia import inertia_of_ten
from nori_dyn.model.tree import KinematicTree, RobotComponent
from nori_dyn.renamed import Renamed
from nori_dyn.tables import Shown, listed
from nori_dyn.typing import Floats

How: TypeAlias = Literal["identified", "open", "combined", "known"]
"""How a log determines a parameter: alone; not, though it could; only together with others, or never; it was known."""


@dataclass(frozen=True, slots=True)
class ParameterEstimate(Renamed):
    """Estimate of a parameter.

    Attributes:
        name: of the parameter.
        unit: its SI unit.
        before: what it is by the model as it was.
        value: the estimate.
        plain: the estimate by least squares alone, which may be what no body can have.
        deviation: the standard deviation, with what was known before counted in; 0 of what was known.
        left: the share of the prior deviation that is left; all of it where nothing was open.
        how: how the log determines it: see `How`. Only what is identified has a deviation that is the log's; the value
            of what is combined is the one nearest to the model among many that the log cannot tell apart.
    """

    FORMER: ClassVar[Mapping[str, str]] = {"is_told": "is_identified"}

    name: str
    unit: str
    before: float
    value: float
    plain: float
    deviation: float
    left: float
    how: How


@dataclass(frozen=True, eq=False)
class Identification(Shown, Renamed):
    """Parameters identified from logs.

    Attributes:
        problem: the parameters.
        values: all parameters (n,): free ones physically consistent, where that was asked.
        plain: the same by least squares alone, which may be what no body can have.
        solution: the latter with its covariance, over the free parameters.
        fits: how well each reading is explained.
        stictions: what the friction of joints leaves open, None if nothing, by the names of their torques: see
            `with_stiction`.
        combinations: those that are identifiable, in the order of the base parameters.
        directions: the share of the prior deviation that is left along independent directions, the best identified
            first.
        doubts: what is implausible, in sentences.
        remarks: what was done, and what else there is to say.
        n_samples: number of samples.
        is_physical: whether `values` are inertias that bodies can have.
        prior_covariance: of the free parameters (n_free, n_free).
        logs: names of the logs, with those that carry the load.
        held_out: what the fit was judged on, in words; "" where nothing was held out.
        curves: readings over the time, where that was asked for.

    Example:
        >>> arm = nd.autotree(2)
        >>> t = np.arange(0.0, 5.0, 0.01)
        >>> q = np.stack([np.sin(2 * t), np.sin(3 * t)], axis=1)
        >>> qd, qdd = np.gradient(q, t, axis=0), -q * np.array([4.0, 9.0])
        >>> tau = nd.compile(nd.rnea, arm).batch(q, qd, qdd) + np.array([0.0, 0.7])
        >>> np.savez("log.npz", t=t, q=q, qd=qd, qdd=qdd, tau=tau)
        >>> found = nd.identify("log.npz", arm, ["offsets"])
        >>> print({name: round(offset, 3) for name, offset in found.offsets.items()})
        {'tau:joint1': 0.0, 'tau:joint2': 0.7}
        >>> found.estimates[1].how, found.held_out
        ('identified', 'the last 33 % of each log')
    """

    FORMER: ClassVar[Mapping[str, str]] = {"found": "estimates", "n_told": "n_identified"}

    problem: IdentificationProblem
    values: Floats
    plain: Floats
    solution: Solution
    fits: tuple[ReadingFit, ...]
    stictions: Mapping[str, Stiction | None]
    combinations: tuple[BaseParameterEstimate, ...]
    directions: Floats
    doubts: tuple[str, ...]
    remarks: tuple[str, ...]
    n_samples: int
    is_physical: bool
    prior_covariance: Floats
    logs: tuple[str, ...]
    held_out: str
    curves: tuple[Curves, ...] = ()

    @property
    def parameters(self) -> Parameters:
        """The parameters of the robot."""
        return self.problem.parameters

    @property
    def base(self) -> BaseParameters:
        """Which combinations of them are identifiable."""
        return self.problem.base

    @property
    def notes(self) -> tuple[str, ...]:
        """What is implausible, and what else there is to say, in sentences."""
        return (*self.doubts, *self.remarks)

    @cached_property
    def robot(self) -> KinematicTree:
        """The robot with the identified parameters; offsets, gains and a load are no part of it."""
        return self.parameters.applied(self.values[: len(self.parameters)])

    def with_stiction(self, robot: str = "") -> KinematicTree:
        """The robot with what its friction leaves open, see `nd.components.Friction`: `stiction` of each joint.

        Harmonics of joints have their `covariance`, all other parameters given, see `nd.components.Harmonics`.

        The scatter of a joint that moves is what is left of its torque, of what was held out where something was.
        Identify with `moving` for that, or the torques of joints at rest are in it. With a `cutoff` besides, ripple is
        the noise of torques that they have in motion alone; that at rest is the `sigma` of their sensor. Drift is how
        much viscous friction differs from log to log, of those held out where these are others.

        Args:
            robot: which, of several; the first when left out.

        Raises:
            InputError: no reading is the torque of a joint with friction, "tau:JOINT".

        Source: docs/design.md, 4.13.
        """
        tree = self.robots[robot] if robot else self.robot
        found: list[RobotComponent] = []
        for component in tree.components:
            joints = [tree.joint_names[i] for i in component.joints_on(tree)] if isinstance(component, OnJoints) else []
            if isinstance(component, Friction):
                found += (self._with_open_friction(component, joint) for joint in joints)
            elif isinstance(component, Harmonics):
                found += (self._with_covariance(component, joint, robot) for joint in joints)
            else:
                found.append(component)
        return tree.replace(components=found)

    def _with_open_friction(self, friction: Friction, joint: str) -> Friction:
        if f"tau:{joint}" not in self.stictions:
            read = listed(fit.name for fit in self.fits)
            raise InputError(
                f"no reading tau:{joint} is among those that were identified from ({read}), so that "
                f"nothing tells how far the torque of '{joint}' is from its friction."
            )
        stiction = self.stictions[f"tau:{joint}"] if friction.has_level else None
        return friction.model_copy(update={"joints": joint, "stiction": stiction})

    def _with_covariance(self, harmonics: Harmonics, joint: str, robot: str) -> Harmonics:
        shared = [f"{kind}:{joint}" for kind in harmonics.COEFFICIENTS]
        names = [own if (own := f"{name}@{robot}") in self.each else name for name in shared]
        if not {*names} <= {*self._free_names}:
            return harmonics.model_copy(update={"joints": joint})
        places = [self._free_names.index(name) for name in names]
        information = np.linalg.inv(self._correlations)[np.ix_(places, places)]
        sizes = self.solution.deviations[places]
        covariance = np.linalg.inv(information) * np.outer(sizes, sizes)
        return harmonics.model_copy(update={"joints": joint, "covariance": covariance.tolist()})

    @cached_property
    def robots(self) -> dict[str, KinematicTree]:
        """Of logs of several robots of one type, each by its name: inertias are shared, friction is its own."""
        n, found = len(self.parameters), {}
        for k, name in enumerate(self.problem.robots):
            values = self.values[:n].copy()
            values[list(self.problem.own)] = self.values[self.problem.own_of(k)]
            found[name] = self.parameters.applied(values)
        return found

    @property
    def has_robot(self) -> bool:
        """Whether parameters of the robot are free, and not only those of sensors and of a load."""
        kinds = {self.problem.all_parameters[k].kind for k in self.problem.free if k < len(self.parameters)}
        return bool(kinds - {*OF_READINGS})

    @cached_property
    def each(self) -> dict[str, float]:
        """The value of each parameter, by its name."""
        return {each.name: each.value for each in self.estimates}

    @cached_property
    def deviations(self) -> dict[str, float]:
        """The standard deviation of each parameter by its name, 0 of known ones; prior knowledge is counted in."""
        return {each.name: each.deviation for each in self.estimates}

    @property
    def prior(self) -> tuple[PriorCheck, ...]:
        """Tests of the prior of each link, and of each other parameter."""
        return self.solution.checks

    @property
    def n_identified(self) -> int:
        """The number of independent directions that the log determines better than they were known."""
        return int(np.count_nonzero(self.directions < IDENTIFIED))

    @cached_property
    def offsets(self) -> dict[str, float]:
        """The offset of each reading that has one."""
        return self._of("offset")

    @cached_property
    def gains(self) -> dict[str, float]:
        """The gain of each reading that has one."""
        return self._of("gain")

    def calibrated(self, mapping: LogMapping | None = None, robot: str = "") -> LogMapping:
        """The mapping by which logs have the identified offsets and gains of readings: `nd.tools.save_mapping`.

        Args:
            mapping: that of the logs that these were identified from, where they had one.
            robot: whose, of several; those of the first when left out.

        Raises:
            InputError: neither offsets nor gains were identified.
            UnknownNameError: there is no such robot.

        Example:
            >>> arm, t = nd.autotree(1).replace(gravity=(0.0, -9.81, 0.0)), np.arange(0.0, 5.0, 0.01)
            >>> q, qd, qdd = (np.sin(2 * t + k * np.pi / 2)[:, None] * 2**k for k in range(3))
            >>> tau = nd.compile(nd.rnea, arm).batch(q, qd, qdd)
            >>> np.savez("log.npz", t=t, q=q, qd=qd, qdd=qdd, tau=(tau + 0.7) / 11.5)
            >>> found = nd.identify("log.npz", arm, ["gains", "offsets"])
            >>> drive = found.calibrated().calibration["tau:joint1"]
            >>> round(drive.gain, 4), round(drive.offset, 4)
            (11.5, 0.7)
        """
        before = LogMapping() if mapping is None else mapping
        if robot and robot not in self.problem.robots:
            raise UnknownNameError("robot", robot, self.problem.robots, "the logs")
        gains, offsets = (self._of(kind, robot) for kind in ("gain", "offset"))
        names = dict.fromkeys((*gains, *offsets))
        if not names:
            raise InputError("no offset or gain of a reading was identified: ask for `offsets`, `gains`.")
        own = {
            name: Calibration(gain=gains.get(name, 1.0), offset=offsets.get(name, 0.0)).after(
                before.calibration.get(name, Calibration())
            )
            for name in names
        }
        return before.model_copy(update={"calibration": {**before.calibration, **own}})

    @cached_property
    def load(self) -> dict[str, float]:
        """The parameters of the load, by their names."""
        return {p.name: self.each[p.name] for p in self.problem.all_parameters if p.owner == LOAD}

    def payload(self, frame: str) -> Payload:
        """What the robot carries: the load, or what a link is beyond its model, in coordinates of a frame.

        Args:
            frame: the flange, as the vendor has it: a frame on that link, such as "tool0".

        Raises:
            InputError: a frame of another link than the load's; nothing was identified of the link, or only in sums
                with other links; or it weighs less than by its model.
            UnknownModelNameError: there is no such frame.
        """
        tree, on = self.problem.tree, self.problem.load_on
        at = tree.frame(frame)
        link = on or ("" if at.on_world else tree.names[at.link])
        owner = LOAD if on else link
        names = f"m:{owner}", *(f"mc:{owner}.{axis}" for axis in "xyz")
        wanted = [each for each in self.estimates if each.name in names]
        in_sums = [each.name for each in wanted if each.how == "combined"]
        if not wanted or in_sums:
            what = f"{', '.join(in_sums)}: only in sums, if at all," if in_sums else "nothing"
            raise InputError(
                f"{what} was identified of the payload of '{link}'. Give a log without it and one with it, loaded and "
                "load_on (--loaded, --load-on), or what is known of it (--known mc:load.z=0.05)."
            )
        if on is not None:
            return Payload.of(tree, inertia_of_ten([*self.load.values()]), on, frame)
        return Payload.of(tree, self.robot.I[at.link] - tree.I[at.link], link, frame)

    @cached_property
    def estimates(self) -> tuple[ParameterEstimate, ...]:
        """The estimate of each parameter, those of the load last."""
        problem, values = self.problem, zip(self.values.tolist(), self.plain.tolist(), strict=True)
        before = self.problem.before.copy()
        before[: len(self.parameters)] = self.parameters.prior
        before[[each.owner == LOAD for each in problem.all_parameters]] = 0.0  # a load has none
        prior = np.sqrt(np.diag(self.prior_covariance)).tolist()
        free = dict(zip(problem.free.tolist(), zip(self.solution.deviations.tolist(), prior, strict=True), strict=True))
        found = []
        for k, (parameter, (value, plain)) in enumerate(zip(problem.all_parameters, values, strict=True)):
            deviation, before_it = free.get(k, (0.0, 1.0))
            left = deviation / before_it
            how: How = "known"
            if k in free:
                how = "combined" if not problem.identifiable_alone[k] else "identified" if left < IDENTIFIED else "open"
            found.append(
                ParameterEstimate(parameter.name, parameter.unit, float(before[k]), value, plain, deviation, left, how)
            )
        return tuple(found)

    def correlation(self, first: str, second: str) -> float:
        """Correlation of two free parameters, by their names.

        Raises:
            UnknownNameError: there is no such free parameter.
        """
        names = self._free_names
        for name in (first, second):
            if name not in names:
                raise UnknownNameError("parameter", name, names, "what was looked for")
        return float(self._correlations[names.index(first), names.index(second)])

    def covariance_of(self, names: Sequence[str]) -> Floats:
        """Covariance (n, n) of some parameters, by their names; zero of what was known."""
        all_names = [each.name for each in self.problem.all_parameters]
        every = np.zeros((len(all_names), len(all_names)))
        every[np.ix_(self.problem.free, self.problem.free)] = self.solution.covariance
        chosen = [all_names.index(name) for name in names]
        return every[np.ix_(chosen, chosen)]

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON has it: plain dictionaries, lists and numbers, units of SI."""
        return {
            "robot": self.problem.tree.name,
            "logs": list(self.logs),
            "held_out": self.held_out,
            "samples": self.n_samples,
            "parameters_looked_for": len(self.problem.free),
            "combinations_of_sensors": self.base.rank,
            "directions_identified": self.n_identified,
            "directions_left": self.directions.tolist(),
            "is_physical": self.is_physical,
            "notes": list(self.notes),
            "prior": [asdict(check) for check in self.prior],
            "fits": [asdict(fit) for fit in self.fits],
            "parameters": [asdict(each) for each in self.estimates],
            "combinations": [asdict(each) | {"is_identified": each.is_identified} for each in self.combinations],
            "correlations": {"names": list(self._free_names), "matrix": self._correlations.tolist()},
        }

    def __repr__(self) -> str:
        counts = f"{self.n_identified} of {len(self.directions)} combinations identified"
        return f"Identification('{self.problem.tree.name}', {counts}, {self.n_samples:,} samples)"

    @cached_property
    def _free_names(self) -> tuple[str, ...]:
        return tuple(self.problem.all_parameters[k].name for k in self.problem.free)

    @cached_property
    def _correlations(self) -> Floats:
        C = self.solution.covariance
        deviations = np.sqrt(np.diag(C))
        return np.asarray(C / np.outer(deviations, deviations))

    def _of(self, kind: str, robot: str = "") -> dict[str, float]:
        of = self.parameters.each, [p for p in self.problem.all_parameters if p.robot == robot and robot]
        return {p.owner: self.each[p.name] for each in of for p in each if p.kind == kind}
