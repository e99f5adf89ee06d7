"""Which changes are tried: drawn from a seed, a few in each room and more where there is more code."""

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.mutants.sites import Site, sites, sites_of_c

PACKAGE = Path("nori_dyn")
LEAST = 4
"""Changes of each room, at the least."""


class Mutant(NamedTuple):
    """A module with one change."""

    room: str
    path: Path
    site: Site

    def __str__(self) -> str:
        source = self.path.read_text()
        before, after = (" ".join(text.split()) for text in (source[self.site.start : self.site.end], self.site.text))
        return f"{self.path}:{self.site.line} {self.site.kind}: `{before}` -> `{after}`"


def drawn(n: int, seed: int) -> list[Mutant]:
    """n changes, each of another place; files of C count as a room."""
    rng = random.Random(seed)
    rooms: dict[str, dict[Path, list[Site]]] = defaultdict(dict)
    for path in sorted(PACKAGE.rglob("*.[pch]*")):
        is_python, room = path.suffix == ".py", path.parts[1] if len(path.parts) > 2 else "(root)"
        if is_python or path.suffix in (".c", ".h"):
            found = sites(path.read_text()) if is_python else sites_of_c(path.read_text())
            if found:
                rooms[room if is_python else "C"][path] = found
    sizes = {room: sum(map(len, files.values())) for room, files in rooms.items()}
    left = max(n - LEAST * len(rooms), 0)
    counts = {room: LEAST + round(left * size / sum(sizes.values())) for room, size in sizes.items()}
    return [mutant for room, files in rooms.items() for mutant in _of_room(room, files, counts[room], rng)]


def _of_room(room: str, files: dict[Path, list[Site]], n: int, rng: random.Random) -> Iterator[Mutant]:
    used: set[tuple[Path, int]] = set()
    while n:
        (path,) = rng.choices(list(files), [len(found) for found in files.values()])
        kind = rng.choice(sorted({site.kind for site in files[path]}))
        site = rng.choice([site for site in files[path] if site.kind == kind])
        if (path, site.start) not in used and site.changes(path.read_text()):
            used.add((path, site.start))
            n -= 1
            yield Mutant(room, path, site)
