"""Do these sensors suffice? The report: rank for almost all q, what is not determined, and the poses that lose rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from nori_dyn.errors import InputError, NoConfigurationError, WrongKindError
from nori_dyn.model.tree import NamedFrame
from nori_dyn.observe.additions import Addition, additions
from nori_dyn.observe.generic import generic_rank
from nori_dyn.observe.learned import Learned, learned
from nori_dyn.observe.learned_exact import MemoryGiven, with_memory
from nori_dyn.observe.null_space import NullVector, UnobservableSubspace, partly_seen, unseen
from nori_dyn.observe.numeric import Reduction, checked_configurations
from nori_dyn.observe.poses import configurations_where, special_pose
from nori_dyn.observe.sweep import one_thread
from nori_dyn.planning.outputs import output_columns, resolve_outputs
from nori_dyn.planning.repeats import remove_repeats
from nori_dyn.system.builder import System
from nori_dyn.system.given import check_system
from nori_dyn.tables import Shown
from nori_dyn.typing import Floats, Indices

LOOKS = 3
"""Configurations at which a null space is looked at, and of each special pose."""

MOST_CONTACTS = 4
"""Places with partly known wrenches above which their poses are not looked for unasked."""

MOST_UNSEEN = 12
"""Deficiency above which special poses are not looked for unasked."""

Frames: TypeAlias = Sequence[str | NamedFrame]
Where: TypeAlias = Mapping[str, Frames | None] | Literal["auto"] | None


@dataclass(frozen=True, slots=True, eq=False)
class RankWhere:
    """The rank at configurations that satisfy a condition.

    Attributes:
        condition: its name, as for `configurations_where`.
        frames: what the frames that it is on are called.
        meaning: in words.
        configurations: where the rank was taken (n, nq).
        ranks: the rank at each (n,).
        smallest: the smallest singular value that counts, relative to the largest, at each (n,).
        lost: how many ranks are lost against almost all configurations, at the worst of these.
        unseen: what is not seen at the worst of them; empty where no rank is lost.
    """

    condition: str
    frames: tuple[str, ...]
    meaning: str
    configurations: Floats
    ranks: Indices
    smallest: Floats
    lost: int
    unseen: tuple[UnobservableSubspace, ...]

    @property
    def always(self) -> bool:
        """Whether rank is lost at each of the configurations."""
        return self.lost > 0 and bool((self.ranks == self.ranks.min()).all())


@dataclass(frozen=True, slots=True, eq=False)
class ObservabilityReport(Shown):
    """Whether a set of sensors determines d.

    Attributes:
        robot, sensors: their names.
        n_rows, n_variables: number of scalar equations and unknowns.
        generic_rank: rank of D for almost all q, exactly; of a robot with loops or couplings the largest at some closed
            configurations, in doubles.
        structural_rank: what the pattern alone would allow.
        error: bound on the probability that the generic rank, or what is not determined, is wrong; None where these are
            numerical.
        gap: where they are, how many times smaller than others singular values are that are taken as zero.
        numerical_rank: the largest rank found in doubles, at random configurations; below the generic rank where
            the sensors suffice in exact arithmetic only.
        unobservable: names of the numbers of d that are not determined for almost all q, "fx:l_sole.mz".
        unseen: the null space for almost all q, by independent parts, in words.
        configurations: those given (N, nq).
        rank_at: the rank at each (N,).
        smallest_at: the smallest singular value that counts there, relative to the largest, in natural units (N,).
        gap_at: how many times smaller the next one is, which is taken as zero (N,); infinite at full rank.
        conditions: the rank at special poses.
        repeated: names of rows of loops and couplings that say what others say wherever these are closed.
        skipped: special poses in words that were looked for unasked and that the robot cannot be in.
        over_time: what is learned of what persists, over several states; None where nothing persists.
        additions: what to add so that d is determined at almost every pose, exactly, and, where that takes more, at the
            special poses as well; empty where nothing is missing, or so much that the search was given up.
        system: what it is of.
        asked: by each output that is asked for the names of its numbers in d.
    """

    robot: str
    sensors: str
    n_rows: int
    n_variables: int
    generic_rank: int
    structural_rank: int
    error: float | None
    gap: float
    numerical_rank: int
    unobservable: tuple[str, ...]
    unseen: tuple[UnobservableSubspace, ...]
    configurations: Floats
    rank_at: Indices
    smallest_at: Floats
    gap_at: Floats
    conditions: tuple[RankWhere, ...]
    repeated: tuple[str, ...]
    skipped: tuple[str, ...]
    over_time: Learned | None
    additions: tuple[Addition, ...]
    system: System
    asked: Mapping[str, tuple[str, ...]]

    @property
    def deficiency(self) -> int:
        """Dimension of the null space for almost all q."""
        return self.n_variables - self.generic_rank

    @property
    def is_observable(self) -> bool:
        """Whether all of d is determined for almost all q."""
        return self.deficiency == 0

    @property
    def null_space(self) -> tuple[NullVector, ...]:
        """A basis of the null space at a sample configuration, by names."""
        return tuple(vector for part in self.unseen for vector in part.vectors)

    @property
    def loses_rank(self) -> tuple[RankWhere, ...]:
        """The special poses at which rank is lost."""
        return tuple(condition for condition in self.conditions if condition.lost)

    @property
    def suffices_over_time(self) -> bool:
        """Whether all of d is determined for almost all q, at once or as soon as what persists is learned."""
        return self.is_observable or (self.over_time is not None and self.over_time.suffices)

    def __repr__(self) -> str:
        rank = f"rank {self.generic_rank} of {self.n_variables}"
        return f"ObservabilityReport('{self.sensors}' on '{self.robot}', {rank})"


@one_thread()
def observability(
    system: System,
    configurations: Any = None,
    where: Where = "auto",
    seed: int = 0,
    n: int = LOOKS,
    memory: MemoryGiven = None,
    states: int | None = None,
    outputs: Sequence[str] = (),
) -> ObservabilityReport:
    """Report whether the rows of a system determine d: for almost all q, and at special poses.

    The generic rank and the names in `unobservable` are exact: elimination over a prime field, no tolerance, wrong with
    probability `error`. Ranks at configurations are numerical, in natural units; of a robot with loops or couplings all
    are, and taken at closed configurations: it can be at no others.

    Args:
        system: the system; it may have any number of rows, and those with a sigma count as rows.
        configurations: where to take the rank as well (N, nq); none when None.
        where: special poses at which to take the rank, {"parallel": ("l_sole", "r_sole")}, see
            `configurations_where`; None for none. "auto": all joints at zero, and where the wrenches on two to four
            links are not fully known, these with parallel normals and in one plane.
        seed: seed of everything random.
        n: number of configurations for each special pose.
        memory: what persists from state to state: entries as in a config's `memory`, or names and kinds of variables
            that stay as they are; what the sensors' own config says when None.
        states: over how many states what persists is to be learned, each at another pose; as many as tell anything
            when None.
        outputs: what is asked for above all, as for `nd.plan`: the verdict begins with it, and what is to be added is
            something else where it can be.

    Raises:
        WrongKindError: not a system.
        UnknownOutputError: an output that does not exist.
        InputError: configurations of the wrong shape, or not finite; a number of states that is none, or where nothing
            persists.
        SensorConfigError: memory that does not follow the schema of configs, or does not fit the robot.
        UnknownPoseError: no special pose of that name.
        NoConfigurationError: a pose asked for that the robot cannot be in.
        NotClosedError: loops that cannot be closed.

    Source: Nori VI, Property 3 and remark 5, for the problem; own derivation otherwise.

    Example:
        >>> motion = {"type": "joint_acceleration", "joints": "all"}
        >>> torques = {"type": "joint_torque", "joints": "all"}
        >>> unloaded = {"type": "external_wrench", "links": {"except": "link3"}, "value": 0}
        >>> sensors = nd.SensorSet.from_dict({"name": "touch", "measurements": [motion, torques, unloaded]})
        >>> report = nd.observability(nd.System(nd.autotree(3), sensors))
        >>> report.is_observable, report.deficiency
        (False, 3)
        >>> [part.words for part in report.unseen]  # three joints feel three of six
        ['mx, my, fz of the external wrench on link3']

        What persists may be learned over several poses: the wrench on the last link, as long as it stays.

        >>> touched = nd.observability(nd.System(nd.autotree(3, skew=1.0), sensors), memory=["fx:link3"])
        >>> touched.is_observable, touched.over_time.states, touched.suffices_over_time
        (False, 3, True)
    """
    check_system(system, "nd.observability")
    given: object = where
    if not isinstance(given, Mapping | None) and given != "auto":
        raise WrongKindError(
            "where=", "special poses with their frames", given, "write where={'parallel': ('l_sole', 'r_sole')}"
        )
    system = with_memory(system, memory)
    if states is not None and not system.memory:
        raise InputError(
            "states counts those over which the memory is learned, and the sensors have none. Give them one: memory: "
            'in the sensor config, or memory=["offset"].'
        )
    tree = system.tree
    asked = {output.name: output for output in (resolve_outputs(system, outputs) if outputs else ())}
    Q = np.zeros((0, tree.nq)) if configurations is None else checked_configurations(configurations, tree.nq)
    generic = generic_rank(system, seed)
    n_variables = system.shape[1]
    reduction = Reduction(system, seed)
    samples = generic.looks[:LOOKS] or tuple(tree.random_configurations(LOOKS, seed))
    sampled = reduction.ranks_at(samples)
    at = reduction.ranks_at(Q)
    deficiency = n_variables - generic.rank
    if where == "auto":
        wanted = _likely_poses(system) if deficiency <= MOST_UNSEEN else {}
    else:
        wanted = {name: frames or () for name, frames in (where or {}).items()}
    conditions, skipped = [], []
    for name, frames in wanted.items():
        try:
            poses = configurations_where(tree, name, frames, n, seed)
        except NoConfigurationError:
            if where != "auto":
                raise
            skipped.append(special_pose(name).meaning)
            continue
        names = tuple(frame if isinstance(frame, str) else frame.name for frame in frames)
        conditions.append(_rank_where(reduction, name, names, poses, generic.rank))
    return ObservabilityReport(
        robot=tree.name,
        sensors=system.sensors.name,
        n_rows=system.shape[0],
        n_variables=n_variables,
        generic_rank=generic.rank,
        structural_rank=generic.structural_rank,
        error=generic.error,
        gap=generic.gap,
        numerical_rank=max(found.rank for found in sampled),
        unobservable=tuple(name for name, moved in zip(system.variable_names, generic.moved, strict=True) if moved),
        unseen=unseen(reduction, samples, deficiency, generic.moved),
        configurations=Q,
        rank_at=np.array([found.rank for found in at], dtype=np.intp),
        smallest_at=np.array([found.smallest for found in at]),
        gap_at=np.array([found.gap for found in at]),
        conditions=tuple(conditions),
        skipped=tuple(skipped),
        repeated=remove_repeats(system, seed).system.of_components.repeated_names,
        over_time=learned(system, states, seed) if system.memory else None,
        additions=additions(system, generic, [c.unseen for c in conditions if c.lost], [*asked.values()]),
        system=system,
        asked={
            name: tuple(system.variable_names[k] for k in output_columns(system, [output]))
            for name, output in asked.items()
        },
    )


def _rank_where(reduction: Reduction, condition: str, frames: tuple[str, ...], Q: Floats, generic: int) -> RankWhere:
    found = reduction.ranks_at(Q)
    ranks = np.array([at.rank for at in found], dtype=np.intp)
    worst = int(ranks.min()) if len(ranks) else generic
    lost = generic - worst
    at_worst = [q for q, rank in zip(Q, ranks, strict=True) if rank == worst]
    parts = unseen(reduction, at_worst[:LOOKS], reduction.system.shape[1] - worst) if lost > 0 else ()
    meaning = special_pose(condition).meaning
    return RankWhere(
        condition=condition,
        frames=frames,
        meaning=f"{' and '.join(frames)} {meaning}" if frames else meaning,
        configurations=Q,
        ranks=ranks,
        smallest=np.array([at.smallest for at in found]),
        lost=max(lost, 0),
        unseen=parts,
    )


def _likely_poses(system: System) -> dict[str, Frames]:
    """The special poses at which a set of sensors is likely to lose rank."""
    frames = partly_seen(system)
    poses: dict[str, Frames] = {"at_zero": ()}
    if 2 <= len(frames) <= MOST_CONTACTS:
        poses |= {"parallel": frames, "coplanar": frames}
    return poses
