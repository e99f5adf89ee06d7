"""What the landing page takes from the README."""

from __future__ import annotations

import re
import textwrap

from docs.generate.places import ROOT

BLOCK = re.DOTALL | re.MULTILINE


def readme_lines() -> str:
    """Return the README's first lines of Python and, to be unfolded, what they print."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code, end), *_ = [(match[0], match.end()) for match in re.finditer(r"^```python\n.*?^```$", text, flags=BLOCK)]
    printed = re.search(r"^```text\n.*?^```$", text[end:], flags=BLOCK)
    return code + (f'\n\n??? note "What it prints"\n{textwrap.indent(printed[0], "    ")}' if printed else "")
