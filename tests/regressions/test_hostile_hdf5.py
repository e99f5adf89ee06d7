"""HDF5 files of some kilobytes that crashed what read them, took all memory, or never ended; refused by name now."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import FileFormatError
from nori_dyn.logs.formats.registry import open_log
from tests.peers import Peer

h5py = Peer("h5py")

N = 50


def of(file, name: str, source: str) -> None:
    layout = h5py.VirtualLayout((N, 2), "f8")
    layout[:] = h5py.VirtualSource(".", source, (N, 2))
    file.create_virtual_dataset(name, layout)


def itself(file):
    of(file, "x", "x")


def each_other(file):
    of(file, "x", "y")
    of(file, "y", "x")


def by_a_link(file):
    file["y"] = h5py.SoftLink("/x")
    of(file, "x", "y")


def stored_elsewhere(file):
    file.create_dataset("x", (N, 2), "f8", external=[("secret.bin", 0, 16 * N)])


def of_another_file(file):
    layout = h5py.VirtualLayout((N, 2), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "q", (N, 2))
    file.create_virtual_dataset("x", layout)


def a_link(file):
    file["arm/x"] = h5py.ExternalLink("other.h5", "q")


def elements(file):
    group = file.create_group("x")
    group["data"], group["timestamps"] = np.ones((N, 2)), np.arange(float(N))
    return group


def names(file):
    elements(file).create_dataset("elements_names", (1 << 20,), h5py.ref_dtype, chunks=(1024,))


def a_name(file):
    text = file.create_dataset("x_text", (1 << 28,), "u2", chunks=(1 << 16,))
    elements(file)["elements_names"] = np.array([text.ref] * 2, dtype=h5py.ref_dtype)


def pieces(file):
    file.create_dataset("x", (N, 1 << 20), "f8", chunks=(N, 1 << 20), compression="gzip")


def deep(file):
    file["/".join(["x"] * 1000)] = np.ones(N)


HOSTILE = {
    "made of itself": (itself, "'x' is made of 'x', which itself refers to others"),  # SIGSEGV
    "made of each other": (each_other, "'x' is made of 'y', which itself refers to others"),
    "made of itself by a link": (by_a_link, "'x' is made of 'y', which itself refers to others"),
    "stored elsewhere": (stored_elsewhere, "x' .* another file, '.*secret.bin'"),  # its bytes came out as readings
    "made of another file": (of_another_file, "x' .* another file, '.*other.h5'"),
    "a link to another file": (a_link, "x' .* another file, '.*other.h5'"),
    "many rows": (
        lambda f: f.create_dataset("x", (1 << 40, 2), "f8", chunks=(8, 2)),
        "'x' declares 137,438,953,472 pieces",
    ),
    "many rows in one piece": (
        lambda f: f.create_dataset("x", (1 << 40,), "f8"),
        "its arrays declare 8,796.1 GB, 'x' most of it",
    ),
    "more than a number holds": (
        lambda f: f.create_dataset("x", (1 << 40, 1 << 40), "f8", chunks=(8, 8)),
        "'x' declares [0-9,]+ pieces",
    ),
    "many axes": (
        lambda f: f.create_dataset("x", (N,) + (2,) * 30, "f8", chunks=(1,) * 31),
        "'x' declares [0-9,]+ pieces",
    ),
    "large pieces": (pieces, "'x' is in pieces of 0.4 GB"),
    "many pieces": (
        lambda f: f.create_dataset("x", (1 << 27,), "u2", chunks=(1,)),
        "'x' declares 134,217,728 pieces",
    ),
    "deep groups": (deep, "'x/x.*' is in more groups than 64"),  # 18 s of the processor
    "many names": (names, "'/x/elements_names' has 1,048,576 names"),
    "a long name": (a_name, "'/x_text' is a name of 268,435,456 characters"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_crashes_takes_all_memory_or_never_ends_is_refused_by_name(name, tmp_path):
    make, words = HOSTILE[name]
    (tmp_path / "secret.bin").write_bytes(np.arange(2.0 * N).tobytes())
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["q"] = np.ones((N, 2))
    with h5py.File(path := tmp_path / "log.mat", "w", libver="latest") as file:
        file["t"], file["q"] = np.arange(float(N)), np.ones((N, 2))
        make(file)
    with pytest.raises(FileFormatError, match=words):
        open_log(str(path))


@pytest.mark.parametrize("ending", ["h5", "npz"])
def test_images_beside_readings_are_left_out_and_told(ending, tmp_path):
    """A column a pixel."""
    path, arrays = tmp_path / f"log.{ending}", {"t": np.arange(9.0), "q": np.ones((9, 2))}
    images = np.zeros((9, 300, 400), np.uint8)
    if ending == "npz":
        np.savez(path, **arrays, camera=images)
    else:
        with h5py.File(path, "w") as file:
            for name, array in {**arrays, "camera": images}.items():
                file[name] = array
    with pytest.warns(
        nd.errors.NoriWarning, match="'camera': it has 120,000 numbers a sample, and more than 65,536 are not"
    ):
        log = open_log(str(path))
    with log:
        assert log.streams[0].columns == ("t", "q[0]", "q[1]")
        assert set(log.refused) == {"camera"}


def test_arrays_of_the_file_itself_may_make_up_others(tmp_path):
    with h5py.File(tmp_path / "log.h5", "w", libver="latest") as file:
        file["t"], file["q"] = np.arange(float(N)), np.random.default_rng(0).normal(size=(N, 2))
        of(file, "again", "q")
    with open_log(str(tmp_path / "log.h5")) as log:
        (block,) = log.read({"": ("q[0]", "again[0]")})
    np.testing.assert_array_equal(*block.values)
