"""Kernels: the same program natively and through NumPy, what a slot takes, and how often the native code runs."""

import gc

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import SingularSystemError
from nori_dyn.program import emit as emit_module
from nori_dyn.program.kernel.base import Outcome
from nori_dyn.program.kernel.native import NativeKernel
from nori_dyn.program.kernel.numpy import NumpyKernel
from tests.compilers import needs_compiler
from tests.tolerances import SOLVED, assert_close
from tests.unit.program.arrays import FITS, MISFITS

BACKENDS = [pytest.param("native", marks=needs_compiler), "numpy"]


def single(backend="native"):
    return nd.compile(nd.crba, nd.autotree(3), backend=backend)._single


@needs_compiler
def test_a_slot_takes_doubles_wherever_they_lie_and_refuses_all_else():
    one, q = single(), np.array([0.1, -0.2, 0.3])
    for kind, given in FITS.items():
        assert one.solve(given(q)) == 0, kind
        np.testing.assert_array_equal(one.inputs[0], given(q))
    for kind, given in MISFITS.items():
        if kind not in ("another class", "not aligned", "odd steps"):
            assert one.solve(given(np.ones(3))) == Outcome.INPUT_NOT_FINITE, kind


def test_a_slot_of_several_axes_compares_them():
    f = nd.compile(lambda tree, fx: 2 * fx, nd.autotree(2), inputs=("fx",), backend="numpy")
    assert [f._single.solve(np.ones(shape)) for shape in ((2, 6), (12,), (6, 2))] == [
        0,
        *2 * [Outcome.INPUT_NOT_FINITE],
    ]


def test_through_numpy_a_zero_divisor_spoils_what_it_is_in_and_nothing_else():
    f = nd.compile(lambda tree, q: np.array([1 / q[0], q[1]]), nd.autotree(2), backend="numpy")
    assert isinstance(f.kernel, NumpyKernel)
    f.inputs.q[:] = 0.0, 2.0
    assert f.tick()
    assert f.outputs.tolist() == [np.inf, 2.0]
    with pytest.raises(SingularSystemError):
        f([0.0, 2.0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_tick_outlives_its_function(backend):
    tree = nd.autotree(3)
    f = nd.compile(nd.crba, tree, backend=backend)
    f.inputs.q[:] = 0.3
    tick, outputs = f.tick, f.outputs
    del f
    gc.collect()
    assert tick() == 0
    assert_close(outputs, nd.crba(tree, np.full(3, 0.3)), SOLVED)


@needs_compiler
class TestHowOftenTheNativeCodeRuns:
    """Once for each state, whatever is found, and not at all for what is no state."""

    @pytest.fixture
    def counted(self, monkeypatch):
        calls, begin = [], NativeKernel.__init__

        def begin_counting(kernel, *args):
            begin(kernel, *args)
            bound = kernel.bound

            def counting(at, checks=False, returns=None):
                run = bound(at, checks, returns)

                def solve():
                    calls.append(run())
                    return calls[-1]

                return solve if checks else run

            kernel.bound = counting

        monkeypatch.setattr(NativeKernel, "__init__", begin_counting)
        return nd.plan(nd.System(nd.autotree(3), nd.sensors("inverse_dynamics"))).solver("native"), calls

    def test_a_good_state(self, counted):
        solver, calls = counted
        first = solver.solve(np.zeros(3), np.ones(3), np.ones(3))
        kept = first.tau.copy()
        solver.solve(np.ones(3), np.ones(3), np.ones(3))
        assert calls == [0, 0]
        np.testing.assert_array_equal(first.tau, kept)  # it owns its values
        assert not first.fell_back

    @pytest.mark.usefixtures("own_cache")
    def test_a_suspicious_state(self, monkeypatch, request):
        monkeypatch.setattr(emit_module, "RESIDUAL_LIMIT", -1.0)  # nothing passes
        solver, calls = request.getfixturevalue("counted")
        assert solver.solve(np.zeros(3), np.zeros(3), np.ones(3)).fell_back
        assert calls == [Outcome.LARGE_RESIDUAL]

    def test_what_is_no_state(self, counted):
        solver, calls = counted
        with pytest.raises(nd.errors.InputError, match=r"qd\[1\] is nan"):
            solver.solve(np.zeros(3), np.array([0, np.nan, 0]), np.zeros(3))
        assert calls == [Outcome.INPUT_NOT_FINITE]
