"""Calls of C with nothing between: they return what they should, keep what they use, and let errors through."""

import ctypes
import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.program.compiler import find_compiler
from nori_dyn.program.kernel import caller as caller_module
from nori_dyn.program.kernel.native import interface
from tests.compilers import needs_compiler
from tests.robots import load
from tests.tolerances import SAME_PROGRAM, assert_close

pytestmark = needs_compiler


@pytest.fixture(scope="module", autouse=True)
def kept_by_others():
    """Let the garbage collector pass over what is there before these tests."""
    gc.freeze()


@pytest.fixture(params=["built in", "by cffi"])
def way(request, monkeypatch):
    if request.param == "by cffi":
        monkeypatch.setattr(caller_module, "_maker", lambda ffi, compiler: None)
    elif sys.implementation.name != "cpython":
        pytest.skip("CPython only")
    return request.param


class Anything:
    """Something that is returned, and can be watched."""


def called(number, *judged):
    """A function that calls C, which returns a number: by that what is good, or what is otherwise."""
    ffi = interface()
    run = ffi.callback("int(const state *)", lambda at: number[0])
    return caller_module.caller(run, ffi.new("state *"), judged or None, ffi, find_compiler()), run


def test_it_returns_the_same_object_where_nothing_is_wrong(way):
    good, number = Anything(), [0]
    tick, _run = called(number, good, lambda: "otherwise")
    before = sys.getrefcount(good)
    found = [tick() for _ in range(1000)]
    assert all(x is good for x in found)
    del found
    assert sys.getrefcount(good) == before
    number[0] = 3
    assert tick() == "otherwise"


def test_others_may_give_types_to_functions_of_python(monkeypatch):
    given = (ctypes.c_void_p, ctypes.c_char_p, ctypes.CFUNCTYPE(None, ctypes.py_object))  # as JAX does
    monkeypatch.setattr(ctypes.pythonapi.PyCapsule_New, "argtypes", given)
    assert called([3])[0]() == 3


def test_without_a_judgement_it_returns_the_number(way):
    number = [0]
    tick, _run = called(number)
    for number[0] in (0, 1, -1, 2**31 - 1):
        assert tick() == number[0]


def test_errors_of_the_other_way_come_through(way):
    def otherwise():
        raise ValueError("not so")

    tick, _run = called([1], None, otherwise)
    with pytest.raises(ValueError, match="not so"):
        tick()


def test_what_it_returns_lives_as_long_as_it_does(way):
    good = Anything()
    alive = weakref.ref(good)
    tick, _run = called([0], good, Anything)
    del good
    gc.collect()
    assert isinstance(tick(), Anything)
    del tick, _run
    gc.collect()
    assert alive() is None


def test_a_solver_is_freed_with_its_last_reference(way):
    solver = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics")).solver()
    assert solver.tick().ok
    solver.inputs.qd[:] = np.nan
    assert not solver.tick().ok
    alive = weakref.ref(solver)
    del solver
    gc.collect()
    assert alive() is None


def test_it_takes_no_arguments(way):
    tick, _run = called([0], None, Anything)
    with pytest.raises(TypeError):
        tick(1)


def test_ticks_of_threads_are_those_of_one(way):
    tree = load("panda")
    plan = nd.plan(nd.System(tree, "inverse_dynamics"), outputs=("tau",))
    Q = tree.random_configurations(40, 3)
    still = np.zeros((40, tree.nv)), np.zeros((40, plan.system.ny))
    expected = plan.solver("numpy").solve_batch(Q, *still).tau
    found = np.zeros((4, *expected.shape))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ticked, [plan.solver() for _ in found], [Q] * 4, found))
    for one in found:
        np.testing.assert_array_equal(one, found[0])
    assert_close(found[0], expected, SAME_PROGRAM)


def ticked(solver, Q, out):
    for q, values in zip(Q, out, strict=True):
        solver.inputs.q[:] = q
        assert solver.tick().ok
        values[:] = solver.outputs.tau
