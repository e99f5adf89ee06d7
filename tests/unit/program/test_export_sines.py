"""Sines and cosines of exported code: those of the mathematics, with any flags, and of any angle."""

import platform
import subprocess

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.export.files import c_export
from tests.compilers import needs_compiler
from tests.exported import compile_with, write_files

pytestmark = needs_compiler

MAIN = r"""
#include "arm.c"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    (void)argc;
    double from[ARM_NQ], w[2 * PADDED];
    FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
    while (fread(from, sizeof from, 1, in) == 1) {
        find_sines(from, w);
        fwrite(w, sizeof w, 1, out);
    }
    return fclose(in) | fclose(out);
}
"""
N = 7


@pytest.fixture(scope="module")
def files():
    plan = nd.plan(nd.System(nd.autotree(N), nd.sensors("inverse_dynamics")))
    return {**c_export(plan.plans, "arm").files, "main.c": MAIN}


def sines(files, folder, flags, angles):
    write_files(files, folder)
    angles.tofile(folder / "in")
    compile_with(*flags, "-o", folder / "it", folder / "main.c", "-lm")
    subprocess.run([folder / "it", folder / "in", folder / "out"], check=True)
    found = np.fromfile(folder / "out").reshape(len(angles), 2, -1)
    places = slice(angles.shape[1] - found.shape[2], None)  # that of a vertical first joint is not needed
    return angles[:, places], found[:, 0], found[:, 1]


FLAGS = ["-std=c11 -O0", "-O3 -march=native", "-O3 -ffast-math", "-O3 -funsafe-math-optimizations"]
FLAGS += ["-O2 -mfpmath=387"] if platform.machine() == "x86_64" else []  # sums of more digits than doubles have


@pytest.mark.parametrize("flags", FLAGS)
def test_sines_and_cosines_are_right_to_two_units_of_the_last_place(files, flags, tmp_path):
    """Those of angles beyond the reduction are the library's."""
    rng, is_strict = np.random.default_rng(0), "math" not in flags
    near = np.arange(-28, 28)[:, None] * np.pi / 4 + rng.normal(size=(56, N)) * 10.0 ** rng.uniform(-16, 0, (56, N))
    angles = np.vstack([rng.uniform(-7, 7, (3000, N)), near, rng.uniform(-1e4, 1e4, (500, N)), np.zeros((1, N))])
    if is_strict:
        angles = np.vstack([angles, np.linspace(-3e6, 3e6, 50 * N).reshape(50, N)])
    angles, sine, cosine = sines(files, tmp_path, flags.split(), angles)
    allowed = 3e-16 if is_strict else 3e-16 + 3e-16 * np.abs(angles)
    assert np.all(np.abs(sine - np.sin(angles)) <= allowed)
    assert np.all(np.abs(cosine - np.cos(angles)) <= allowed)
    if is_strict:
        assert np.all(np.abs(sine - np.sin(angles)) <= 4e-16 * np.abs(np.sin(angles)))
