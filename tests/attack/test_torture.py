"""Processes that are killed, or denied the disk, anywhere on their way: nothing is lost or half-written, and all heals.

The points are counted, not timed: a line of what writes files, a byte of a file, a call that touches the disk.
"""

from __future__ import annotations

import io
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.attack.targets import ARM, CORPUS
from tests.attack.victims import Injury, Outcome, Victims

INJURIES = 10
"""Processes killed or denied the disk at scale 1."""

PAIRS = 1
"""Pairs of processes on one cache at scale 1."""

KILLS = ("kill at line", "kill at byte")
FAILURES = ("fail at write", "fail from write", "fail at byte")

PARTIAL = (".partial-", ".export-")
"""How the names of what is not finished begin."""


@pytest.fixture(scope="module")
def victims():
    started = Victims()
    yield started
    started.close()


@dataclass
class Place:
    """A folder of a user, and a cache."""

    folder: Path

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def commands(self) -> list[list[str]]:
        """What is done there: a plan is made, exported, and run over a log."""
        plan, export, estimate = (str(self.folder / name) for name in ("arm.plan", "export", "out.csv"))
        return [
            ["plan", str(ARM), "--sensors", "inverse_dynamics", "--out", plan],
            ["export", plan, "--out", export],
            ["solve", "--plan", plan, "--input", str(CORPUS / "log.csv"), "--out", estimate],
        ]

    def files(self) -> dict[str, bytes]:
        """Return what is there, by name, but what is not finished."""
        found = {str(path.relative_to(self.folder)): path for path in self.folder.rglob("*") if path.is_file()}
        return {name: path.read_bytes() for name, path in found.items() if not _is_partial(name)}


def _is_partial(name: str) -> bool:
    """Return whether a file is not yet under its name: of one that is written, or a part of one that is to go on."""
    return any(part.startswith(PARTIAL) or part.endswith(".partial") for part in Path(name).parts)


@pytest.fixture(scope="module")
def whole(victims, tmp_path_factory):
    """Return what a process makes that nothing happens to, and how long its way is."""
    place = Place(tmp_path_factory.mktemp("whole"))
    (outcome,) = victims.run(place.commands, place.cache)
    assert outcome.code == 0, outcome.text
    files = place.files()
    assert {Path(name).suffix for name in files} >= {".plan", ".csv", ".json", ".c", ".h", ".txt"}
    return outcome, files


def somewhere(rng: random.Random, kind: str, way: Outcome, largest: int) -> Injury:
    """Return an injury at a random point of the way; bytes are spread over the sizes of all files."""
    ends = {"kill at line": way.lines, "fail at write": way.writes, "fail from write": way.writes}
    return Injury(kind, rng.randint(1, ends[kind]) if kind in ends else int(largest ** rng.random()))


def check(place: Place, whole: dict[str, bytes], before: dict[str, bytes]) -> None:
    """Check that every file of a place is as it was before, or as it is to be, and nothing between."""
    for name, content in place.files().items():
        assert content == before.get(name) or _is_same(name, content, whole[name]), f"{name} is half-written"
    lost = [name for name in before if name in whole and name not in place.files()]
    assert not lost


def _is_same(name: str, content: bytes, whole: bytes) -> bool:
    """Return whether a file is as it is to be; numbers need not agree to the last bit, as where nothing is compiled."""
    if content == whole or not name.endswith(".csv"):
        return content == whole
    one, other = (np.genfromtxt(io.BytesIO(table), delimiter=",", skip_header=1) for table in (content, whole))
    return one.shape == other.shape and np.allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("kind", [*KILLS, *FAILURES])
def test_nothing_is_lost_or_half_written(victims, whole, kind, attack_scale, attack_seed, attacked, tmp_path):
    way, files = whole
    rng = random.Random(f"{attack_seed} {kind}")
    largest = max(map(len, files.values()))
    for number in range(max(1, round(attack_scale * INJURIES / len(KILLS + FAILURES)))):
        place = Place(tmp_path / str(number))
        _begin(place, files, rng)
        before = place.files()
        injury = somewhere(rng, kind, way, largest)
        (outcome,) = victims.run(place.commands, place.cache, injury)
        assert outcome.killed or outcome.code in (0, 1), (injury, outcome)
        assert "Traceback" not in outcome.text, (injury, outcome)
        check(place, files, before)
        if not outcome.killed:
            assert not list(place.folder.rglob(".*")), injury
        (healed,) = victims.run(place.commands, place.cache)
        assert healed.code == 0, (injury, healed)
        assert place.files() == files, injury
        shutil.rmtree(place.folder)
        attacked("kills" if kind in KILLS else "failures of the disk", int(outcome.killed or kind in FAILURES))


def _begin(place: Place, whole: dict[str, bytes], rng: random.Random) -> None:
    """Let some of the files be there already, whole, and those of the user older."""
    place.folder.mkdir()
    for name, content in whole.items():
        if rng.random() < 0.4:
            path = place.folder / name
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.write_bytes(content if len(Path(name).parts) > 1 else b"older")


def test_two_processes_at_once(victims, whole, attack_scale, attack_seed, attacked, tmp_path):
    way, files = whole
    rng = random.Random(f"{attack_seed} pairs")
    for number in range(max(1, round(attack_scale * PAIRS))):
        place = Place(tmp_path / str(number))
        place.folder.mkdir()
        injuries = Injury(), somewhere(rng, "kill at line", way, 0)
        survivor, killed = victims.run(place.commands, place.cache, *injuries)
        assert survivor.code == 0, (injuries, survivor)
        check(place, files, {})
        assert victims.run(place.commands, place.cache)[0].code == 0
        assert place.files() == files
        attacked("kills", int(killed.killed))
