"""Commands that are options of others now: their old words work for one release, outside `--help`."""

from __future__ import annotations

import sys
from collections.abc import Callable

Arguments = list[str]


def renamed(name: str, arguments: Arguments) -> Arguments:
    """Translate a command line that begins with an old word, and say the new one on the standard error."""
    if name not in RENAMED:
        return [name, *arguments]
    words, translate = RENAMED[name]
    print(f"note: 'nori-dyn {name}' is now 'nori-dyn {words}', and goes with the next release", file=sys.stderr)
    return [words.split()[0], *translate(arguments)]


def _options(**new: str) -> Callable[[Arguments], Arguments]:
    """Translation that gives options their new names."""

    def translate(arguments: Arguments) -> Arguments:
        pairs = [word.partition("=") for word in arguments]
        return [new.get(word.removeprefix("--"), word) + sign + value for word, sign, value in pairs]

    return translate


def _also(*added: str) -> Callable[[Arguments], Arguments]:
    """Translation that adds an option, with its value, where it is missing."""
    return lambda arguments: [*arguments, *(() if _has(arguments, added[0]) else added)]


def _has(arguments: Arguments, option: str) -> bool:
    return any(word.partition("=")[0] == option for word in arguments)


def _plot(arguments: Arguments) -> Arguments:
    if _has(arguments, "--out"):
        return _options(out="--plot")(arguments)
    estimates = next((word for word in arguments if not word.startswith("-")), "")
    return [*arguments, "--plot", estimates.rpartition("/")[2].partition(".")[0] + ".png"]


RENAMED: dict[str, tuple[str, Callable[[Arguments], Arguments]]] = {
    "map": ("info LOG --robot ROBOT --draft FILE", _options(out="--draft")),
    "plot": ("info ESTIMATES --plot PICTURE", _plot),
    "view": ("estimate --view PAGE", _options(out="--view", robot="--meshes")),
    "filter": ("estimate", list),
    "smooth": ("estimate --smooth", _also("--smooth")),
    "identifiability": ("observe --parameters", _also("--parameters", "inertias")),
    "excite": ("identify --excite", _also("--excite")),
}
"""The new words of each old command, and what makes new arguments of old ones."""
