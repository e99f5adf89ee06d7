"""Numbers that compiled code puts away, as its assembly tells."""

import platform

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.program.compiler import cached_spills, find_compiler, library_key, load_library
from nori_dyn.program.kernel.native import interface
from nori_dyn.program.spills import Spills, spills_in

needs_x86 = pytest.mark.skipif(
    find_compiler() is None or platform.machine() != "x86_64", reason="there is no C compiler for x86"
)

LEAF = """
f:
\t.cfi_startproc
\tsubq\t$24, %rsp
\tvmovsd\t%xmm3, 8(%rsp)
\tvmovapd\t%ymm1, -56(%rsp)
\tmovq\t%rax, 16(%rsp)
\tvmovsd\t%xmm3, 8(%rbp)
\tvaddsd\t8(%rsp), %xmm1, %xmm2
\tvmovsd\t-56(%rsp), %xmm2
\tvmovsd\t%xmm2, (%rdi)
\tmovq\t16(%rsp), %rax
\tret
\t.cfi_endproc
"""
FRAMED = LEAF.replace("subq", "movq\t%rsp, %rbp\n\tsubq")


def test_what_is_counted_in_assembly():
    assert spills_in(LEAF) == Spills(2, 2)  # registers of addresses are none of numbers
    assert spills_in(FRAMED) == Spills(3, 2)  # whose frame is found by %rbp
    assert spills_in(LEAF + FRAMED) == Spills(5, 4)


def test_assembly_of_other_processors_is_not_counted():
    assert spills_in("f:\n\t.cfi_startproc\n\tstr\td8, [sp, 16]\n\tret\n\t.cfi_endproc\n") is None
    assert spills_in("") is None


@needs_x86
def test_what_registers_cannot_hold_is_put_away():
    """So many numbers are live at once as are read before the first is used again."""

    def spills(n):
        names = [f"x{k}" for k in range(n)]
        reads = "".join(f"const double {name} = sqrt(in[{k}]);" for k, name in enumerate(names))
        source = f'#include <math.h>\nint run(const double *in, double *out) {{ {reads} __asm__ volatile ("");'
        source += f"out[0] = {' * '.join(names)}; out[1] = {' + '.join(names)}; return 0; }}"
        load_library(interface(), source, find_compiler())
        return cached_spills(library_key(source, find_compiler()))

    assert spills(3) == Spills(0, 0)
    assert spills(60).puts >= 60 - 32
    assert spills(60).fetches >= 60 - 32


@needs_x86
def test_solvers_show_it():
    solver = nd.plan(nd.System(nd.autotree(6), "forward_dynamics"), outputs=["qdd"]).solver("native")
    puts, fetches = solver.native.spills
    assert f"{puts:,} numbers put away, {fetches:,} fetched again" in str(solver)
    assert np.isfinite(solver.solve(np.zeros(6), np.zeros(6), np.zeros(6)).qdd).all()


@needs_x86
def test_what_is_damaged_or_missing_is_not_known(tmp_path, monkeypatch):
    monkeypatch.setenv("NORI_DYN_CACHE", str(tmp_path))
    solver = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"]).solver("native")
    assert solver.native.spills is not None
    for entry in tmp_path.rglob("*.sha256"):
        entry.write_text("many")
    assert solver.native.spills is None
    assert "put away" not in str(solver)
