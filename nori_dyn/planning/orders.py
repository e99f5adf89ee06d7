"""Orders of systems as data, and the cache of them: what was planned before is looked up.

Permutations and counts only, versioned, checked; the system is at hand, or what the plan's file says.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from nori_dyn.errors import NoriError, NoriWarning, PlanError, named_contacts
from nori_dyn.io.cache_files import cache_root, read_entry, write_entry
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.planning.elimination import ZeroPivotError
from nori_dyn.planning.identity import planner_identity
from nori_dyn.planning.orderings.registry import AUTO, orderings_named
from nori_dyn.planning.outputs import determined_outputs
from nori_dyn.planning.planner import EliminationPlan, Made, TriedOrdering
from nori_dyn.system.builder import System
from nori_dyn.system.repeats import Repeat
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Indices

ORDER_FORMAT = "nori_dyn order"
VERSION = 6
"""Raised whenever the content, or what is computed from it, changes its meaning."""

OLDER = (4, 5)
"""Versions that are read as well. There, plans of several states are of a format of their own."""

ORDERS_SINCE = 5
"""The version since which orders are of what is eliminated today."""


class Data(BaseModel):
    """A part of a file: nothing else is in it, and no number that is not finite."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)  # of dataclasses in it, too


Content = TypeVar("Content", bound=BaseModel)


class OrderData(Data):
    """What was planned for a system, by its fingerprint."""

    fingerprint: str
    ordering: str
    row_permutation: list[int]
    column_permutation: list[int]
    program_rows: list[int]
    program_columns: list[int]
    regrouped: bool | None
    candidates: list[TriedOrdering] = Field(min_length=1)
    seed: NonNegativeInt
    repeats: list[Repeat] = []
    undetermined: list[NonNegativeInt] = []
    is_over_time: bool = False


class CachedOrder(OrderData):
    """The content of an entry of the cache: what was planned, for a system that is at hand."""

    format: Literal["nori_dyn order"]
    version: int


def order_data(plan: EliminationPlan) -> OrderData:
    """Permutations and counts of a plan."""
    permutations = "row_permutation", "column_permutation", "program_rows", "program_columns", "undetermined"
    return OrderData(
        fingerprint=plan.system.fingerprint,
        **{name: getattr(plan, name) for name in ("ordering", "regrouped", "seed", "is_over_time")},
        **{name: getattr(plan, name).tolist() for name in permutations},
        candidates=list(plan.tried),
        repeats=list(plan.system.of_components.repeats),
    )


def sealed(format: str, content: dict[str, Any]) -> str:
    """Text of a file: its format and version, its content, and a checksum of all this."""
    body = {"format": format, "version": VERSION, **content}
    return json.dumps({**body, "checksum": _checksum(body)}) + "\n"


def unsealed(text: str | bytes, model: type[Content], what: str, maker: str) -> Content:
    """Parse and check a file that `sealed` made.

    Args:
        text: of the file.
        model: what its content must be, its format among it.
        what: what to call such a file.
        maker: what makes one.

    Raises:
        PlanError: it is truncated, changed, from another version, or no such file at all.
    """
    try:
        body = json.loads(text)
    except ValueError as error:
        raise PlanError(f"it is not {what}, or is truncated ({error}). Create it again with {maker}.") from None
    except RecursionError:
        raise PlanError(f"it is not {what}: it is nested too deeply. Create one with {maker}.") from None
    if not isinstance(body, dict) or body.get("format") not in get_args(model.model_fields["format"].annotation):
        raise PlanError(f"it is not {what}. Create one with {maker}.")
    if body.get("version") not in (VERSION, *OLDER):
        raise PlanError(
            f"it has version {body.get('version')!r}; this program reads {VERSION}. Create it again with {maker}."
        )
    if body.pop("checksum", None) != _checksum(body):
        raise PlanError(f"its content was changed or damaged. Create it again with {maker}.")
    try:
        return model.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise PlanError(f"its entry '{place}' is wrong: {first['msg']}.") from None


def _checksum(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def plan_of(system: System, outputs: Sequence[str] | None, data: OrderData, kind: type[Made]) -> Made:
    """Plan of a system from the data of its order, without the rows that this leaves out.

    Raises:
        PlanError: an output, a row or an undetermined unknown that the system does not have, or no permutations.
    """
    rows, undetermined = set(system.of_components.closing), np.array(data.undetermined, dtype=np.intp)
    for repeat in data.repeats:
        if (repeat.equation, repeat.row) not in rows:
            raise PlanError(f"it leaves out row {repeat.row} of component equation {repeat.equation}: there is none.")
    if max(data.undetermined, default=0) >= system.shape[1]:
        raise PlanError("its undetermined unknowns are not those of its system.")
    if data.repeats:
        system = system.without(data.repeats)
    if data.regrouped is None and system.is_weighted:
        raise PlanError("it eliminates D itself, and its system is one of least squares.")
    n = None if system.is_weighted else system.shape[1]  # what is eliminated there is larger: see `verify`
    return kind(
        system=system,
        outputs=determined_outputs(system, outputs, undetermined),
        ordering=data.ordering,
        row_permutation=_permutation(data.row_permutation, n, "row permutation"),
        column_permutation=_permutation(data.column_permutation, n, "column permutation"),
        program_rows=_permutation(data.program_rows, None, "program's row permutation"),
        program_columns=_permutation(data.program_columns, None, "program's column permutation"),
        regrouped=data.regrouped,
        tried=tuple(data.candidates),
        seed=data.seed,
        undetermined=undetermined,
        is_over_time=data.is_over_time,
    )


def _permutation(values: list[int], n: int | None, what: str) -> Indices:
    """Check a permutation of n numbers, or of as many as there are.

    Raises:
        PlanError: it is none.
    """
    n = len(values) if n is None else n
    if sorted(values) != list(range(n)):
        raise PlanError(f"its {what} is not a permutation of {n} numbers.")
    permutation = np.array(values, dtype=np.intp)
    permutation.flags.writeable = False
    return permutation


def cache_folder() -> Path:
    """The folder of cached orders."""
    return cache_root() / "plans"


def looked_up(
    make: Callable[[], Made],
    system: System,
    outputs: Sequence[str] | None,
    ordering: str = AUTO,
    seed: int = 0,
    effort: int = 0,
    kind: type[Made] = EliminationPlan,  # type: ignore[assignment]
    like: EliminationPlan | None = None,
) -> Made:
    """A plan whose order is in the user's cache; or what `make` returns, and keep its order there.

    Args:
        make: plans the system.
        system: the system, all of whose equations are known by its fingerprint.
        outputs: as of `make_plan`, and so what follows.
        ordering: its name.
        seed: of the configurations.
        effort: of the search.
        kind: class of the plan.
        like: another plan.
    """
    names = None if outputs is None else list(outputs)
    of_code = [VERSION, planner_identity(), orderings_named(ordering)]
    key = [*of_code, system.fingerprint, names, ordering, seed, effort, *([like.system.fingerprint] if like else [])]
    entry = cache_folder() / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]}.json"
    found = read_entry(entry)
    if found is not None:
        with suppress(NoriError):  # a damaged entry is made anew
            data = unsealed(found, CachedOrder, "an entry of the cache of plans", "`nori_dyn.plan`")
            return plan_of(system, outputs, data, kind)
    made = make()
    try:
        entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_entry(entry, sealed(ORDER_FORMAT, order_data(made).model_dump()).encode())
    except OSError as error:
        warnings.warn(f"the plan is not cached: {error}", NoriWarning, stacklevel=3)
    return made


def verify(content: str, plans: Mapping[ContactState, EliminationPlan], stage: Progress) -> None:
    """Check that the permutations of plans from elsewhere lead to no zero pivot, once for each content.

    That takes as long as tracing the systems. What has passed is remembered in the user's cache, by its hash and by
    that of the planner's code.

    Args:
        content: what they were read from.
        plans: the plans in it, looked at where this content is new.
        stage: takes the state that is looked at.

    Raises:
        PlanError: they do, or are of another size than the system.
    """
    folder = cache_root() / "verified"
    mark = folder / hashlib.sha256(f"{VERSION} {planner_identity()}\n{content}".encode()).hexdigest()
    if read_entry(mark) is not None:
        return
    for k, (state, plan) in enumerate(plans.items()):
        stage(named_contacts(state), k / len(plans))
        check_pivots(plan)
    with suppress(OSError):  # it is checked again the next time
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_entry(mark, b"")


def check_pivots(plan: EliminationPlan) -> None:
    """Check that the permutations of a plan are those of its system, and lead to no zero pivot.

    Raises:
        PlanError: they are not, or do.
    """
    if not len(plan.row_permutation) == len(plan.column_permutation) == plan.symbolic.shape[0]:
        raise PlanError("its permutations are not of the size of its system.")
    if not len(plan.program_rows) == len(plan.program_columns) == plan.refined.symbolic.shape[0]:
        raise PlanError("its program's permutations are not of the size of its system.")
    try:
        plan.elimination()
        _ = plan.solved
    except ZeroPivotError:
        raise PlanError("its permutations lead to a zero pivot.") from None
