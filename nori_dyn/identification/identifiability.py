"""Identifiability of a robot's parameters from some sensors: alone, in combinations, or never."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

from nori_dyn.identification.base_parameters import BaseParameters, base_parameters
from nori_dyn.identification.elimination import row_names
from nori_dyn.identification.parameters import Parameters
from nori_dyn.identification.regression import regressions_of
from nori_dyn.renamed import Renamed
from nori_dyn.system.builder import System
from nori_dyn.system.given import check_system
from nori_dyn.tables import Shown

Identifiable: TypeAlias = Literal["alone", "combined", "never"]
"""How a parameter is identifiable: by itself, only together with others, or not at all."""


@dataclass(frozen=True, slots=True)
class BaseParameter:
    """An identifiable sum of parameters.

    Attributes:
        name: of the parameter that stands for it, whose factor is 1.
        terms: the factor of each parameter, that one first.
    """

    name: str
    terms: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CommonFactor:
    """Parameters that are identifiable up to one factor, which is the same for all.

    Attributes:
        name: the parameter that would be identifiable with the factor.
        others: the parameters that are multiplied by it besides, or those that stand for a combination that is.
    """

    name: str
    others: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Identifiability(Shown, Renamed):
    """Identifiability of a robot's parameters from some sensors, however long it moves.

    Attributes:
        robot, sensors: their names.
        base: the combinations, as numbers.
        unknowns: the components of wrenches that no sensor reads by itself.
        rows: the names of the rows that depend on parameters.
    """

    FORMER: ClassVar[Mapping[str, str]] = {"told": "identifiable"}

    robot: str
    sensors: str
    base: BaseParameters
    unknowns: tuple[str, ...]
    rows: tuple[str, ...]

    @property
    def parameters(self) -> Parameters:
        """All parameters that were asked for."""
        return self.base.parameters

    @property
    def still(self) -> tuple[str, ...]:
        """The joints that do not move."""
        return self.base.locked

    @property
    def rank(self) -> int:
        """The number of identifiable combinations."""
        return self.base.rank

    @property
    def error(self) -> float | None:
        """Bound on the probability that something here is wrong; None where the rank is numerical."""
        return self.base.error

    @cached_property
    def identifiable(self) -> Mapping[str, Identifiable]:
        """How each parameter is identifiable, by its name; those with a common factor, once that is known."""
        base, names = self.base, self.parameters.names
        found: dict[str, Identifiable] = dict.fromkeys(names, "never")
        for k, column in enumerate(base.independent):
            found[names[column]] = "combined" if base.K[k].any() else "alone"
        found |= {names[column]: "combined" for k, column in enumerate(base.dependent) if base.K[:, k].any()}
        return found | {names[column]: "never" for column, others in base.ties.items() if not others}

    @cached_property
    def combinations(self) -> tuple[BaseParameter, ...]:
        """The combinations of several parameters; factors are those at one posture of the joints that do not move."""
        every = map(self.base.terms, range(len(self.base.independent)))
        return tuple(BaseParameter(next(iter(terms)), terms) for terms in every if len(terms) > 1)

    @cached_property
    def common_factors(self) -> tuple[CommonFactor, ...]:
        """What is identifiable up to a factor only, as no reading gives a force in absolute terms."""
        names = self.parameters.names
        ties = self.base.ties.items()
        return tuple(CommonFactor(names[tied], tuple(names[k] for k in others)) for tied, others in ties if others)

    def names_of(self, how: Identifiable) -> tuple[str, ...]:
        """The parameters that are identifiable in some way."""
        return tuple(name for name, each in self.identifiable.items() if each == how)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        return {
            "robot": self.robot,
            "sensors": self.sensors,
            "rank": self.rank,
            "error": self.error,
            "parameters": [
                {"name": each.name, "kind": each.kind, "of": each.owner, "unit": each.unit}
                | {"identifiable": self.identifiable[each.name]}
                for each in self.parameters.each
            ],
            "combinations": [{"name": each.name, "terms": dict(each.terms)} for each in self.combinations],
            "common_factors": [{"name": each.name, "others": list(each.others)} for each in self.common_factors],
            "still": list(self.still),
            "unknown_wrenches": {"components": list(self.unknowns), "eliminated": self.base.n_unknown},
            "rows": list(self.rows),
        }

    def __repr__(self) -> str:
        counts = f"{self.rank} combinations of {len(self.parameters)} parameters"
        return f"Identifiability('{self.sensors}' on '{self.robot}', {counts})"


def identifiability(
    system: System | Sequence[System],
    parameters: str | Iterable[str] = ("inertias",),
    locked: str | Iterable[str] = (),
    seed: int = 0,
) -> Identifiability:
    """Decide which parameters of a robot are identifiable from its sensors: alone, in which combinations, or never.

    The motion is taken to be known, and as rich as it can be; a log may identify fewer. The rank is exact: elimination
    over a prime field at random motions, no tolerance, wrong with probability `error`. Of a robot with loops or
    couplings it is taken in doubles, at random closed motions.

    Args:
        system: the robot and its sensors, for one 'identification' or 'identification_floating'; or those of each
            contact state that occurs, which identify together.
        parameters: words ("inertias", "friction", "rotors", "springs", "offsets", "gains"), names such as "m:forearm",
            or patterns, "viscous:l_*". Offsets that the sensors declare are among them by themselves. All others are
            taken to be what the model says.
        locked: joints that stand still, at almost any position.
        seed: seed of the random motions.

    Raises:
        WrongKindError: not a system.
        UnknownNameError: a parameter that does not exist.
        UnknownModelNameError: a joint that the robot does not have.
        InputError: no sensor says anything of forces.
        NotClosedError: loops that cannot be closed.

    Source: Gautier (1991) for the problem; docs/design.md, 4.11.

    Example:
        >>> arm = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))  # it moves in a vertical plane
        >>> found = nd.identifiability(nd.System(arm, "identification"), ["inertias", "rotors"])
        >>> found.rank, len(found.parameters)
        (7, 22)
        >>> found.combinations[1].terms
        {'mc:link1.x': 1.0, 'm:link2': 1.0}
        >>> found.identifiable["rotor:joint2"], found.identifiable["I:link2.xx"]
        ('alone', 'never')
    """
    systems = [*system] if isinstance(system, Sequence) else [system]
    checked: Sequence[object] = systems or [system]
    for each in checked:
        check_system(each, "nd.identifiability")
    wanted = [parameters] if isinstance(parameters, str) else list(parameters)
    regressions = regressions_of(systems, wanted, seed)
    base = base_parameters(regressions, (locked,) if isinstance(locked, str) else locked, seed)
    unknowns = tuple(dict.fromkeys(name for each in regressions for name in each.unknowns))
    sensors = " | ".join(each.sensors.name for each in systems)
    return Identifiability(systems[0].tree.name, sensors, base, unknowns, row_names(regressions))
