"""The reference, from the code: public names, sensors, sets of sensors, errors, commands."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Iterable
from functools import cache
from types import ModuleType
from typing import Any

import typer.main
import yaml

import nori_dyn as nd
from docs.generate.places import ROOT
from nori_dyn.cli import app
from nori_dyn.io.sensor_configs import shipped_configs

ROOMS = ("errors", "interop", "measurements", "observe", "placement", "recursions")


# ---------------------------------------------------------------------------------- public names


@cache
def public() -> dict[str, Any]:
    """Return what is public, by the name that users write: "nd.plan", "nd.observe.Conditioning"."""
    top = {f"nd.{name}": getattr(nd, name) for name in nd.__all__ if name != "__version__"}
    return top | {f"nd.{room}.{name}": getattr(getattr(nd, room), name) for room in ROOMS for name in names_in(room)}


def names_in(room: str) -> list[str]:
    """Return the public names of a room; of one without `__all__`, the classes that it defines."""
    module = getattr(nd, room)
    defined = (
        name for name, part in vars(module).items() if inspect.isclass(part) and part.__module__ == module.__name__
    )
    return sorted(getattr(module, "__all__", None) or (name for name in defined if not name.startswith("_")))


def public_names(*rooms: str) -> str:
    """Return the entries of the top-level names that are defined in some rooms of the package."""
    own = {name: part for name, part in public().items() if name.count(".") == 1 and not isinstance(part, ModuleType)}
    return "\n".join(_entry(name, part) for name, part in own.items() if _module(part).split(".")[1] in rooms)


def room(name: str) -> str:
    """Return what a room says of itself, and the entries of its names; those with a shorter name are there."""
    by_part = {id(part): short for short, part in public().items() if short.count(".") == 1}
    entries = []
    for own in names_in(name):
        long, part = f"nd.{name}.{own}", getattr(getattr(nd, name), own)
        short = by_part.get(id(part))
        is_here = short is None or name == "errors"
        entries.append(_entry(long, part, short) if is_here else _pointer(long, short))
    head, _, rest = inspect.getdoc(getattr(nd, name)).partition("Example:\n")  # type: ignore[union-attr]
    example = textwrap.dedent(rest).strip()
    return "\n".join([f"[](){{ #nd.{name} }}\n", _prose(head), f"```pycon\n{example}\n```\n", *entries])


def _prose(text: str) -> str:
    """Return the docstring of a room as Markdown, its lists of calls as code."""
    paragraphs = text.strip().split("\n\n")
    return (
        "\n\n".join(
            f"```python\n{textwrap.dedent(part)}\n```" if re.match(r"(    )?[a-z]\S*( = |\()|    ", part) else part
            for part in paragraphs
        )
        + "\n"
    )


def _module(part: Any) -> str:
    return part.__module__


def _entry(name: str, part: Any, short: str | None = None) -> str:
    """Return the directive that documents a public name, with the anchors by which pages link it."""
    path = f"{_module(part)}.{part.__qualname__}"
    anchors = "\n".join(f"[](){{ #{one} }}" for one in (short, name) if one)
    options = {"heading": name, "toc_label": name if name.count(".") == 1 else name.rpartition(".")[2]}
    return f"{anchors}\n\n::: {path}\n    options: {json.dumps(options)}\n"


def _pointer(name: str, short: str) -> str:
    return f"[](){{ #{name} }}\n\n`{name}` is [`{short}`][{short}].\n"


# -------------------------------------------------------------------------------- sensors


SAMPLE = nd.autotree(4, branching=2)
"""The robot on which examples of sensors are tried."""


def sensor_types() -> str:
    """Return what all types may say, and of each what it reads, its equation, an example, units and fields."""
    common = nd.measurements.Measurement
    shared = f"## What each may say {{ #common }}\n\n{_fields(common, ('name', 'value', 'sigma', 'range'))}\n"
    types = nd.measurements.measurement_types()
    return "\n".join([shared, *(_sensor(name, kind) for name, kind in sorted(types.items()))])


def _sensor(name: str, kind: type[nd.measurements.Measurement]) -> str:
    text = (inspect.getdoc(kind) or "").partition("Attributes:")[0].strip()
    classes = kind.__mro__[: kind.__mro__.index(nd.measurements.Measurement)]
    own = [key for key in kind.model_fields if any(key in vars(owner).get("__annotations__", ()) for owner in classes)]
    parts = [
        f"## `{name}` {{ #{name} }}",
        _as_code(text),
        f"Units: {units(kind)}." if units(kind) else "",
        _fields(kind, (key for key in own if key != "type" and _meaning(kind, key) != "there is none.")),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _fields(kind: type[nd.measurements.Measurement], keys: Iterable[str]) -> str:
    """Return the table of some fields of a sensor."""
    rows = []
    for key in keys:
        field = kind.model_fields[key]
        rows.append(
            f"| `{field.alias or key}` | {_choices(field.annotation)} | {_default(field)} | {_meaning(kind, key)} |"
        )
    return "\n".join(["| field | may be | default | meaning |", "|---|---|---|---|", *rows])


def example(kind: type[nd.measurements.Measurement]) -> dict[str, Any]:
    """Return the entry of a config that the docstring of a sensor shows.

    Raises:
        ValueError: it shows none, or no equation before it.
    """
    blocks = [textwrap.dedent(block).strip() for block in _blocks(inspect.getdoc(kind) or "")]
    entries = [block for block in blocks if block.startswith("- {type:")]
    if not entries or entries[0] == blocks[0]:
        raise ValueError(f"the docstring of {kind.__name__} lacks its equation, or an example in YAML after it")
    return yaml.safe_load(entries[0])[0]


def units(kind: type[nd.measurements.Measurement]) -> str:
    """Return the components that a sensor reads by default, with their units, as it says itself of a robot."""
    (first, *_) = kind.model_validate(example(kind)).on(SAMPLE)
    of = zip(first.components, getattr(first, "units", None) or (), strict=False)
    return ", ".join(f"{component or 'each'} [{unit}]" for component, unit in of)


def _blocks(text: str) -> list[str]:
    return re.findall(r"(?:(?<=\n\n)|^)(?: {4}.*(?:\n|$))+", text, flags=re.MULTILINE)


def _as_code(text: str) -> str:
    """Return a docstring with its blocks of equations and YAML in fences."""
    for block in _blocks(text):
        inner = textwrap.dedent(block).strip()
        language = "yaml" if inner.startswith("- {type:") else "text"
        text = text.replace(block.rstrip("\n"), f"```{language}\n{inner}\n```", 1)
    return text


def _meaning(kind: type, key: str) -> str:
    """Return what the docstring of a class, or of one that it derives from, says of a field."""
    said = next((said for owner in kind.__mro__ if (said := _says(owner, key))), MEANINGS.get(key, ""))
    return said.rstrip(".") + "." if said else ""


def _says(owner: type, key: str) -> str:
    """Return what the docstring of a class itself says of an attribute."""
    section = (owner.__doc__ or "").partition("Attributes:")[2].split("\n\n")[0]
    found = re.search(rf"^ +{key}: (.*(?:\n {{9,}}.*)*)", section, flags=re.MULTILINE)
    return " ".join(found[1].split()).replace("None", "null") if found else ""


MEANINGS = {
    "components": "which components it reads, in this order; all where it is left out.",
    "links": "which links, or frames on links.",
}


def _choices(annotation: Any) -> str:
    """Return in words what a field takes."""
    text = repr(annotation).replace("typing.", "")
    if literal := re.search(r"Literal\[([^\]]*)\]", text):
        return ("some of " if "list[" in text.lower() else "") + ", ".join(
            f"`{one}`" for one in re.findall(r"'([^']+)'", literal[1])
        )
    for mark, words in WORDS:
        if mark in text:
            return words
    return "text"


WORDS = (
    ("Except", "a [selector](../sensors.md)"),
    ("Pose", "a frame by its name, or `{xyz: [...], rpy: [...], relative_to: ...}`"),
    ("dict[", "a number for each name"),
    ("max_length=2", "`[lowest, highest]`, or one pair a component"),
    ("float", "a number, or one a component"),
    ("bool", "`true`, `false`"),
    ("list[", "a list of names"),
)


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    return (
        ""
        if field.default is None
        else f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"
    )


# ------------------------------------------------------------------------------ sets of sensors


def shipped_sets() -> str:
    """Return every shipped set of sensors: the comment at its head, and its lines."""
    return "\n".join(_set_of_sensors(name, path.read_text()) for name, path in shipped_configs().items())


def _set_of_sensors(name: str, text: str) -> str:
    lines = text.splitlines()
    head = [line for line in lines if line.startswith("#")]
    body = "\n".join(line for line in lines if not line.startswith("#"))
    said = " ".join(line.removeprefix("#").strip() for line in head)
    return f"## `{name}` {{ #{name} }}\n\n{_plain(said)}\n\n```yaml\n{body.strip()}\n```\n"


def _plain(text: str) -> str:
    """Return text in which nothing but code in backticks is Markdown."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if i % 2 else re.sub(r"([*_<])", r"\\\1", piece) for i, piece in enumerate(pieces))


# ------------------------------------------------------------------------------------- commands


def commands() -> str:
    """Return every command: its help, and its options."""
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return "\n".join(_command(name, command) for name, command in sorted(known.items()))


def _command(name: str, command: Any) -> str:
    rows = [
        f"| {', '.join(f'`{option}`' for option in _written(parameter))} | {_cell(parameter.help)} |"
        for parameter in command.params
        if not parameter.hidden
    ]
    said = inspect.cleandoc(command.help or "").replace("Example:", "\n\nExample:")
    example = re.sub(r"Example: (nori-dyn .*(?:\n(?!\n).*)*)", lambda m: f"\n```sh\n{m[1]}\n```\n", said)
    table = "| option | meaning |\n|---|---|\n" + "\n".join(rows) if rows else ""
    return f"## `nori-dyn {name}` {{ #{name} }}\n\n{example}\n\n{table}\n"


def _written(parameter: Any) -> Iterable[str]:
    if parameter.param_type_name == "argument":
        return (parameter.name.upper(),)
    return (*parameter.opts, *parameter.secondary_opts)


def _cell(text: str | None) -> str:
    return _plain(" ".join((text or "").split())).replace("|", "\\|")


# --------------------------------------------------------------------------------- the README


def readme_lines() -> str:
    """Return the README's first lines of Python and, to be unfolded, what they print."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code, end), *_ = [(match[0], match.end()) for match in re.finditer(r"^```python\n.*?^```$", text, flags=BLOCK)]
    printed = re.search(r"^```text\n.*?^```$", text[end:], flags=BLOCK)
    return code + (f'\n\n??? note "What it prints"\n{textwrap.indent(printed[0], "    ")}' if printed else "")


BLOCK = re.DOTALL | re.MULTILINE
