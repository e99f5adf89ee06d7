"""A draft of a mapping as YAML: each entry with the reason for it, and what is left over."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import yaml

from nori_dyn.logs.drafts.draft import Draft
from nori_dyn.logs.formats.source import abbreviated

WIDTH = 100


def mapping_text(draft: Draft, log: Path) -> str:
    """The draft as text: a mapping that can be read as it is, and says in remarks what it rests on."""
    return "".join(f"{line}\n".replace(" \n", "\n") for line in _lines(draft, log))


def _lines(draft: Draft, log: Path) -> Iterator[str]:
    yield from _remark(
        f"What the columns of {log.name} are for '{draft.robot}': a draft. Each guess says what it rests on; look at "
        "them, above all at units, signs and the order of joints. A number is taken times its unit, then `scale`, then "
        "`offset` is added, in SI."
    )
    yield f"robot: {_inline(draft.robot)}"
    if draft.rate is not None:
        yield from _remark("The log has no times: so many samples a second by what its file says, or how it moves.")
        yield f"clock: {_inline({'rate': draft.rate})}"
    if draft.streams:
        yield "streams:"
        for name, (settings, why) in draft.streams.items():
            if why:
                yield from _remark(why, "  ")
            yield f"  {_inline(name)}: {_inline(dict(settings))}"
    yield "columns:" if draft.guesses else "columns: []"
    for guess in draft.guesses:
        yield from _remark(guess.why, "  ")
        yield from textwrap.wrap(
            f"- {_inline(dict(guess.entry))}",
            WIDTH,
            initial_indent="  ",
            subsequent_indent="     ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    if draft.lacking:
        yield from _remark(f"Nothing was found for {', '.join(draft.lacking)}.")
        yield from _remark(
            "What does not change is given so: - {of: 'q:JOINT', value: 0.0}. Accelerations that are lacking are made "
            "of velocities, and these by --differentiate smoother of positions."
        )
    if draft.left_over:
        yield from _remark(f"Left over: {', '.join(abbreviated(draft.left_over))}.")
        for name, (low, high) in draft.ranges.items():
            yield f"#   {name}: {low:.4g} to {high:.4g}"


def _remark(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")


def _inline(data: object) -> str:
    text = yaml.safe_dump(data, default_flow_style=True, sort_keys=False, width=10**9, allow_unicode=True)
    return text.removesuffix("\n...\n").strip()
