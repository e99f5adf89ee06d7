"""Processes that are killed, or denied the disk, anywhere on their way: nothing is lost or half-written, and all heals.

The points are counted, not timed: a line of what writes files, a byte of a file, a call that touches the disk.
"""

import hashlib
import io
import json
import random
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from nori_dyn.io.files import BEFORE
from tests.attack.targets import ARM, CORPUS
from tests.attack.victims import Injury, Outcome, Victims

INJURIES = 10
"""Processes killed or denied the disk at scale 1."""

PAIRS = 1
"""Pairs of processes on one cache at scale 1."""

KILLS = ("kill at line", "kill at byte")
FAILURES = ("fail at write", "fail from write", "fail at byte")

USUAL = ("fail at write",)
"""What happens without `--all` too."""

PARTIAL = (".partial-", ".export-", BEFORE)
"""How the names of what is not finished begin."""


class Place(NamedTuple):
    """A folder of a user, and a cache."""

    folder: Path

    def run(self, victims: Victims, *injuries: Injury) -> list[Outcome]:
        """Make a plan, export it, and run it over a log, in a process for each injury."""
        plan, export, estimate = (str(self.folder / name) for name in ("arm.plan", "export", "out.csv"))
        commands = [
            ["plan", str(ARM), "--sensors", "inverse_dynamics", "--out", plan],
            ["export", plan, "--out", export],
            ["solve", "--plan", plan, "--input", str(CORPUS / "log.csv"), "--out", estimate],
        ]
        return victims.run(commands, self.folder / "cache", *injuries)

    def files(self) -> dict[str, bytes]:
        """What is there, by name, but what is not yet under its name, or a part of what is to go on."""
        found = {path.relative_to(self.folder): path for path in self.folder.rglob("*") if path.is_file()}
        is_partial = {name: any(part.startswith(PARTIAL) for part in name.parts) for name in found}
        return {str(name): path.read_bytes() for name, path in found.items() if not is_partial[name]}


@pytest.fixture(scope="module")
def whole(victims, tmp_path_factory):
    """What a process makes that nothing happens to, and how long its way is."""
    place = Place(tmp_path_factory.mktemp("whole"))
    (outcome,) = place.run(victims)
    assert outcome.code == 0, outcome.text
    files = place.files()
    assert {Path(name).suffix for name in files} >= {".plan", ".csv", ".json", ".c", ".h", ".txt"}
    return outcome, files


METADATA, DIGEST = ".csv-metadata.json", "nori_dyn:sha256"


def somewhere(rng: random.Random, kind: str, way: Outcome, largest: int) -> Injury:
    """An injury at a random point of the way; bytes are spread over the sizes of all files."""
    ends = {"kill at line": way.lines, "fail at write": way.writes, "fail from write": way.writes}
    return Injury(kind, rng.randint(1, ends[kind]) if kind in ends else int(largest ** rng.random()))


def check(place: Place, whole: dict[str, bytes], before: dict[str, bytes]) -> None:
    """Check that every file of a place is as it was before, or as it is to be, and nothing between."""
    for name, content in place.files().items():
        assert content == before.get(name) or _is_same(name, content, whole[name]), f"{name} is half-written"
        if name.endswith(METADATA) and content != before.get(name):
            table = place.files()[name.removesuffix("-metadata.json")]
            assert json.loads(content)[DIGEST] == hashlib.sha256(table).hexdigest(), f"{name} is of another table"
    lost = [name for name in before if name in whole and name not in place.files()]
    assert not lost


def check_export(place: Place, whole: dict[str, bytes], before: dict[str, bytes], outcome: Outcome) -> None:
    """Check that an export is as it was, or as it is to be, or else that what was there is whole where it is told."""
    found, old, new = (
        {Path(name).relative_to("export"): content for name, content in files.items() if name.startswith("export/")}
        for files in (place.files(), before, whole)
    )
    left = [] if outcome.killed else [*place.folder.rglob(".*")]
    if found in (old, new):
        assert not left
    else:
        (spare,) = (place.folder / "export").glob(f"{BEFORE}*")
        kept = {path.relative_to(spare): path.read_bytes() for path in spare.rglob("*") if path.is_file()}
        assert (found | kept).items() >= old.items()
        assert outcome.killed or (left == [spare] and f"they are in '{spare}'" in outcome.text)


def _is_same(name: str, content: bytes, whole: bytes) -> bool:
    """Whether a file is as it is to be; numbers need not agree to the last bit, as where nothing is compiled.

    A record of the cache is whole by its seal: it may be one of before the first batch.
    """
    if name.startswith("cache/native/") and name.endswith(".json"):
        seal, _, record = content.partition(b"\n")
        return hashlib.sha256(record).hexdigest().encode() == seal
    if content != whole and name.endswith(METADATA):  # the digest is that of the table beside it, see `check`
        one, other = (json.loads(each) for each in (content, whole))
        return {**one, DIGEST: ""} == {**other, DIGEST: ""}
    if content == whole or not name.endswith(".csv"):
        return content == whole
    one, other = (np.genfromtxt(io.BytesIO(table), delimiter=",", skip_header=1) for table in (content, whole))
    return one.shape == other.shape and np.allclose(one, other, atol=1e-9)


@pytest.mark.parametrize(
    "kind",
    [kind if kind in USUAL else pytest.param(kind, marks=pytest.mark.long) for kind in KILLS + FAILURES],
)
def test_nothing_is_lost_or_half_written(victims, whole, kind, attack_scale, attack_seed, attacked, tmp_path):
    way, files = whole
    rng = random.Random(f"{attack_seed} {kind}")
    largest = max(map(len, files.values()))
    for number in range(max(1, round(attack_scale * INJURIES / len(KILLS + FAILURES)))):
        place = Place(tmp_path / str(number))
        _begin(place, files, rng)
        before = place.files()
        injury = somewhere(rng, kind, way, largest)
        (outcome,) = place.run(victims, injury)
        assert outcome.killed or outcome.code in (0, 1), (injury, outcome)
        assert "Traceback" not in outcome.text, (injury, outcome)
        check(place, files, before)
        check_export(place, files, before, outcome)
        (healed,) = place.run(victims)
        assert healed.code == 0, (injury, healed)
        assert place.files() == files, injury
        shutil.rmtree(place.folder)
        attacked("kills" if kind in KILLS else "failures of the disk", int(outcome.killed or kind in FAILURES))


def _begin(place: Place, whole: dict[str, bytes], rng: random.Random) -> None:
    """Let some of the files be there already, whole, and those of the user and of an export older."""
    place.folder.mkdir()
    for name, content in whole.items():
        if rng.random() < 0.4:
            path = place.folder / name
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            older = b"/* older */" + content if name.startswith("export/") else b"older"
            path.write_bytes(content if name.startswith("cache/") else older)


@pytest.mark.long
def test_two_processes_at_once(victims, whole, attack_scale, attack_seed, attacked, tmp_path):
    way, files = whole
    rng = random.Random(f"{attack_seed} pairs")
    for number in range(max(1, round(attack_scale * PAIRS))):
        place = Place(tmp_path / str(number))
        place.folder.mkdir()
        injuries = Injury(), somewhere(rng, "kill at line", way, 0)
        survivor, killed = place.run(victims, *injuries)
        assert survivor.code == 0, (injuries, survivor)
        check(place, files, {})
        assert place.run(victims)[0].code == 0
        assert place.files() == files
        attacked("kills", int(killed.killed))
