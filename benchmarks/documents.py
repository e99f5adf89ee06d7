"""Tables in documents, between the marks <!-- KIND: NAME --> and <!-- end -->."""

from __future__ import annotations

import re
from collections.abc import Mapping

from nori_dyn.tables import Table


def markdown(table: Table) -> str:
    """Write a table as Markdown."""
    sides = ["---" if k in table.left else "---:" for k in range(len(table.columns))]
    lines = [list(table.columns), sides, *table.cells()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_tables(text: str, kind: str, tables: Mapping[str, str]) -> str:
    """Put tables between their marks; what has no new one stays."""
    for name, content in tables.items():
        pattern = re.compile(rf"(<!-- {kind}: {name} -->\n).*?(<!-- end -->)", flags=re.DOTALL)
        text, n = pattern.subn(lambda at, content=content: f"{at[1]}{content}\n{at[2]}", text)  # type: ignore[misc]
        if n != 1:
            raise SystemExit(f"{n} places are marked '{kind}: {name}', not one.")
    return text
