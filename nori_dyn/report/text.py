"""What `nori-dyn observe` prints for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import numpy as np
from rich.table import Table

from nori_dyn.model.joints import notes_on_limits
from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.observe.null_space import Unseen
from nori_dyn.observe.redundancy import Redundancy
from nori_dyn.observe.report import NEARLY_SINGULAR, ObservabilityReport
from nori_dyn.report.tables import console, table
from nori_dyn.report.tree_drawing import components_among
from nori_dyn.system.builder import System
from nori_dyn.system.variables import SOURCES
from nori_dyn.typing import Floats

SHOWN = 6
"""Most names, and lines of a table, that are listed."""

WORST_SHOWN = 5
"""Most poses that are listed as the worst."""

FEW = 7
"""Most numbers of q that are printed in a line."""


def show_report(system: System, report: ObservabilityReport, swept: Conditioning | None) -> None:
    """Print a report: the verdict, why, what is not determined, and the special poses.

    Args:
        system: the robot with its sensors.
        report: the report.
        swept: what was found over the workspace; None where it was not looked at.
    """
    n = report.n_variables
    short = swept is not None and len(swept.lacking) > 0
    if not report.is_observable:
        verdict = "Not observable"
        rest = f"{len(report.unobservable):,} of {n:,} unknowns are not determined, whatever the pose."
    elif short or report.loses_rank:
        verdict, rest = "Observable, but not at every pose", f"all {n:,} unknowns are determined at almost every one."
    else:
        verdict, rest = "Observable", f"all {n:,} unknowns are determined at almost every pose."
    console.print(f"[bold]{verdict}[/bold]: {rest}")
    size = f"{report.n_rows:,} equations of rank {report.generic_rank:,}, {report.deficiency:,} short"
    console.print(f"{report.sensors} on {report.robot}: {size}.", markup=False)
    if report.numerical_rank < report.generic_rank:
        console.print(
            f"Do not build on it: it is so in exact arithmetic only, in doubles the rank is {report.numerical_rank:,}.",
            style="bold",
        )
    if report.unseen:
        console.print("\nWhat the sensors do not see:")
        _show_unseen(report.unseen)
        _show_names(system, set(report.unobservable))
    if report.conditions:
        _show_poses(report)


def _show_unseen(parts: Sequence[Unseen]) -> None:
    for part in parts:
        several = f" ({part.dimension} independent)" if part.dimension > 1 and not part.words[0].isdigit() else ""
        words = textwrap.fill(part.words + several, console.width, initial_indent="  - ", subsequent_indent="    ")
        console.print(words, markup=False)


def _show_names(system: System, names: set[str]) -> None:
    sources_first = sorted(system.variables, key=lambda variable: variable.kind not in SOURCES)
    counts = {variable.name: len(components_among(variable, names)) for variable in sources_first}
    shown = [f"{name} ({n})" if n > 1 else name for name, n in counts.items() if n]
    more = f" and {len(shown) - SHOWN} more (--json lists all)" if len(shown) > SHOWN else ""
    console.print(f"\nNot determined: {', '.join(shown[:SHOWN])}{more}.", markup=False)


def _show_poses(report: ObservabilityReport) -> None:
    rows = [(c.meaning, int(c.ranks.min()), c.lost, _margin(c.smallest.min())) for c in report.conditions]
    console.print()
    console.print(table("Special poses", ("pose", "rank", "lost", "margin"), rows))
    console.print(
        "lost: ranks fewer than at almost every pose. margin: how near the pose comes to losing another, from 1 (far) "
        f"to 0; below {NEARLY_SINGULAR:.0e} (!) it is nearly singular."
    )
    known = {part.words for part in report.unseen}
    fresh = {part.words: part for c in report.loses_rank for part in c.unseen if part.words not in known}
    if fresh:
        console.print("\nWhat the sensors do not see where ranks are lost:")
        _show_unseen([*fresh.values()])


def _margin(smallest: float) -> str:
    return f"{smallest:.0e}" + (" !" if smallest < NEARLY_SINGULAR else "")


def show_workspace(system: System, report: ObservabilityReport, found: Conditioning, is_random: bool) -> None:
    """Print how well the sensors do over many poses.

    Args:
        system: the robot with its sensors.
        report: what holds at almost every pose.
        found: what was found over the workspace.
        is_random: whether the poses are random ones; otherwise they were given.
    """
    N, lacking = len(found.ranks), len(found.lacking)
    nearly = int(np.sum(found.smallest < NEARLY_SINGULAR)) - lacking
    poses = f"{N:,} random poses within joint limits" if is_random else f"{N:,} poses given"
    console.print("\n[bold]Over the workspace[/bold]")
    for note in notes_on_limits(system.tree.joint_names, system.tree.joints) if is_random else ():
        console.print(f"{note[0].upper()}{note[1:]}.", markup=False)
    if report.is_observable:
        console.print(
            f"Of {poses}, {_count(lacking)} lack rank and {_count(nearly)} are nearly singular. The margin is "
            f"{_margin(float(np.median(found.smallest)))} at the median and {_margin(found.smallest.min())} at the "
            "worst.\n"
        )
        console.print(_worst_poses(system, found))
        if system.tree.nq > FEW:
            console.print("Poses are counted from 0; --json has their joint positions.")
    else:
        further = _count(int(np.sum(found.ranks < report.numerical_rank)))
        console.print(f"All of {poses} lack rank, as almost every pose does; {further} lack more than most.")
    if found.sigma is None:
        console.print("\nNo sensor has a sigma: give them one, and what their noise does to the outputs is shown here.")
    else:
        _show_deviations(found)


def _count(n: int) -> str:
    return f"{n:,}" if n else "none"


def _worst_poses(system: System, found: Conditioning) -> Table:
    few = system.tree.nq <= FEW
    rows = []
    for k in found.worst[:WORST_SHOWN].tolist():
        q = " ".join(f"{x:.2f}" for x in found.configurations[k])
        lost = int(found.n_variables - found.ranks[k])
        rows.append((str(k), lost, _margin(found.smallest[k]), *((q,) * few)))
    return table("Worst poses", ("pose", "lost", "margin", *(("q",) * few)), rows)


def _show_deviations(found: Conditioning) -> None:
    medians, worsts = found.median_sigma, found.worst_sigma
    if medians is None or worsts is None:
        return
    console.print()
    listed = [*_largest(worsts, medians, found.units)]
    if listed:
        rows = [(found.outputs[k], _figure(medians[k]), _figure(worsts[k]), found.units[k]) for k in listed]
        console.print(table("Expected standard deviations", ("output", "median", "worst", "unit"), rows))
    known, lost = int(np.sum(worsts == 0.0)), int(np.sum(np.isinf(medians)))
    rest = [
        f"{known:,} known exactly" if known else "",
        f"{lost:,} not determined at most poses" if lost else "",
        f"{left:,} smaller" if (left := len(found.outputs) - len(listed) - known - lost) else "",
    ]
    console.print(
        f"From the sigmas of the sensors, over these poses{', the largest first' if listed else ''}."
        + (f" Further outputs: {', '.join(filter(None, rest))} (--json lists all)." if any(rest) else "")
    )


def _largest(worsts: Floats, medians: Floats, units: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of the outputs whose deviations are largest, unit by unit."""
    shown = (worsts > 0) & np.isfinite(medians)
    kinds = [*dict.fromkeys(unit for unit, is_shown in zip(units, shown, strict=True) if is_shown)]
    for kind in kinds:
        own = [k for k, unit in enumerate(units) if unit == kind and shown[k]]
        yield from sorted(own, key=lambda k: (-worsts[k], -medians[k]))[: max(2, SHOWN // len(kinds))]


def _figure(value: float) -> str:
    return f"{value:.2g}" if np.isfinite(value) else "unknown"


def show_redundancy(found: Redundancy, wanted: Sequence[str]) -> None:
    """Print which sensors may fail.

    Args:
        found: which.
        wanted: the outputs that were asked for.
    """
    outputs, n, critical = ", ".join(wanted), len(found.sensors), len(found.critical)
    console.print("\n[bold]If sensors fail[/bold]")
    if not found.outputs:
        console.print(f"None of {outputs} is determined: there is nothing to lose.", markup=False)
    elif critical == n:
        console.print(f"None of the {n:,} sensors may fail: without any one, some of {outputs} is lost.", markup=False)
    elif critical:
        console.print(f"Any one of {n - critical:,} sensors may fail. {critical:,} may not, and each takes with it:")
        _bullets([f"{name}: {_few(found.lost[name])}" for name in found.critical])
    else:
        console.print(f"Any one of the {n:,} sensors may fail: {outputs} stays determined.", markup=False)
    together = [failing for failing in found.failing_sets if len(failing) > 1]
    if together:
        console.print(f"\nThese sets of up to {found.size} may not fail together either:")
        _bullets([" and ".join(failing) for failing in together])
    elif found.size > 1 and critical < n and found.outputs:
        console.print(f"Nothing is lost by {found.size} of these together either.")


def _bullets(lines: Sequence[str]) -> None:
    for line in lines[:SHOWN]:
        console.print(textwrap.fill(line, console.width, initial_indent="  - ", subsequent_indent="    "), markup=False)
    if len(lines) > SHOWN:
        console.print(f"  and {len(lines) - SHOWN:,} more (--json lists all)")


def _few(names: Sequence[str]) -> str:
    """Return some names in a few words."""
    rest = f" and {len(names) - 2:,} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + rest


def show_footnote(report: ObservabilityReport) -> None:
    """Print what is exact."""
    console.print(
        f"\nThe verdict is exact, but for a chance of {report.error:.0e}; margins, deviations and what is said of "
        "poses are numerical.",
        style="dim",
    )
