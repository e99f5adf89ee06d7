"""What MkDocs is told beyond mkdocs.yml: pages from outside of docs/, generated parts, links from page to page.

A page says where a generated part goes by a comment that names one of the `PARTS`, with its arguments:

    <!-- generate: public_names("model", "io") -->
"""

from __future__ import annotations

import ast
import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.generate import reference
from docs.generate.commands import commands
from docs.generate.kept_tables import papers, real_robots
from docs.generate.landing import readme_lines
from docs.generate.notebook_pages import notebook_page
from docs.generate.places import ROOT, link_pages, outside_fences, pages_outside
from docs.generate.sensor_reference import sensor_types, shipped_sets

PARTS = {
    part.__name__: part
    for part in (
        *(commands, papers, readme_lines, real_robots, reference.public_names, reference.room),
        *(sensor_types, shipped_sets),
    )
}

MARK = re.compile(r"^<!-- generate: (\w+)\((.*)\) -->$", flags=re.MULTILINE)
NAME = re.compile(r"(?<![`\[\w])`(nd\.[A-Za-z][\w.]*)(\([^`]*\))?`(?![`\]])")
ERROR = re.compile(rf"<code>({'|'.join(reference.names_in('errors'))})</code>")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Complete the navigation: every notebook, and after the explanations those pages that it does not name."""
    sections: dict[str, list[Any]] = {title: part for entry in config.nav or [] for title, part in entry.items()}
    notebooks = [place for path, place in pages_outside().items() if path.endswith(".ipynb")]
    sections["Notebooks"] += [place for place in notebooks if place not in sections["Notebooks"]]
    named = str(config.nav)
    sections["Explanation"] += [
        path.name for path in sorted((ROOT / "docs").glob("*.md")) if f"'{path.name}'" not in named
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and pictures from outside of docs/."""
    for path, place in pages_outside().items():
        if path.endswith(".ipynb"):
            files.append(File.generated(config, place, content=notebook_page(ROOT / path)))
        else:
            files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in what is generated, and link pages and public names."""
    markdown = link_pages(markdown, page.file.src_uri)
    markdown = MARK.sub(lambda match: _generated(match[1], match[2]), markdown)
    return outside_fences(markdown, _link_names)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link the errors that docstrings say are raised."""
    return ERROR.sub(r'<autoref identifier="nd.errors.\1" optional>\g<0></autoref>', html)


def _generated(function: str, arguments: str) -> str:
    return PARTS[function](*ast.literal_eval(f"({arguments},)" if arguments else "()"))


def _link_names(text: str) -> str:
    """Return text whose public names in code lead to the reference; in headings they stay as they are."""
    known = reference.public()

    def link(match: re.Match[str]) -> str:
        name = match[1]
        return f"[{match[0]}][{name}]" if name in known else match[0]

    return "".join(line if line.startswith("#") else NAME.sub(link, line) for line in text.splitlines(keepends=True))
