"""Plans from elsewhere: whether their orders can be eliminated in, found out once for each content.

That takes as long as tracing the system. What has passed is remembered in the user's cache, by its hash and that of the
planner's code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress

from nori_dyn.errors import PlanError
from nori_dyn.io.plan_files import VERSION
from nori_dyn.planning.elimination import ZeroPivotError
from nori_dyn.planning.identity import planner_identity
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.cache_files import cache_root, read_entry, write_entry


def verify(content: str, plans: Iterable[EliminationPlan]) -> None:
    """Check that the permutations of plans from elsewhere lead to no zero pivot.

    Args:
        content: what they were read from.
        plans: the plans in it, looked at where this content is new.

    Raises:
        PlanError: they do, or are of another size than the system.
    """
    folder = cache_root() / "verified"
    mark = folder / hashlib.sha256(f"{VERSION} {planner_identity()}\n{content}".encode()).hexdigest()
    if read_entry(mark) is not None:
        return
    for plan in plans:
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
