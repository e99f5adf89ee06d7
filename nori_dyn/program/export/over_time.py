"""Filters as C: the steps of a tick, which are those that run in this process, and what stands around them.

Each contact state has three files: the straight-line programs of its rows and of its outputs, and its steps. One more
chooses among the states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nori_dyn.algebra.counting import Cost
from nori_dyn.errors import PlanError, named_contacts
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.model.tree import QUATERNION_TOLERANCE
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.export.files import MOST_CONTACTS, CExport, identified, printed
from nori_dyn.program.export.guards import output_limits, working_configuration
from nori_dyn.program.export.header import conventions, declared, member
from nori_dyn.program.export.interface import Interface, known
from nori_dyn.program.export.names import comment_text
from nori_dyn.program.export.routine import OF_FILTERS, OF_PROGRAMS, Routine, copied, routine, solving_program
from nori_dyn.program.export.statuses import FILTER_STATUSES
from nori_dyn.program.export.text import MARK, comment, numbers, rendered, table
from nori_dyn.program.filter_step import TickShape, tick_source
from nori_dyn.program.lowering import solution_program
from nori_dyn.program.program import Program
from nori_dyn.program.tracing import Traced
from nori_dyn.typing import Floats

BESIDES = 6
"""Doubles of a filter that are in none of its arrays: totals, numbers of states, a time."""

JUDGED = ("nis", "degrees", "log_likelihood")
"""What tells whether readings fit what was known before them."""


@dataclass(frozen=True, slots=True, eq=False)
class TickParts:
    """What a filter does at a tick, in one contact state.

    Attributes:
        plan: the plan whose outputs are wanted, over the system with its sensors.
        solving: what computes them, given what exact rows leave free.
        rows: what computes the numbers of weighed rows and of rates, of q, qd and y.
        shape: the steps.
        free_names: the name of each number that is free, those that persist last.
        memory_units: the unit of each number that persists.
        first_root: one over the standard deviation of each of these at first; 0 where nothing is known (k,).
        first_z: its mean, times that (k,).
    """

    plan: EliminationPlan
    solving: EliminationPlan
    rows: Traced
    shape: TickShape
    free_names: tuple[str, ...]
    memory_units: tuple[str, ...]
    first_root: Floats
    first_z: Floats

    @property
    def memory_names(self) -> tuple[str, ...]:
        """The name of each number that persists."""
        return self.free_names[self.shape.steps.n_s :]


@dataclass(frozen=True, slots=True, eq=False)
class StateRoutines:
    """The files of a contact state.

    Attributes:
        suffix: what its functions end with.
        rows: the straight-line program of its rows.
        outputs: that of its outputs.
        file: the name of the file of its steps.
        text: that file.
    """

    suffix: str
    rows: Routine
    outputs: Routine
    file: str
    text: str

    @property
    def cost(self) -> Cost:
        """Operations of the straight-line programs."""
        return self.rows.cost + self.outputs.cost


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CFilter(CExport):
    """A filter as C.

    Attributes:
        states: the files of each contact state.
        length: that of a filter in doubles.
    """

    states: tuple[StateRoutines, ...]
    length: int

    @property
    def cost(self) -> Cost:
        """Operations of the straight-line programs of a tick; of contact states, of that which needs the most."""
        return max((state.cost for state in self.states), key=lambda cost: cost.total)

    @property
    def n_states(self) -> int:
        """See `CExport`."""
        return len(self.states)

    @property
    def n_sines(self) -> int:
        """Sines and cosines of a tick; the most of any contact state."""
        return max(state.rows.n_sines + state.outputs.n_sines for state in self.states)

    @property
    def n_work(self) -> int:
        """Length of a filter in doubles."""
        return self.length


def c_filter(
    parts: Mapping[ContactState, TickParts],
    contacts: Sequence[str],
    dt: float,
    longest: float,
    sensors: str,
    name: str | None = None,
    version: str = "",
) -> CFilter:
    """Return a filter as C.

    Args:
        parts: what it does at a tick, in each contact state; one, of no contacts, where there are none.
        contacts: the names of all contacts.
        dt: usual time between ticks [s].
        longest: the longest time over which rates are known [s].
        sensors: what the sensors are called.
        name: what to call the files, functions and types; from the robot's name when left out.
        version: of the program that makes it, for the header.

    Raises:
        IdentifierError: the name is not an identifier of C, or one that is taken.
        PlanError: there are more contacts than an enum of C has bits.
    """
    if len(contacts) > MOST_CONTACTS:
        raise PlanError(
            f"sensors '{sensors}' have {len(contacts)} contacts: exported code has room for {MOST_CONTACTS}."
        )
    first, plans = next(iter(parts.values())), {state: own.plan for state, own in parts.items()}
    name = identified(first.plan, name)
    whole = Interface.of_set(plans, contacts, name, sensors) if contacts else Interface.of(first.plan, name)
    free = list(dict.fromkeys(x for own in parts.values() for x in own.free_names))
    interface = whole.over_time(first.solving, first.memory_names, free)
    suffixes = [f"_{state}" for state in interface.state_names] if contacts else [""]
    states = [
        _state(own, interface, number, suffix, longest, [free.index(x) for x in own.free_names])
        for number, (own, suffix) in enumerate(zip(parts.values(), suffixes, strict=True))
    ]
    sizes = _sizes(list(parts.values()), states)
    code = {f"{name}.c": rendered("filter.c.jinja", it=interface, states=states, statuses=FILTER_STATUSES)}
    for state in states:
        code |= {file.file: file.text for file in (state.rows, state.outputs)} | {state.file: state.text}
    n_outputs = sum(int(np.prod(shape)) for shape in interface.output_shapes.values()) + len(first.memory_names) + 3
    size = 8 * (sum(interface.input_sizes.values()) + n_outputs + sum(sizes.values()) + BESIDES)
    headers = {
        f"{name}.h": _header(interface, first, states, sizes, longest, version),
        f"{name}.hpp": rendered("filter.hpp.jinja", it=interface, size=size, monitor=None),
    }
    q, neutral = working_configuration(first.solving), interface.tree.neutral_configuration()
    example = rendered(
        "filter_main.c.jinja",
        it=interface,
        q=[(k, q[k].item()) for k in np.flatnonzero(q != neutral).tolist()],
        printed="".join(map(printed, interface.fields)),
        dt=dt,
    )
    independent = copied((*OF_PROGRAMS, *OF_FILTERS))
    inner = {f"{name}_parts.h": rendered("filter_parts.h.jinja", it=interface, states=states)}
    build = rendered("CMakeLists.txt.jinja", it=interface, sources=list(code), headers=list(headers))
    indices = {place: value for one in interface.enumerations for place, value in one.values.items()}
    if contacts:
        indices |= interface.contact_bits | interface.state_masks
    return CFilter(
        name=name,
        files={**headers, **inner, **code, **independent, "main.c": example, "CMakeLists.txt": build},
        inputs=interface.input_sizes,
        outputs=interface.output_shapes | {"memory": (len(first.memory_names),), **dict.fromkeys(JUDGED, ())},
        indices=indices,
        routines=tuple(file for state in states for file in (state.rows, state.outputs)),
        states=tuple(states),
        length=sum(sizes.values()) + BESIDES,
    )


def _state(
    of: TickParts, interface: Interface, number: int, suffix: str, longest: float, free_places: Sequence[int]
) -> StateRoutines:
    """Return the files of a contact state."""
    name = interface.name
    head = f"{name}{suffix and '_state'}{suffix}"
    rows = routine(
        Program(
            inputs={name: tuple(array.flat) for name, array in of.rows.inputs.items()},
            outputs=tuple(x for array in of.rows.outputs.values() for x in array.flat),
            pivots=tuple(guarded for guarded, _ in of.rows.guards),
        ),
        "straight.c.jinja",
        interface,
        (f"{head}_rows.c", f"{name}_compute_rows{suffix}"),
        [limit for _, limit in of.rows.guards],
        about="What readings say of what is free.",
    )
    fields, solving = [field.part for field in interface.fields], of.solving
    solution = solution_program(solving, output_columns(solving.system, solving.outputs).tolist())
    outputs = routine(
        replace(solving_program(solution, fields), quaternions=(), limbs=()),  # a tick has brought them to unit length
        "straight.c.jinja",
        interface,
        (f"{head}_outputs.c", f"{name}_compute_outputs{suffix}"),
        output_limits(solving, solution, fields),
        about="The outputs, given what is free.",
    )
    file = f"{head}_tick.c"
    about = [f"{file}: {MARK}; do not edit. What it computes, and how to call it, stands in {name}.h."]
    if interface.contacts:
        about += ["", f"Closed: {comment_text(named_contacts(interface.states[number]))}."]
        about += known(interface.systems[number], exactly=True)
    system, places = interface.systems[number], interface.places(number)
    text = rendered(
        "filter_tick.c.jinja",
        it=interface,
        system=system,
        about=comment(about),
        source=tick_source(of.shape, 1, alone=True),
        suffix=suffix,
        rows=rows.function,
        outputs=outputs.function,
        longest=longest,
        first_root=numbers(of.first_root.tolist()),
        first_z=numbers(of.first_z.tolist()),
        free_places=list(free_places),
        places=places,
        tolerance=QUATERNION_TOLERANCE,
    )
    return StateRoutines(suffix, rows, outputs, file, text)


def _sizes(parts: Sequence[TickParts], states: Sequence[StateRoutines]) -> dict[str, int]:
    """Return the length of each array of a filter: what the largest contact state needs."""
    shapes = [own.shape for own in parts]
    steps = [shape.steps for shape in shapes]
    k = steps[0].k
    return {
        "R": k * k,
        "z": k,
        "decay": k,
        "Q": k,
        "said": max(len(one.A) + one.p + len(one.X) + one.n_v for one in steps),
        "state": max(own.shape.n_motion + own.shape.n_y + own.plan.system.n_weights for own in parts),
        "free": max(shape.n_motion + len(shape.exact) + shape.steps.n for shape in shapes),
        "weights": max(one.p for one in steps),
        "u": max(one.n for one in steps),
        "pivots": max(one.n for one in steps),
        "work": max(one.n_work(1) for one in steps),
        "w": max(1, *(file.n_work for state in states for file in (state.rows, state.outputs))),
    }


def _header(
    interface: Interface,
    first: TickParts,
    states: Sequence[StateRoutines],
    sizes: Mapping[str, int],
    longest: float,
    version: str,
) -> str:
    """Return the header."""
    NAME = interface.NAME
    given = declared(interface)
    given["sizes"] |= {"N_MEMORY": (len(first.memory_names), "numbers that persist")}
    rows = zip(first.memory_names, first.memory_units, strict=True)
    more = [
        member(
            [
                "What persists, as it is estimated at the tick.",
                *table((f"memory[{k}]", comment_text(of), f"[{unit}]") for k, (of, unit) in enumerate(rows)),
            ],
            "memory",
            [f"{NAME}_N_MEMORY"],
        ),
        member(
            [
                "What the readings are off from what was expected of them, as a sum of squares over their expected "
                "spread: a chi-square of so many degrees of freedom where all that is told of noise is true."
            ],
            "nis",
            [],
        ),
        member(["Its degrees of freedom, a whole number."], "degrees", []),
        member(["The logarithm of the likelihood of the readings, given those before."], "log_likelihood", []),
    ]
    given["outputs"] = "\n\n".join([given["outputs"], *more])
    return rendered(
        "filter.h.jinja",
        about=comment(_about(interface, states, version)),
        statuses=FILTER_STATUSES,
        state=sizes,
        step=comment(_step(interface, longest)),
        **given,
    )


def _about(interface: Interface, states: Sequence[StateRoutines], version: str) -> Iterator[str]:
    name, NAME, tree = interface.name, interface.NAME, interface.tree
    contacts = f"{NAME}_CONTACT_..., " if interface.contacts else ""
    yield f"{name}.h: {f'{MARK} {version}'.strip()}; do not edit."
    yield ""
    yield (
        f"The robot {comment_text(tree.name)} with the sensors {comment_text(interface.inputs.name)}, over time: its "
        "accelerations, wrenches and torques, and what persists from tick to tick, from all readings up to it. A "
        "Kalman filter in square-root information form: exact, as all is linear once q and qd are given."
    )
    yield ""
    yield f"    static {name}_filter filter;"
    yield f"    static {name}_inputs in;"
    yield f"    static {name}_outputs out;"
    yield f"    {name}_init(&in); // once: the neutral configuration, weights"
    yield f"    {name}_filter_init(&filter); // once: what is known at first"
    yield "    // each tick, write in.q, in.qd, in.y"
    called = f"{name}_step(&filter, {contacts}&in, dt, &out) == {NAME}_OK"
    yield f"    if ({called}) // read out.{interface.fields[0].name}"
    yield ""
    yield conventions(tree)
    if not interface.contacts:
        yield from known(interface.systems[0], exactly=True)
    yield ""
    yield "Operations of a tick, but those of the steps of the filter: " + (
        "in each contact state, by the contacts that are closed."
        if interface.contacts
        else f"{states[0].cost.total:,} additions, multiplications and divisions."
    )
    if interface.contacts:
        yield from table(
            (comment_text(named_contacts(state)), f"{own.cost.total:,}")
            for state, own in zip(interface.states, states, strict=True)
        )


def _step(interface: Interface, longest: float) -> Iterator[str]:
    NAME = interface.NAME
    with_contacts = ", with some contacts closed" if interface.contacts else ""
    yield f"Take in the readings of one tick, a time dt [s] after the last{with_contacts}."
    yield ""
    yield (
        "dt may vary; at the first tick any will do. A reading that is missing has a weight of 0, and any finite "
        f"value; the weights of what is known at first have no part. Where dt is above {longest:g}, the motion in "
        "between is not known: what has a rate is forgotten, and what walks has walked for as long."
    )
    if interface.contacts:
        yield ""
        yield (
            "Of y and the weights only what the contact state reads is looked at: the rest may be anything. What "
            "persists goes on from one contact state to another."
        )
    yield ""
    yield (
        f"Returns {NAME}_OK, or why there is no estimate: then every number of out is NaN, and what is known goes on "
        "without the readings of this tick; what has a rate is not known then before it is read again. Where it is "
        f"{NAME}_UNDETERMINED, the readings tell what they can. Where "
        f"the status is {NAME}_TIME_NOT_POSITIVE{f' or {NAME}_UNPLANNED_CONTACTS' if interface.contacts else ''}, "
        "nothing was done."
    )
    yield ""
    yield (
        "A call allocates nothing, takes no lock, and keeps nothing but in the filter. The structs must not overlap. "
        "Threads may call it at once, each with structs of its own."
    )
