"""Filters as C: the steps of a tick, which are those that run in this process, and what stands around them.

Each contact state has three files: the straight-line programs of its rows and of its outputs, and its steps. One more
chooses among the states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nori_dyn.errors import PlanError
from nori_dyn.export.files import CExport, CFunction, assembled, c_function, solving_program
from nori_dyn.export.interface import Interface
from nori_dyn.export.text import rendered
from nori_dyn.filtering.base_reference import FADED, NOISE, SECOND_ORDER, SURE, TILT, TURNING, BaseReference
from nori_dyn.filtering.hypotheses import LIKELY
from nori_dyn.filtering.hypothesis_steps import HypothesisSteps
from nori_dyn.filtering.instants import GAP
from nori_dyn.filtering.judging import hypothesis_shape
from nori_dyn.filtering.markov import NO_PART
from nori_dyn.filtering.quaternions import ROUNDING
from nori_dyn.filtering.tick_programs import TickPrograms
from nori_dyn.filtering.tracker import TrackerBase
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.measurements.floating_base import SIGMAS, SIZE_SIGMA
from nori_dyn.model.tree import QUATERNION_TOLERANCE
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.functions import program_of
from nori_dyn.program.tracing import expressions_of
from nori_dyn.program.track_source import defined, listed_tables, ordered_rows, track_source

OF_TRACKERS = ("alone.h", "filter.h", "square_root.h", "tick.h")
"""What the steps of a tracker include beside what a unit does."""

OF_FILTERS = (*OF_TRACKERS, "alone_filter.h")
OF_WINDOWS = (*OF_FILTERS, "alone_window.h", "slots.h", "window.h")
"""The same, of one that is given the contacts, and of one with a lag."""

OF_RECOGNISERS = (*OF_TRACKERS, "alone_hypotheses.h", "hypotheses.h")
"""Of one that recognises contacts."""

OF_BASED = ("base.h",)
"""What is more of one whose base is state."""

SLOT = 7
"""What each tick of a window stores, see SLOT_ROOM of c/alone_window.h."""

OF_REFERENCE = 141
"""Doubles of the reference of a floating base, see c/base.h."""

POSE = 13
"""What a window keeps of it at each tick, see POSE_ROOM of c/alone_window.h."""

BESIDES = 6
"""Doubles of a filter that are in none of its arrays: totals, numbers of states, a time."""


def c_filter(of: TrackerBase[Any], sensors: str, name: str | None = None) -> CExport:
    """A tracker as C, which begins with what its sensors' config says, whatever this one has seen.

    Args:
        of: the tracker.
        sensors: what the sensors are called.
        name: what to call the files, functions and types; from the robot's name when left out.

    Raises:
        IdentifierError: the name is not an identifier of C, or one that is taken.
        PlanError: there are more contacts than an enum of C has bits; contacts are recognised with a lag.
    """
    steps = of.steps if isinstance(of.steps, HypothesisSteps) else None
    if steps is not None and of.lag:
        raise PlanError("exported code recognises contacts or has a lag: export one tracker for each.")
    ticks, longest = [*of.ticks.values()] if steps is None else [steps.tick], GAP * of.dt
    solving = ticks[0].coordinates.plan
    plans: Mapping[ContactState, EliminationPlan] = of.plans if steps is None else {(): solving}
    given, recognised = (of.contact_names, ()) if steps is None else ((), of.contact_names)
    it = replace(
        Interface.of(plans, given, sensors, name),
        solving=solving,
        memory=dict(zip(ticks[0].memory_names, ticks[0].memory_units, strict=True)),
        free=tuple(dict.fromkeys(name for one in ticks for name in one.coordinates.names)),
        recognised=recognised,
        lag=of.lag,
    )
    if steps is not None:
        it = replace(it, systems=(steps.tick.system,), all=steps.readings, hypotheses=steps.model.states)
    window = _window(ticks, of.lag) if of.lag else {}
    states, code = list[tuple[CFunction, ...]](), dict[str, str]()
    for number, tick in enumerate(ticks):
        rows, outputs, file = _rows(tick, it, number), _outputs(tick, it, number), it.file(number, "_tick")
        source = _tables(tick, it, number, longest)
        source += _steps(tick, of.lag, window) if steps is None else _judging(steps, of.contact_names)
        values = {"file": file, "number": number, "rows": rows.name, "outputs": outputs.name, "source": source}
        states.append((rows, outputs))
        tick_code = rendered("filter_tick.c.jinja", it=it, **values)
        code |= {rows.file: rows.text, outputs.file: outputs.text, file: tick_code}
    code = {f"{it.name}.c": rendered("filter.c.jinja", it=it, longest=longest), **code}
    arrays = _arrays(ticks, it, states) | window
    if of.lag and it.is_based:
        arrays["poses"] = (of.lag + 1) * POSE
    if steps is not None:
        arrays |= _arrays_of_states(steps, arrays)
    headers: tuple[str, ...] = OF_RECOGNISERS if steps is not None else OF_WINDOWS if of.lag else OF_FILTERS
    headers += OF_BASED * it.is_based
    n_work = sum(arrays.values()) + BESIDES
    return assembled(it, states, code, n_work, headers, arrays=arrays, dt=of.dt, longest=longest)


def _arrays_of_states(steps: HypothesisSteps, arrays: Mapping[str, int]) -> dict[str, int]:
    """The length of each array of which every contact state that may be recognised has its own, and of judging them."""
    S = len(steps.model.states)
    judging = hypothesis_shape(steps.tick, steps.model).n_judging(S)
    own = {name: S * arrays[name] for name in ("R", "z", "u", "pivots", "work")}
    judged = {"probabilities": S, "transitions": S * S, "rates": S, "room": judging}
    return own | judged | {"step": 1, "switched": 1, "best": 1}


def _judging(steps: HypothesisSteps, contact_names: Sequence[str]) -> str:
    """The C of the steps that judge contact states, and what they have to know, see c/alone_hypotheses.h."""
    shape, model = hypothesis_shape(steps.tick, steps.model), steps.model
    order, counts, ends = ordered_rows(shape, model.counting)
    text = defined(
        {
            "N_STATES": len(model.states),
            "N_CONTACTS": model.n_contacts,
            "REACH": model.reach,
            "RATE": model.options.rate,
            "PART": NO_PART,
            "LIKELY": LIKELY,
        }
    )
    bits = [sum(1 << contact_names.index(one) for one in state) for state in model.states]
    logs = {
        "exact_weights": model.exact_weights,
        "case_logs": model.row_logs[model.of_cases],
        "loose_logs": model.free_logs,
    }
    tables = {
        "state_distances": model.apart,
        "state_closes": model.closes,
        "state_order": order,
        "state_counts": counts,
        "state_ends": ends,
        "state_bits": bits,
    }
    return text + listed_tables(logs, "double") + listed_tables(tables) + track_source(shape, 1, alone=True)


def _rows(tick: TickPrograms, it: Interface, number: int) -> CFunction:
    """C function of the measurement rows of a tick."""
    traced = expressions_of(tick.coordinates.rows.function)
    program = replace(program_of(traced), quaternions=(), limbs=(), constants_once=False)  # as of the outputs
    names = it.file(number, "_rows"), f"{it.name}_compute_rows{it.suffixes[number]}"
    limits, about = [limit for _, limit in traced.guards], "What readings say of what is free."
    return c_function(program, "unit.c.jinja", it, *names, limits, about=about)


def _outputs(tick: TickPrograms, it: Interface, number: int) -> CFunction:
    """C function of the outputs, given the null-space coordinates."""
    program, limits = solving_program(tick.coordinates.plan, it)
    program = replace(program, quaternions=(), limbs=())  # a tick has brought them to unit length
    names = it.file(number, "_outputs"), f"{it.name}_compute_outputs{it.suffixes[number]}"
    return c_function(program, "unit.c.jinja", it, *names, limits, about="The outputs, given what is free.")


def _steps(tick: TickPrograms, lag: int, window: Mapping[str, int]) -> str:
    """The C of the steps, and what a window has to know, see c/alone_filter.h and c/alone_window.h."""
    if not lag:
        return track_source(tick.shape, 1, alone=True)
    rooms = {"KEPT_ROOM": "kept", "STATE_ROOM": "states", "U_ROOM": "means"}
    sizes = {"LAG": lag} | {macro: window[name] // (lag + 1) for macro, name in rooms.items()}
    return defined(sizes) + track_source(tick.shape, 1, smooths=True, alone=True)


def _window(ticks: Sequence[TickPrograms], lag: int) -> dict[str, int]:
    """The length of each array of a window: what the largest contact state needs."""
    shapes, slots = [tick.shape for tick in ticks], lag + 1
    most = max(shape.n for shape in shapes)
    return {
        "kept": slots * max(shape.n_kept(1) for shape in shapes),
        "states": slots * max(shape.n_motion + shape.n_y for shape in shapes),
        "means": slots * most,
        "slots": slots * SLOT,
        "late": most,
        "room": max(shape.n_room(1) for shape in shapes),
        "newest": 1,
        "count": 1,
    }


def _tables(tick: TickPrograms, it: Interface, number: int, longest: float) -> str:
    """The C of what steps that stand alone have to know, see c/alone.h."""
    places, quaternions = it.input_indices(number), [part.start for part in it.tree.quaternions]
    first, free = tick.beginning(), [it.free.index(name) for name in tick.coordinates.names]
    text = defined(
        {
            "LONGEST": longest,
            "N_WEIGHTS": it.systems[number].n_weights,
            "AT(k)": "k" if places is None else "places[k]",
            "N_QUATERNIONS": len(quaternions),
            "QUATERNION_TOLERANCE": QUATERNION_TOLERANCE,
        }
    )
    tables = {} if places is None else {"places": places}
    text += listed_tables(tables | {"quaternions": quaternions, "free_places": free})
    return text + listed_tables({"first_root": np.diagonal(first.R), "first_z": first.z}, "double") + _of_base(tick)


def _of_base(tick: TickPrograms) -> str:
    """C of what the reference of a floating base has to know, see c/base.h; "" where there is none."""
    tree, reference = tick.system.tree, BaseReference.of(tick.system.tree, tick.memory_names)
    if reference is None:
        return ""
    sizes = {
        "ROOT_Q": reference.q.start,
        "ROOT_QD": tree.nq + reference.qd.start,
        "SIZE_WEIGHT": -1 if tick.gravity_weight is None else tick.gravity_weight,
        "SIZE_SIGMA": SIZE_SIGMA,
        "TILT": TILT,
        "SURE": SURE,
        "SECOND_ORDER": SECOND_ORDER,
        "ROUNDING": ROUNDING,
        "NOISE": NOISE,
        "FADED": FADED,
        "TURNING": TURNING,
    }
    vectors = {"base_gravity": tree.gravity, "base_sigmas": np.repeat([*SIGMAS.values()], 3)}
    return defined(sizes) + listed_tables(vectors, "double")


def _arrays(ticks: Sequence[TickPrograms], it: Interface, states: Iterable[tuple[CFunction, ...]]) -> dict[str, int]:
    """The length of each array of a filter: what the largest contact state needs."""
    shapes, n_weights = [tick.shape for tick in ticks], [system.n_weights for system in it.systems]
    k = shapes[0].k
    return {
        "R": k * k,
        "z": k,
        "decay": k,
        "Q": k,
        "entries": max(one.n_values for one in shapes),
        "state": max(shape.n_motion + shape.n_y + n for shape, n in zip(shapes, n_weights, strict=True)),
        "free": max(shape.n_motion + len(shape.exact) + shape.n for shape in shapes),
        "weights": max(one.p for one in shapes),
        "u": max(one.n for one in shapes),
        "pivots": max(one.n for one in shapes),
        "work": max(one.n_work(1) for one in shapes),
        "w": max(function.n_work for functions in states for function in functions),
    } | ({"base": OF_REFERENCE} if it.is_based else {})
