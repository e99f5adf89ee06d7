"""Full disks: whatever writes a file ends with a line that says so, and leaves the file whole, as it was, or not there.

Every writer of the command line is denied the disk at a random byte of its files (`RLIMIT_FSIZE`), at a random call
that touches it, and by a disk that is as large, a tmpfs where one may be mounted; and standard output that is full.
"""

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.io.files import BEFORE
from nori_dyn.logs.formats.registry import open_log
from tests.attack.targets import ARM
from tests.attack.victims import ROOT, Injury, Outcome, Victims
from tests.unit.report.test_recording import Recording

DENIALS = 6
"""Times that each writer is denied the disk at scale 1."""

SAMPLES = 400
"""Samples of the log that is read: more than what any format writes before it is full."""

T = 0.01 * np.arange(SAMPLES)
MOTION = [
    np.column_stack([0.5 * np.sin(5 * T), 0.2 + 0.1 * np.sin(7 * T)]),
    np.column_stack([2.5 * np.cos(5 * T), 0.7 * np.cos(7 * T)]),
    np.column_stack([-12.5 * np.sin(5 * T), -4.9 * np.sin(7 * T)]),
]
"""How the arms move: q, qd, qdd."""

CONTACTS = """name: touch
measurements:
  - {type: joint_torque, joints: all}
  - {type: external_wrench, links: {except: upper}, value: 0}
contacts:
  foot:
    closed: [{type: rigid_contact, links: upper, components: [az]},
      {type: external_wrench, links: upper, components: [mx, my, mz, fx, fy], value: 0}]
    open: [{type: external_wrench, links: upper, value: 0}]
"""

OBSERVER = """name: observer
measurements:
  - {type: joint_torque, joints: all, sigma: 0.1, offset: {sigma: 10}}
  - {type: external_wrench, links: all, value: 0}
memory: {speed: {of: qd, rate: qdd, noise: 0.01}, push: {of: offset, walk: 1}}
"""

MJCF = """<mujoco><worldbody><body><joint name="shoulder" axis="0 0 1" damping="0.1"/>
  <inertial pos="0.1 0 0" mass="2" diaginertia="0.1 0.1 0.1"/>
  <body pos="0.5 0 0"><joint name="slide" type="slide" axis="0 0 1"/>
    <inertial pos="0 0 0.1" mass="1" diaginertia="0.1 0.1 0.1"/></body></body></worldbody></mujoco>
"""

CANDIDATES = """name: what_to_buy
measurements: [{type: external_wrench, links: all, value: 0}]
candidates:
  measurements: [{type: joint_acceleration, joints: all}, {type: joint_torque, joints: all}]
"""

KINDS = ("fail at byte", "fail at write", "fail from write", "full disk")
"""How the disk is denied; a full disk is a tmpfs of some pages, which only root may mount."""

PAGE, OLDER = 4096, b"older"

REASONS = re.compile(
    "File too large|No space left|Read-only|Permission denied|Input/output error|Too many open files|disk (is full|I/O)"
)
"""What an error says of the disk."""


class Writer(NamedTuple):
    """What writes files.

    Attributes:
        words: of the command; {out} is a folder, {in} one with plans and logs.
        files: what it writes there.
    """

    words: str
    files: tuple[str, ...]


LOG_ENDINGS = "csv", "csv.gz", "parquet", "feather", "arrow", "h5", "npz", "mat", "mcap", "bag", "ros2"
WRITERS = {
    **{
        f"solve, {ending}": Writer(
            f"solve --plan {{in}}/arm.plan --input {{in}}/log.npz --out {{out}}/out.{ending} --backend numpy",
            (f"out.{ending}", *([f"out.{ending}-metadata.json"] if "csv" in ending else [])),
        )
        for ending in LOG_ENDINGS
    },
    **{
        f"{how}, {ending}": Writer(
            f"{command} --plan {{in}}/observer.plan --input {{in}}/log.npz --out {{out}}/out.{ending} --backend numpy",
            (f"out.{ending}", *([f"out.{ending}-metadata.json"] if "csv" in ending else [])),
        )
        for how, command, ending in (("filter", "estimate", "h5"), ("smooth", "estimate --smooth", "csv"))
    },
    "plan": Writer(f"plan {ARM} --sensors inverse_dynamics --out {{out}}/a.plan --no-cache", ("a.plan",)),
    "plan set": Writer(
        f"plan {ARM} --sensors {{in}}/touch.yaml --contacts all --out {{out}}/a.plan --no-cache", ("a.plan",)
    ),
    "export": Writer("export {in}/arm.plan --out {out}/c", ("c",)),
    "export, filter": Writer("export {in}/observer.plan --filter --dt 0.01 --out {out}/c", ("c",)),
    "observe, page": Writer(f"observe {ARM} --sensors inverse_dynamics --samples 2 --html {{out}}/a.html", ("a.html",)),
    "place": Writer(
        f"place {ARM} --candidates {{in}}/candidates.yaml --outputs tau --out {{out}}/a.yaml --html {{out}}/a.html",
        ("a.yaml", "a.html"),
    ),
    "draft": Writer(f"info {{in}}/log.npz --robot {ARM} --draft {{out}}/a.yaml", ("a.yaml",)),
    "identify": Writer(
        f"identify {{in}}/log.npz --robot {ARM} --parameters inertias,friction --out {{out}}/a.urdf "
        "--components-out {out}/a.yaml --html {out}/a.html",
        ("a.urdf", "a.yaml", "a.html"),
    ),
    "identify, MJCF": Writer(
        "identify {in}/model.npz --robot {in}/arm.xml --parameters inertias,friction --out {out}/a.xml",
        ("a.xml",),
    ),
    "view, page": Writer("estimate --plan {in}/arm.plan --input {in}/log.npz --view {out}/a.html", ("a.html",)),
    "view, recording": Writer("estimate --plan {in}/arm.plan --input {in}/log.npz --view {out}/a.rrd", ("a.rrd",)),
    "plot": Writer("info {in}/log.npz tau --plot {out}/a.png", ("a.png",)),
    "excite": Writer(
        f"identify --excite --robot {ARM} --duration 2 --harmonics 2 --starts 1 --acceleration 5 --speed 2 --rate 100 "
        "--out {out}/a.csv.gz",
        ("a.csv.gz", "a.csv.gz-metadata.json"),
    ),
}
USUAL = "solve, csv", "solve, h5", "plan"
"""What is denied the disk without `--all` too."""


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> Path:
    """A folder with what is read."""
    folder = tmp_path_factory.mktemp("given")
    for name, text in {"touch.yaml": CONTACTS, "observer.yaml": OBSERVER, "candidates.yaml": CANDIDATES}.items():
        (folder / name).write_text(text)
    (folder / "arm.xml").write_text(MJCF)
    tree = nd.load_robot(ARM)
    for name, robot in {"log.npz": tree, "model.npz": nd.load_robot(folder / "arm.xml")}.items():
        moved = robot.replace(components=[nd.components.Friction(joints="all", viscous=1.0, coulomb=1.0)])
        q, qd, qdd = MOTION
        tau = nd.rnea(moved, q.T, qd.T, qdd.T).T
        np.savez(folder / name, t=T, q=q, qd=qd, qdd=qdd, tau=tau)
    nd.plan(nd.System(tree, "inverse_dynamics")).save(folder / "arm.plan")
    nd.plan(nd.System(tree, nd.load_sensors(folder / "observer.yaml"))).save(folder / "observer.plan")
    return folder


def run(victims: Victims, writer: Writer, given: Path, out: Path, injury: Injury) -> Outcome:
    words = writer.words.replace("{in}", str(given)).replace("{out}", str(out)).split()
    (outcome,) = victims.run([words], given / "cache", injury)
    return outcome


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def content(folder: Path, name: str) -> object:
    """What a file, or a folder, says; of logs the numbers: they hold times and names of their own, too."""
    path = folder / name
    if path.suffix == ".rrd":
        return Recording(path).columns.keys()
    if name.startswith("out.") and not name.endswith(".json"):
        with open_log(path) as log:
            blocks = list(log.read({stream.name: stream.columns for stream in log.streams}))
        return [(block.stream, block.first, [values.tolist() for values in block.values]) for block in blocks]
    return files_in(path) if path.is_dir() else path.read_bytes()


@contextmanager
def disk_of(pages: int, folder: Path) -> Iterator[bool]:
    """Let a folder be a disk of some pages, where that may be; give whether it is."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={pages * PAGE}", "tmpfs", str(folder)]
    try:
        is_mounted = subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        is_mounted = False
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory) -> tuple[str, ...]:
    """How the disk can be denied here."""
    with disk_of(1, tmp_path_factory.mktemp("disk")) as is_mounted:
        return KINDS if is_mounted else KINDS[:-1]


@pytest.mark.parametrize("name", [x if x in USUAL else pytest.param(x, marks=pytest.mark.long) for x in WRITERS])
def test_a_full_disk_is_told_and_leaves_whole_files(
    name, victims, given, kinds, attack_scale, attack_seed, attacked, tmp_path
):
    writer, rng = WRITERS[name], random.Random(f"{attack_seed} {name}")
    (whole := tmp_path / "whole").mkdir()
    way = run(victims, writer, given, whole, Injury("fail at byte", 1 << 40))
    assert way.code == 0, way.text
    assert {path.name for path in whole.iterdir()} == set(writer.files)
    expected = {file: content(whole, file) for file in writer.files}
    largest = max(map(len, files_in(whole).values()))
    for number in range(max(1, round(attack_scale * DENIALS))):
        (out := tmp_path / str(number)).mkdir()
        kind = rng.choice(kinds)
        at = rng.randint(1, way.writes) if "write" in kind else int(largest ** rng.random())
        older = [file for file in writer.files if (whole / file).is_file() and rng.random() < 0.5]
        with disk_of(1 + at // PAGE + len(older), out) if kind == "full disk" else nullcontext():
            for file in older:
                (out / file).write_bytes(OLDER)
            outcome = run(victims, writer, given, out, Injury("" if kind == "full disk" else kind, at))
            check(out, outcome, expected, older, f"{name}: {kind} {at}")
        shutil.rmtree(out)
        attacked("full disks", int(outcome.code == 1))


def check(out: Path, outcome: Outcome, expected: dict[str, object], older: list[str], what: str) -> None:
    """Check that each file is whole, as it was, or not there; and that what was printed says why."""
    assert not outcome.killed, what
    assert outcome.code in (0, 1), (what, outcome.text)
    assert "Traceback" not in outcome.text, (what, outcome.text)
    assert outcome.code == 0 or REASONS.search(outcome.text), (what, outcome.text)
    left = {path.name for path in out.iterdir()}
    if any(name.startswith(BEFORE) for name in left):  # nothing can be moved any more
        assert "and the previous files cannot be restored" in outcome.text, what
        return
    assert left <= {*expected}, what
    for file, whole in expected.items():
        is_older = file in older and (out / file).is_file() and (out / file).read_bytes() == OLDER
        if file not in left or is_older:
            assert outcome.code == 1, (what, f"{file} is not written")
            assert is_older or file not in older, (what, f"{file} is lost")
        else:
            assert content(out, file) == whole, (what, f"{file} is half-written")


@pytest.mark.long
@pytest.mark.parametrize("words", ["plan {arm} --sensors inverse_dynamics --out /dev/full", "schema"])
def test_a_device_that_is_full_and_a_reader_that_has_gone(words):
    command = [sys.executable, "-m", "nori_dyn", *words.format(arm=ARM).split()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as gone:
        assert gone.stdout is not None
        assert gone.stderr is not None
        gone.stdout.close()
        errors = gone.stderr.read()
    full = "error: /dev/full: cannot be written: No space left on device.\n"
    assert errors == (full if "/dev/full" in words else "")
