"""The header of exported code: its structs, what each number in them is, and what each place is called.

Names of the model and of its sensors stand in comments, in the fields of the outputs and in enumerators; see `names`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nori_dyn.errors import named_contacts
from nori_dyn.model.joints import FORCE, MOTION, UNITS, Joint
from nori_dyn.model.tree import QUATERNION_TOLERANCE, KinematicTree
from nori_dyn.program.export.interface import Field, Interface, known, velocity_names
from nori_dyn.program.export.names import comment_text
from nori_dyn.program.export.routine import Routine
from nori_dyn.program.export.statuses import STATUSES
from nori_dyn.program.export.text import MARK, comment, rendered, table
from nori_dyn.program.guards import PIVOT_STATES
from nori_dyn.program.limits import PIVOT_LIMIT, STEP_LIMIT
from nori_dyn.system.variables import LOAD, kind_in_words

ALL = {
    "a": "spatial accelerations of the links, angular [rad/s^2], then linear [m/s^2]",
    "f": "wrenches transmitted to the links through their joints, couple [N m], then force [N]",
    "tau": "joint torques and forces",
    "fx": "external wrenches on the links, couple [N m], then force [N]",
    "qdd": "joint accelerations, the time derivative of qd",
    LOAD: "torques and forces in the joints: what the motors give less what rotors, friction and springs take",
}
ONE = {
    "a": "spatial acceleration of link {}",
    "f": "wrench transmitted to link {} through its joint",
    "tau": "torque or force of joint {}",
    "fx": "external wrench on link {}",
    "qdd": "acceleration of joint {}, the time derivative of its part of qd",
    LOAD: "torque or force in joint {}: what its motor gives less what rotor, friction and spring take",
}
ACCELERATION = (
    "Gravity is included: at rest it is 1 g upwards. The linear part is the spatial one: for the acceleration of the "
    "origin itself add w x v."
)


def header(interface: Interface, routines: Sequence[Routine], version: str) -> str:
    """Return the header.

    Args:
        interface: what callers see.
        routines: what solves each system.
        version: of the program that makes it.
    """
    return rendered(
        "header.h.jinja",
        about=comment(_about(interface, routines, version)),
        statuses=STATUSES,
        n_work=max(1, *(routine.n_work for routine in routines)),
        solve=comment(_solve(interface, routines)),
        **declared(interface),
    )


def declared(interface: Interface) -> dict[str, Any]:
    """Return what the templates of headers need of the inputs and the outputs."""
    tree, inputs = interface.tree, interface.inputs
    sizes = {
        "NQ": (tree.nq, "numbers of a configuration"),
        "NV": (tree.nv, "freedoms"),
        "NY": (inputs.ny, "readings of the sensors"),
        "N_LINKS": (tree.n_links, "moving links"),
    }
    members = [member(_configuration(tree), "q", [f"{interface.NAME}_NQ"])]
    members.append(member(_velocity(tree), "qd", [f"{interface.NAME}_NV"]))
    if inputs.ny:
        members.append(member(readings(interface), "y", [f"{interface.NAME}_NY"]))
    if inputs.n_weights:
        sizes["N_WEIGHTS"] = (inputs.n_weights, "weights of the sensors")
        members.append(member(_weights(interface), "weights", [f"{interface.NAME}_N_WEIGHTS"]))
    outputs = (member(_output(interface, field), field.name, field.sizes) for field in interface.fields)
    return {"it": interface, "sizes": sizes, "inputs": "\n\n".join(members), "outputs": "\n\n".join(outputs)}


def _about(interface: Interface, routines: Sequence[Routine], version: str) -> Iterator[str]:
    name, tree, states, system = interface.name, interface.tree, interface.states, interface.systems[0]
    yield f"{name}.h: {f'{MARK} {version}'.strip()}; do not edit."
    yield ""
    sensors = comment_text(interface.inputs.name)
    robot = f"The dynamics of the robot {comment_text(tree.name)} with the sensors {sensors}"
    rows = f"{system.shape[0]} linear equations D(q) d + b(q, qd, y) = 0 in accelerations, wrenches and torques d"
    if states:
        yield (
            f"{robot}, in {len(states)} contact states: in each, linear equations D(q) d + b(q, qd, y) = 0 in "
            "accelerations, wrenches and torques d, solved for the outputs below."
        )
    else:
        yield f"{robot}: {rows}, solved for the outputs below. {routines[0].counted}"
    yield ""
    yield f"    static {name}_workspace work;"
    yield f"    static {name}_inputs in;"
    yield f"    static {name}_outputs out;"
    yield f"    {name}_init(&in); // once: the neutral configuration{', weights' if interface.inputs.n_weights else ''}"
    yield f"    // write in.q, in.qd{', in.y' if interface.inputs.ny else ''}"
    contacts = f"{interface.NAME}_CONTACT_..., " if states else ""
    solved = f"{name}_solve({contacts}&in, &work, &out) == {interface.NAME}_OK"
    yield f"    if ({solved}) // read out.{interface.fields[0].name}"
    yield ""
    yield conventions(tree)
    if not states:
        yield from known(system)
        return
    yield ""
    yield "The contact states, by the contacts that are closed: equations, operations."
    yield from table(
        (comment_text(named_contacts(state)), f"{own.shape[0]:,}", f"{routine.cost.total:,}")
        for state, own, routine in zip(states, interface.systems, routines, strict=True)
    )


def conventions(tree: KinematicTree) -> str:
    """Return in which units and coordinates numbers are."""
    gravity = ", ".join(f"{component:g}" for component in tree.gravity)
    return (
        "SI units. A spatial vector is angular first, in the coordinates of its link and about the link's origin "
        "unless said otherwise. A quaternion is (x, y, z, w). Masses, geometry and gravity, "
        f"({gravity}) m/s^2 in world axes, are constants of the code."
    )


def _solve(interface: Interface, routines: Sequence[Routine]) -> Iterator[str]:
    is_weighted = any(system.is_weighted for system in interface.systems)
    yield f"Solve one state{', with some contacts closed' if interface.contacts else ''}."
    yield ""
    if interface.contacts:
        yield (
            f"Of y{' and the weights' if interface.inputs.n_weights else ''} only what the contact state reads is "
            "looked at: the rest may be anything."
        )
        yield ""
    guards = []
    n_pivots = max(routine.n_pivots for routine in routines)
    if n_pivots:
        guard = f"{PIVOT_LIMIT:g} of its median size over {PIVOT_STATES} random configurations as limit."
        guards.append(f"Pivots that depend on q: {'up to ' * bool(interface.contacts)}{n_pivots}, each with {guard}")
    if is_weighted:
        guards.append(
            "The solution is refined once, and once more at a state where that changes it by more than "
            f"{STEP_LIMIT:g} of a number or of its usual size; where that does so again, the state is refused."
        )
    yield (
        f"Returns {interface.NAME}_OK, or why there is no solution to trust: then every number of out is NaN, and it "
        "is for the caller to do what is safe. There is no fallback in C: the order of elimination is fixed, and a "
        "state that it does not suit is not factorised afresh, nor is a residual checked, as nori_dyn does in Python. "
        f"{' '.join(guards) or 'No pivot depends on q here, so none can be small.'}"
    )
    yield ""
    but = " (but for the second refinement)" if is_weighted else ""
    yield (
        f"A call allocates nothing, takes no lock, keeps nothing, and runs the same operations at every state{but} "
        "that it accepts, on less than 16 kB of stack. The structs must not overlap. Threads may call it at once, each "
        "with structs of its own."
    )


def _configuration(tree: KinematicTree) -> Iterator[str]:
    text = f"q: the configuration ({tree.nq})."
    if tree.quaternions:
        text += (
            f" Quaternions must be of unit length: within {QUATERNION_TOLERANCE:g} of it they are normalised (not in "
            "place), further away they are refused. All zeros are no configuration: the neutral quaternion has w = 1."
        )
    yield text
    rows: list[tuple[str, ...]] = []
    for name, joint in zip(tree.joint_names, tree.joints, strict=True):
        for what in _coordinates(joint):
            rows.append((f"q[{len(rows)}]", comment_text(name), what))
    yield from table(rows)


def _coordinates(joint: Joint) -> Iterator[str]:
    """Yield what each number of a joint's configuration is."""
    kinds = joint.coordinates
    axes = {kind: iter("xyzw") for kind in kinds}
    for kind in kinds:
        if kind == "angle":
            yield "angle [rad]"
        elif kind == "quaternion":
            yield f"quaternion {next(axes[kind])}"
        elif kinds.count(kind) == 1:
            yield "shift [m]"
        else:
            yield f"position {next(axes[kind])}, in the axes of the parent [m]"


def _velocity(tree: KinematicTree) -> Iterator[str]:
    turning = " A free or spherical joint has it in the axes of its body, angular first." if tree.quaternions else ""
    yield f"qd: the velocity ({tree.nv}).{turning}"
    rows: list[tuple[str, ...]] = []
    for name, joint in zip(tree.joint_names, tree.joints, strict=True):
        rows.extend(_joint_rows(name, velocity_names(joint), joint.units("rad/s", "m/s")))
    yield from table((f"qd[{k}]", *row) for k, row in enumerate(rows))


def _joint_rows(name: str, components: Iterable[str], units: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield name and unit of each number of a joint."""
    for component, unit in zip(components, units, strict=True):
        yield f"{comment_text(name)} {component}".rstrip(), f"[{unit}]"


def readings(interface: Interface) -> Iterator[str]:
    """Yield the lines of the comment on y."""
    text = f"y: the readings ({interface.inputs.ny}): place, name, unit, sensor."
    if interface.reads_spatial_vectors:
        text += " A spatial vector is in the coordinates of its link, or of the frame that the sensor names."
    if any(system.ranges is not None for system in interface.systems):
        text += " Ranges of sensors are not checked: leave a saturated one out by a weight of 0."
    yield text
    yield from table(
        (f"y[{k}]", comment_text(one.name), one.unit and f"[{one.unit}]", comment_text(one.sensor))
        for k, one in enumerate(interface.readings)
    )


def _weights(interface: Interface) -> Iterator[str]:
    inputs = interface.inputs
    yield f"weights: 1 / sigma^2 of the sensors ({inputs.n_weights}), 0 to leave one out: place, name, as configured."
    named = zip(inputs.weight_names, inputs.weights.tolist(), strict=True)
    yield from table([(f"weights[{k}]", comment_text(name), f"{w:g}") for k, (name, w) in enumerate(named)])


def _output(interface: Interface, field: Field) -> Iterator[str]:
    tree, output = interface.tree, field.part.output
    kind, body, title = output.kind, output.body, comment_text(output.name)
    note = f" {ACCELERATION}" if kind == "a" else ""
    own = [v for v in interface.variables if output.covers(v)]
    if output.is_of_joints:
        owner = "" if body is None else comment_text(tree.joint_names[body])
        yield f"{title}: {ALL[kind] if body is None else ONE[kind].format(owner)} ({len(field.places)})."
        rows = (row for v in own for row in _joint_rows(v.owner, v.components, v.units))
        yield from table((place, *row) for place, row in zip(field.places, rows, strict=True))
        return
    if not output.is_spatial:
        words = (f"{kind_in_words(v.kind)} {comment_text(v.owner)}" for v in own)
        yield f"{title}: {', '.join(words)} ({len(field.places)})."
        rows = (row for v in own for row in _joint_rows(v.owner, v.components, v.units))
        yield from table((place, *row) for place, row in zip(field.places, rows, strict=True))
        return
    components = MOTION if kind == "a" else FORCE
    if body is None:
        yield f"{title}: {ALL[kind]} ({tree.n_links} x 6: {' '.join(components)}).{note}"
        yield from table((f"{field.name}[{i}]", comment_text(link)) for i, link in enumerate(tree.names))
        return
    frame = comment_text(output.owner)
    where = "" if output.X is None else f", in the coordinates of its frame {frame} and about the frame's origin"
    yield f"{title}: {ONE[kind].format(comment_text(tree.names[body]))}{where} (6).{note}"
    units = (f"[{UNITS[component]}]" for component in components)
    yield from table(zip(field.places, components, units, strict=True))


def member(lines: Iterable[str], name: str, sizes: Sequence[str]) -> str:
    """Return a member of a struct, under a comment."""
    dimensions = "".join(f"[{size}]" for size in sizes)
    return textwrap.indent(f"{comment(lines)}\ndouble {name}{dimensions};", "    ")
