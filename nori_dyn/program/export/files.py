"""All files of an export, of one plan or of the plans of contact states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nori_dyn.algebra.counting import Cost
from nori_dyn.errors import PlanError
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.export.guards import working_configuration
from nori_dyn.program.export.header import header
from nori_dyn.program.export.interface import Field, Interface
from nori_dyn.program.export.monitor import CMonitor
from nori_dyn.program.export.names import checked_identifier, default_identifier
from nori_dyn.program.export.routine import OF_PROGRAMS, Routine, copied, solving_routine
from nori_dyn.program.export.statuses import STATUSES
from nori_dyn.program.export.text import rendered
from nori_dyn.typing import Floats

MOST_CONTACTS = 31
"""Contacts that have a bit each in an enum of C."""


@dataclass(frozen=True, slots=True, eq=False)
class CExport:
    """A plan, or the plans of contact states, as C.

    Attributes:
        name: what the code is called, an identifier.
        files: the text of each file, by its name.
        inputs: the length of each input, by its field.
        outputs: the shape of each output, by its field; () for a single number.
        indices: the value of each enumerator that names a place, or a contact state.
        routines: what solves: one function, or one for each contact state.
        monitor: what judges a state; None where it was not asked for.
    """

    name: str
    files: Mapping[str, str] = field(repr=False)
    inputs: Mapping[str, int]
    outputs: Mapping[str, tuple[int, ...]]
    indices: Mapping[str, int] = field(repr=False)
    routines: tuple[Routine, ...] = field(repr=False)
    monitor: CMonitor | None = field(default=None, repr=False)

    @property
    def cost(self) -> Cost:
        """Operations of a call, sines and cosines not counted; of contact states, of that which needs the most."""
        return max((routine.cost for routine in self.routines), key=lambda cost: cost.total)

    @property
    def n_states(self) -> int:
        """Number of contact states; 1 where there are no contacts."""
        return len(self.routines)

    @property
    def n_sines(self) -> int:
        """Sines and cosines of a call; the most of any contact state."""
        return max(routine.n_sines for routine in self.routines)

    @property
    def n_pivots(self) -> int:
        """Number of guarded pivots; the most of any contact state."""
        return max(routine.n_pivots for routine in self.routines)

    @property
    def n_work(self) -> int:
        """Length of the workspace in doubles."""
        return max(routine.n_work for routine in self.routines)


def c_export(plan: EliminationPlan, name: str | None = None, version: str = "", monitor: bool = False) -> CExport:
    """Return a plan as C.

    Args:
        plan: the plan.
        name: what to call the files, functions and types; from the robot's name when left out.
        version: of the program that makes it, for the header.
        monitor: whether to export what judges estimates and readings, too.

    Raises:
        IdentifierError: the name is not an identifier of C, or one that is taken.
        PlanError: a monitor is asked for, and no row is weighed, or the equations of motion are.
    """
    name = identified(plan, name)
    interface = Interface.of(plan, name)
    solving = solving_routine(plan, interface, 0, f"{name}.c", f"{name}_solve")
    q = working_configuration(plan)
    return _export(interface, [solving], version, q, CMonitor(plan, interface) if monitor else None)


def c_set_export(
    plans: Mapping[ContactState, EliminationPlan],
    contacts: Sequence[str],
    sensors: str,
    name: str | None = None,
    version: str = "",
) -> CExport:
    """Return the plans of contact states as C: one file for each, and one function that chooses among them.

    Args:
        plans: the plan of each state, for one robot, with the same outputs.
        contacts: the names of all contacts.
        sensors: what the sensors are called.
        name: as for `c_export`.
        version: as for `c_export`.

    Raises:
        IdentifierError: the name is not an identifier of C, or one that is taken.
        PlanError: there are more contacts than an enum of C has bits.
    """
    if len(contacts) > MOST_CONTACTS:
        raise PlanError(
            f"sensors '{sensors}' have {len(contacts)} contacts: exported code has room for {MOST_CONTACTS}."
        )
    first = next(iter(plans.values()))
    name = identified(first, name)
    interface = Interface.of_set(plans, contacts, name, sensors)
    found = [
        solving_routine(plan, interface, number, f"{name}_state_{state}.c", f"{name}_solve_{state}")
        for number, (state, plan) in enumerate(zip(interface.state_names, plans.values(), strict=True))
    ]
    return _export(interface, found, version, working_configuration(first))


def identified(plan: EliminationPlan, name: str | None) -> str:
    """Return what code is called: a checked name, or one from the robot's."""
    return default_identifier(plan.system.tree.name) if name is None else checked_identifier(name)


def _export(
    interface: Interface, routines: Sequence[Routine], version: str, q: Floats, monitor: CMonitor | None = None
) -> CExport:
    """Return all files, the example with a configuration (nq,) of its own."""
    name = interface.name
    code = {routine.file: routine.text for routine in routines}
    headers = {f"{name}.h": header(interface, routines, version)}
    if interface.contacts:
        code[f"{name}.c"] = rendered("states.c.jinja", it=interface, routines=routines, statuses=STATUSES)
        headers[f"{name}_states.h"] = rendered("states.h.jinja", it=interface, routines=routines)
    if monitor is not None:
        code[monitor.routine.file] = monitor.routine.text
        headers[f"{name}_monitor.h"] = monitor.header
    headers[f"{name}.hpp"] = rendered(
        "class.hpp.jinja", it=interface, monitor=monitor, size=_size(interface, routines, monitor)
    )
    public = [file for file in headers if file != f"{name}_states.h"]
    neutral = interface.tree.neutral_configuration()
    example = rendered(
        "main.c.jinja",
        it=interface,
        q=[(k, q[k].item()) for k in np.flatnonzero(q != neutral).tolist()],
        printed="".join(map(printed, interface.fields)),
        monitored=monitor is not None,
    )
    build = rendered("CMakeLists.txt.jinja", it=interface, sources=list(code), headers=public)
    enumerations = [*interface.enumerations, *([monitor.readings] if monitor is not None else [])]
    indices = {name: value for one in enumerations for name, value in one.values.items()}
    if interface.contacts:
        indices |= interface.contact_bits | interface.state_masks
    return CExport(
        name=name,
        files={**headers, **code, **copied(OF_PROGRAMS), "main.c": example, "CMakeLists.txt": build},
        inputs=interface.input_sizes,
        outputs=interface.output_shapes,
        indices=indices,
        routines=tuple(routines),
        monitor=monitor,
    )


def _size(interface: Interface, routines: Sequence[Routine], monitor: CMonitor | None) -> int:
    """Return the bytes of all structs."""
    shapes = [*interface.output_shapes.values(), *(monitor.shapes.values() if monitor is not None else ())]
    work = max(routine.n_work for routine in routines) + (monitor.routine.n_work if monitor is not None else 0)
    return 8 * (sum(interface.input_sizes.values()) + sum(int(np.prod(shape)) for shape in shapes) + work)


def printed(field: Field) -> str:
    """Return the lines that print a field."""
    indices = "ij"[: len(field.sizes)]
    lines = [f"for (int {i} = 0; {i} < {size}; ++{i})" for i, size in zip(indices, field.sizes, strict=True)]
    place = field.name + "".join(f"[{i}]" for i in indices)
    arguments = ", ".join([*indices, f"out.{place}"])
    lines.append(f'printf("{field.name}{"[%d]" * len(indices)} = %.9g\\n", {arguments});')
    return "".join(f"{'    ' * depth}{line}\n" for depth, line in enumerate(lines, start=1))
