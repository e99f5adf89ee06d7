"""HDF5 files that mean harm: no byte of another file comes out of one, and no claim takes all memory, or all time.

Files are put together at random of what HDF5 can do: links and numbers in other files, arrays made of arrays, shapes
and pieces of any size, loops of links. Each is read in a process of its own, as libraries in C may crash.
"""

import json
import os
import random
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from nori_dyn.errors import NoriError
from nori_dyn.logs.formats.registry import open_log
from tests.peers import Peer

h5py = Peer("h5py")

FILES = 200
"""Files at scale 1."""

ROOM, CPU = 1 << 30, 30
"""Bytes beyond those of the process, and seconds of the processor, that no file may need."""

SECRET = np.frombuffer(b"SECRET-4f1c-" * 100, dtype=np.uint8)
"""The content of a file that no log may bring in."""

N = 64
HONEST = {"t": np.arange(N) / 100, "q": np.linspace(0.0, 1.0, 2 * N).reshape(N, 2)}


class Trick(NamedTuple):
    """What a file does.

    Attributes:
        make: does it in a file, at a place, given a folder with other files.
        brings_in: whether it would bring in another file.
    """

    make: Callable[[Any, str, Path, random.Random], None]
    brings_in: bool = False


def external_link(file, at, folder, rng):
    file[at] = h5py.ExternalLink(
        rng.choice(["other.h5", str(folder / "other.h5"), "./other.h5"]), rng.choice(["/q", "/"])
    )


def external_storage(file, at, folder, rng):
    first = (rng.choice([str(folder / "secret.bin"), "secret.bin"]), rng.randrange(3), 600)
    others = [(str(folder / "secret.bin"), 0, 600)] * rng.randrange(3)
    file.create_dataset(at, (N,), rng.choice(["u1", "f8", "i4"]), external=[first, *others])


def of_another_file(file, at, folder, rng):
    name = rng.choice(["other.h5", str(folder / "other.h5"), "./log.h5"])
    of_sources(file, at, [(name, "q")])


def of_sources(file, at, sources):
    layout = h5py.VirtualLayout((N, 2), "f8")
    for k, (name, array) in enumerate(sources):
        rows = slice(k * N // len(sources), (k + 1) * N // len(sources))
        layout[rows] = h5py.VirtualSource(name, array, (N, 2))[rows]
    file.create_virtual_dataset(at, layout)


def of_itself(file, at, folder, rng):
    ring = [at, *(f"{at}_{k}" for k in range(rng.randrange(3)))]
    for k, name in enumerate(ring):
        of_sources(file, name, [(".", ring[(k + 1) % len(ring)]), (".", "q")][: rng.randint(1, 2)])


def of_itself_by_links(file, at, folder, rng):
    file[f"{at}_link"] = h5py.SoftLink(f"/{at}")
    of_sources(file, at, [(".", f"{at}_link")])


def of_a_series(file, at, folder, rng):
    """Make `trick0` of `trick0`, `trick1`, ..., as far as there are any; or of files in a row."""
    space = h5py.h5s.create_simple((N, 2), (h5py.h5s.UNLIMITED, 2))
    space.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), stride=(N, 2), block=(N, 2))
    created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    group = file.require_group(at)
    created.set_virtual(space, b".", f"{at}/trick%b".encode(), h5py.h5s.create_simple((N, 2)))
    whole = h5py.h5s.create_simple((N, 2), (h5py.h5s.UNLIMITED, 2))
    h5py.h5d.create(group.id, b"trick0", h5py.h5t.NATIVE_DOUBLE, whole, created)


def of_honest_ones(file, at, folder, rng):
    of_sources(file, at, [(".", "/q"), (".", "q")])


def of_nothing(file, at, folder, rng):
    of_sources(file, at, [(".", "nowhere")])


def huge_shape(file, at, folder, rng):
    shape = [2 ** rng.randrange(20, 60) for _ in range(rng.randint(1, 3))]
    shape = [N, *shape] if rng.random() < 0.5 else shape
    chunks = tuple(min(n, 2 ** rng.randrange(8)) for n in shape) if rng.random() < 0.7 else None
    try:
        file.create_dataset(at, tuple(shape), rng.choice(["f8", "u1", "i2"]), chunks=chunks)
    except (ValueError, OSError, RuntimeError):  # more than HDF5 itself can
        file[at] = np.zeros(N)


def many_axes(file, at, folder, rng):
    axes = rng.randint(3, 31)
    file.create_dataset(at, (N, *[rng.randint(1, 4)] * axes), "f8", chunks=(1,) * (axes + 1))


def huge_pieces(file, at, folder, rng):
    size = 2 ** rng.randrange(24, 29)
    array = file.create_dataset(at, (size,), "f8", chunks=(size,), compression="gzip", compression_opts=1)
    if rng.random() < 0.1:
        array[:1] = 1.0


def wide(file, at, folder, rng):
    file.create_dataset(at, (N, 2 ** rng.randrange(10, 22)), "f8", chunks=(N, 256))


def huge_names(file, at, folder, rng):
    group = file.create_group(at)
    group["data"], group["timestamps"] = np.ones((N, 2)), HONEST["t"]
    text = file.create_dataset(f"{at}_text", (2 ** rng.randrange(1, 40),), "u2", chunks=(1,))
    if rng.random() < 0.5:
        group["elements_names"] = np.array([text.ref] * 2, dtype=h5py.ref_dtype)
    else:
        group.create_dataset("elements_names", (2 ** rng.randrange(1, 40),), h5py.ref_dtype, chunks=(1,))


def names_by_link(file, at, folder, rng):
    group = file.create_group(at)
    group["data"], group["timestamps"] = np.ones((N, 2)), HONEST["t"]
    group["elements_names"] = h5py.SoftLink(rng.choice(["/nowhere", f"/{at}/elements_names", "/q"]))


def link_loops(file, at, folder, rng):
    file[f"{at}_a"], file[f"{at}_b"] = h5py.SoftLink(f"/{at}_b"), h5py.SoftLink(f"/{at}_a")
    group = file.create_group(at)
    group["up"] = file["/"]
    group["self"] = group
    group["soft"] = h5py.SoftLink("..")


def deep_groups(file, at, folder, rng):
    file["/".join([at] * rng.randint(10, 2000))] = np.ones(N)


def odd_labels(file, at, folder, rng):
    file[at] = np.ones((N, 2))
    odd = [h5py.Empty("f"), np.zeros(5000), "x" * 5000, np.array(["a", "b"], dtype="S"), file["q"].ref]
    for name in ("labels", "units", "MATLAB_class", "MATLAB_empty"):
        if rng.random() < 0.5:
            file[at].attrs[name] = rng.choice(odd)


def odd_types(file, at, folder, rng):
    kinds = [h5py.vlen_dtype("f8"), h5py.string_dtype(), h5py.ref_dtype, "c16", [("a", "f8")], ("f8", (3,)), "V8"]
    file.create_dataset(at, (N,), np.dtype(rng.choice(kinds)))


TRICKS = {
    "a link to another file": Trick(external_link, True),
    "numbers in another file": Trick(external_storage, True),
    "made of another file": Trick(of_another_file, True),
    "made of itself": Trick(of_itself),
    "made of itself, by links": Trick(of_itself_by_links),
    "made of a series": Trick(of_a_series),
    "made of honest ones": Trick(of_honest_ones),
    "made of nothing": Trick(of_nothing),
    "a huge shape": Trick(huge_shape),
    "many axes": Trick(many_axes),
    "huge pieces": Trick(huge_pieces),
    "wide": Trick(wide),
    "huge names": Trick(huge_names),
    "names by a link": Trick(names_by_link),
    "loops of links": Trick(link_loops),
    "deep groups": Trick(deep_groups),
    "odd labels": Trick(odd_labels),
    "odd types": Trick(odd_types),
}


def made(path: Path, rng: random.Random) -> list[str]:
    """Make a file of one to three tricks beside honest arrays; return their names."""
    names = rng.sample(list(TRICKS), rng.choice((1, 1, 1, 2, 3)))
    with h5py.File(path, "w", libver=rng.choice(["earliest", "latest"])) as file:
        for name, array in HONEST.items():
            file[name] = array
        for k, name in enumerate(names):
            at = rng.choice(["", "arm/", "arm/left/"]) + f"trick{k}"
            TRICKS[name].make(file, at, path.parent, rng)
    return names


def read(path: Path) -> dict[str, Any]:
    """Read a log with little memory; return what is said, and whether the honest arrays are right."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU + int(sum(os.times()[:2])),) * 2)
    found: dict[str, list[np.ndarray]] = {}
    try:
        with open_log(str(path)) as log:
            for block in log.read({stream.name: stream.columns for stream in log.streams}):
                columns = next(stream.columns for stream in log.streams if stream.name == block.stream)
                for column, values in zip(columns, block.values, strict=True):
                    found.setdefault(column, []).append(values)
                    with np.errstate(all="ignore"):
                        assert b"ECRET" not in values.astype(np.uint8).tobytes() + values.tobytes(), column
    except NoriError as error:
        return {"refused": str(error)}
    assert sorted(np.concatenate(found["t"])) == list(HONEST["t"])
    for k in range(2):
        np.testing.assert_array_equal(np.concatenate(found[f"q[{k}]"]), HONEST["q"][:, k])
    return {"answered": len(found)}


def in_a_process(path: Path) -> dict[str, Any]:
    """What comes of reading a log in a child, which may crash.

    Raises:
        AssertionError: it did, or ended with an error that is not ours.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        try:
            os.write(writer, json.dumps(read(path)).encode())
        except BaseException as error:
            os.write(writer, json.dumps({"failed": repr(error)[:500]}).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    assert not os.WIFSIGNALED(status), f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
    told = dict(json.loads(text))
    assert "failed" not in told, told
    return told


@pytest.mark.filterwarnings("ignore::nori_dyn.errors.NoriWarning")
def test_no_file_brings_in_another_or_takes_all_there_is(attack_scale, attack_seed, attacked, attack_scripts, tmp_path):
    SECRET.tofile(tmp_path / "secret.bin")
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["q"] = np.resize(SECRET.astype(float), (N, 2))
    for number in range(max(3, round(attack_scale * FILES))):
        rng = random.Random(f"{attack_seed} {number}")
        path = tmp_path / rng.choice(["log.h5", "log.mat"])
        names = made(path, rng)
        try:
            told = in_a_process(path)
            if any(TRICKS[name].brings_in for name in names):
                assert "refused" in told, told
                assert len(names) > 1 or "another file" in told["refused"], told
            if "refused" in told:
                assert str(path) in told["refused"], told
                assert "trick" in told["refused"], told  # by its name
        except AssertionError as error:
            kept = attack_scripts / f"hdf5-{attack_seed}-{number}{path.suffix}"
            shutil.copy(path, kept)
            raise AssertionError(f"{names}, kept as {kept}: {error}") from error
        path.unlink()
        attacked("hostile HDF5 files", 1)
