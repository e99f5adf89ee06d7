"""The refined system: the same equations with massless frames between the bodies, which cost fewer operations.

A link transform is a shift, turns in a plane, and the joint's own motion. With a massless frame after each, an
elimination carries forces and accelerations across one at a time, instead of by their product. The accelerations in it
are the conventional ones, of points instead of the spatial ones, so that no linear velocity is needed.

Every unknown and every row of D d + b = 0 is one here, under the same number; further ones follow. Where rows are
weighed, both are systems of optimality conditions; unknowns of d keep their numbers.

Source: docs/design.md, 4.4; Featherstone, RBDA ch. 2.11 for the conventional acceleration; own derivation otherwise
(tests/unit/system/test_refined.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from nori_dyn.algebra.expressions import Expr
from nori_dyn.algebra.ranges import numbers
from nori_dyn.model.internal_frames import internal_links
from nori_dyn.system.builder import System
from nori_dyn.system.massless_frames import Columns, FrameBuilder, MasslessFrames, Turn
from nori_dyn.system.optimality import Axes, NoisyRow, WeighedRow, optimality
from nori_dyn.system.rotated_rows import rotated_rows
from nori_dyn.system.rows import NewtonEuler
from nori_dyn.system.trace import (
    SymbolicSystem,
    symbolic_state,
    symbolic_system,
    trace,
)


@dataclass(frozen=True, slots=True, eq=False)
class RefinedSystem:
    """A square system whose unknowns include those of another.

    Attributes:
        symbolic: the refined system.
        original: the system as given, over the same expressions; its unknowns d come first in `symbolic`.
        n_variables: number of these.
        a, f: for each body the columns of its own acceleration and force, in its internal frame.
        velocities: for each body the numbers of its velocity, of that of the massless frames before it among them.
        definitions: the row that defines each unknown that others only pass on, by its column; the entry there is -1.
            So do rows with noise: their multipliers and what they define go by each other, with pivots of 1 or more.
        constraint_rows: the row of each force of a loop or coupling, by its column: that of the same direction. It is
            best eliminated with it, when what lies between is, as the equations of motion are symmetric about the two.
        duals: for each multiplier an unknown that goes together with it, by their columns.
        crossings: the massless frames of each body.
        turns: those after a turn in a plane.
        weighed: the rows that are weighed.
        summed: the same, vectors among them along the axes of the internal frames: the conditions are their sums.
        noisy: those that have noise instead.
        original_weighed, original_noisy: the same of the system as given.
    """

    symbolic: SymbolicSystem
    original: SymbolicSystem
    n_variables: int
    a: tuple[Columns, ...]
    f: tuple[Columns, ...]
    velocities: tuple[tuple[Expr, ...], ...]
    definitions: dict[int, int] = field(default_factory=dict)
    constraint_rows: dict[int, int] = field(default_factory=dict)
    duals: dict[int, int] = field(default_factory=dict)
    crossings: tuple[MasslessFrames, ...] = ()
    turns: tuple[Turn, ...] = ()
    weighed: tuple[WeighedRow, ...] = ()
    summed: tuple[WeighedRow, ...] = ()
    noisy: tuple[NoisyRow, ...] = ()
    original_weighed: tuple[WeighedRow, ...] = ()
    original_noisy: tuple[NoisyRow, ...] = ()


def refine(system: System, seed: int = 0, regroup: bool = False) -> RefinedSystem:
    """A system with massless frames.

    Args:
        system: the system.
        seed: seed of the random point of the fingerprints.
        regroup: whether to move inertia across joints, see `internal_links`; only where `can_regroup` holds.
    """
    state = symbolic_state(system, seed)
    builder = FrameBuilder(system, state, internal_links(system.tree, regroup and can_regroup(system)))
    for i in range(system.tree.n_links):
        builder.cross_joint(i)
    for i in range(system.tree.n_links):
        builder.balance_body(i)
    at = system.at(state.q, state.qd, state.y)
    if system.parts:
        builder.add_parts(at)
        builder.bias_of_components(at)
    original = trace(system, state=state)  # after the cheap expressions, so that it finds them
    builder.add_measurements(original)
    symbolic = symbolic_system(state, (builder.n_rows, builder.n), builder.entries, builder.b, builder.groups)
    exact = RefinedSystem(
        symbolic=symbolic,
        original=original,
        n_variables=system.shape[1],
        a=tuple(builder.a),
        f=tuple(builder.f),
        velocities=tuple(tuple(state.graph.expr(x) for v in own for x in v) for own in builder.velocities),
        definitions=builder.definitions,
        constraint_rows={} if system.is_weighted else system.constraint_rows(),
        crossings=tuple(builder.crossings),
        turns=tuple(builder.turns),
    )
    if not system.is_weighted:
        return exact
    given = optimality(state, original, builder.given_weighing, {})
    axes = Axes(rotated_rows(builder, at), builder.a, builder.w)
    conditions = optimality(state, symbolic, builder.weighing(), builder.definitions, axes)
    pairs = builder.paired_rows()
    return replace(
        exact,
        symbolic=conditions.symbolic,
        original=given.symbolic,
        definitions=conditions.definitions | builder.noisy_definitions(conditions),
        duals={multiplier: pairs[row] for row, multiplier in conditions.multipliers.items()},
        turns=tuple(_double_turn(turn, builder.definitions, conditions.multipliers) for turn in builder.turns),
        weighed=conditions.weighed,
        summed=conditions.summed,
        noisy=conditions.noisy,
        original_weighed=given.weighed,
        original_noisy=given.noisy,
    )


def as_given(system: System, seed: int = 0) -> RefinedSystem:
    """An exact system without massless frames: its own D, for an elimination in an order of D.

    Args:
        system: the system.
        seed: seed of the random point of the fingerprints.
    """
    state = symbolic_state(system, seed)
    symbolic = trace(system, state=state)
    at = system.at(state.q, state.qd, state.y)
    bodies = range(system.tree.n_links)
    return RefinedSystem(
        symbolic=symbolic,
        original=symbolic,
        n_variables=system.shape[1],
        a=tuple(tuple(numbers(system.column("a", i))) for i in bodies),
        f=tuple(tuple(numbers(system.column("f", i))) for i in bodies),
        velocities=tuple(tuple(state.graph.expr(x) for x in v) for v in at.v),
    )


def can_regroup(system: System) -> bool:
    """Whether inertia may be moved across joints: only where joints do not give way, so that (3a) is exact."""
    return all(system.row(NewtonEuler("a", i)).is_exact for i in range(system.tree.n_links))


def _double_turn(turn: Turn, definitions: dict[int, int], multipliers: dict[int, int]) -> Turn:
    """A turn with the multipliers that it turns as well."""
    of_a, of_f = (tuple(multipliers[definitions[c]] for c in columns) for columns in (turn.motions[0], turn.forces[0]))
    return replace(turn, motions=(*turn.motions, of_f), forces=(*turn.forces, of_a))
