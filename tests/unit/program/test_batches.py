"""Batches of arrays as their user has them: what C finds of NumPy's arrays by itself, and what it leaves to Python."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.program import emit as emit_module
from nori_dyn.program.emit import Target, emit
from tests.compilers import needs_compiler
from tests.tolerances import EXACT, assert_close
from tests.unit.program.arrays import CONVERTED, FITS, MISFITS, read_only

pytestmark = needs_compiler

N = 70
X = np.random.default_rng(0).normal(size=(N, 3))

MISPLACED = {
    "read-only": (lambda x: read_only(np.zeros_like(x)), "read-only"),
    "one place for all": (lambda x: as_strided(np.zeros_like(x), (0, 8)), "several results in one place"),
    "one place for a state": (lambda x: as_strided(np.zeros_like(x), (8, 0)), "several results in one place"),
    "what is read": (lambda x: x, "share memory"),
    "what is read, turned": (lambda x: x[::-1], "share memory"),
    "of another length": (lambda x: np.zeros((N + 1, 3)), "shape"),
    "of another width": (lambda x: np.zeros((N, 4)), "shape"),
    "single precision": (lambda x: np.zeros((N, 3), dtype=np.float32), "float32"),
    "other bytes": (lambda x: np.zeros((N, 3), dtype=">f8"), "of >f8"),
    "masked": (lambda x: np.ma.zeros((N, 3)), "out is a MaskedArray"),
    "a list": (lambda x: x.tolist(), "out is a list, expected a writeable array"),
}
same = np.testing.assert_array_equal


def as_strided(x, strides):
    return np.lib.stride_tricks.as_strided(x, strides=strides, writeable=True)


def summed(n=3):
    """A function of two inputs, whose numbers tell where each of its inputs was read."""
    return nd.compile(lambda tree, q, qd: q + 2 * qd, nd.autotree(n), backend="native")


@pytest.fixture(scope="module", autouse=True)
def as_shipped():
    """Not here: each length of rows at each width is code of its own, of which the places count."""


@pytest.fixture(scope="module")
def sums():
    return summed()


@pytest.fixture(scope="module")
def solver():
    return nd.plan(nd.System(nd.autotree(3), "inverse_dynamics"), outputs=["tau"]).solver("native")


def run(function, q, qd, out, threads=1):
    return function.kernel.batches((3, 3, 3), 1, 2)((q, qd, out), N, threads)


def test_what_is_read_where_it_lies(lanes):
    function = summed()
    for kind, given in FITS.items():
        for threads in (1, 2):
            q, qd, out = given(X), X[::-1].copy(), np.full((N, 3), np.nan)
            assert run(function, q, qd, out, threads) == (None, None), kind
            same(out, q + 2 * qd, kind)
            assert run(function, qd, q, out, threads) == (None, None), kind
            same(out, qd + 2 * q, kind)


def test_what_is_written_where_it_lies(lanes):
    function = summed()
    for kind in FITS.keys() - {"read-only", "of a buffer", "one state for all", "one number for all"}:
        out = FITS[kind](np.zeros((N, 3)))
        assert run(function, X, X, out) == (None, None), kind
        same(out, 3 * X, kind)
        same(function.batch(X, X, out=out), 3 * X, kind)


def test_what_is_left_to_python(sums):
    out = np.full((N, 3), np.nan)
    for kind, given in MISFITS.items():
        for q, qd in ((given(X), X), (X, given(X))):
            assert run(sums, q, qd, out) is None, kind
        assert run(sums, X, X, given(X)) is None, kind
        assert np.isnan(out).all(), kind
    for kind, given in CONVERTED.items():
        same(sums.batch(given(X), X), np.asarray(given(X), dtype=float) + 2 * X, kind)


@pytest.mark.parametrize("kind", MISPLACED)
def test_where_nothing_can_be_written_nothing_is(sums, kind):
    place, words = MISPLACED[kind]
    q = X.copy()
    assert run(sums, q, X, place(q)) is None
    with pytest.raises(nd.errors.InputError, match=words):
        sums.batch(q, X, out=place(q))
    same(q, X)


def test_outputs_between_the_numbers_that_are_read(sums):
    """The spans overlap, and no number is shared: Python looks closer than C does."""
    room = np.zeros((N, 6))
    room[:, ::2] = X
    assert run(sums, room[:, ::2], X, room[:, 1::2]) is None
    same(sums.batch(room[:, ::2], X, out=room[:, 1::2]), X + 2 * X)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_short_rows_are_read_and_written_and_nothing_beside_them(lanes, dtype):
    """Rows of fewer numbers than a vector, of as many, and of several vectors and a part."""
    if dtype == "float32":
        lanes *= 2
    for n in {1, lanes - 1, lanes, lanes + 1, 2 * lanes + 1}:
        function, rng = summed(n), np.random.default_rng(n)
        for count in (1, 7, 8, 9, 16, 17, 65):
            for width in (n, n + 1, 2 * n + 3):
                shape = count + 2, width  # with what is around what is read and written
                q, qd, out = whole = [np.full(shape, np.nan, dtype)[1:-1, :n] for _ in range(3)]
                q[:], qd[:] = rng.integers(-9, 9, (2, count, n))
                assert function.batch(q, qd, out=out, dtype=dtype) is out
                same(out, q + 2 * qd)
                assert all(np.isnan(part.base).sum() == part.base.size - part.size for part in whole)
                q[count - 1, n - 1] = np.inf
                with pytest.raises(nd.errors.InputError, match=rf"q\[{count - 1}, {n - 1}\] is inf"):
                    function.batch(q, qd, dtype=dtype)


@pytest.mark.parametrize(("dtype", "count"), [("float64", 2203), ("float32", 4403)])
def test_large_outputs_go_past_the_caches_and_nothing_beside_them(lanes, dtype, count):
    """Of more than 16 MiB, at any place of a line, by whom they are asked for; blocks of zeros among them."""
    n = 31
    function = nd.compile(lambda tree, q: np.tril(np.outer(q, q)), nd.autotree(n), backend="native")
    q = np.random.default_rng(0).integers(-9, 9, (count, n)).astype(dtype)
    room = np.full(count * n * n + 16, np.nan, dtype)
    for threads, start in ((1, 0), (1, 3), (2, 8)):
        room[:] = np.nan
        out = room[start : start + count * n * n].reshape(count, n, n)
        assert out.nbytes > 2**24
        same(function.batch(q, threads=threads, out=out, dtype=dtype), np.tril(q[:, :, None] * q[:, None, :]))
        assert np.isnan(room).sum() == 16


def test_room_grows_with_what_is_asked_for(sums):
    for n, threads in ((5, 1), (500, 2), (40, 7), (2000, 3)):
        q = np.random.default_rng(n).normal(size=(n, 3))
        same(sums.batch(q, q, threads=threads), 3 * q)


def test_a_solver_takes_states_however_they_lie_and_refuses_what_is_none_by_name(solver):
    for kind, made in (FITS | CONVERTED).items():
        given = made(X)
        plain = np.array(given, dtype=float)
        same(solver.solve_batch(given, given, given).tau, solver.solve_batch(plain, plain, plain).tau, kind)
    for kind in ("nothing", "complex", "longer", "wider", "one state", "one axis more", "a number"):
        with pytest.raises(nd.errors.InputError, match="Qd"):
            solver.solve_batch(X, MISFITS[kind](X), X)


def test_long_programs_are_called_for_more_states_before_the_next(monkeypatch):
    tree = nd.autotree(5, skew=0.4)
    usual = nd.compile(nd.aba, tree)
    states = {n: np.random.default_rng(n).normal(size=(3, n, 5)) for n in (1, 7, 64, 129)}
    expected = {n: usual.batch(*state) for n, state in states.items()}
    monkeypatch.setattr(emit_module, "FAR", 0)
    far = nd.compile(nd.aba, tree)
    assert f"#define GROUPS {emit_module.GROUPS_FAR}" in emit(far._program, Target.BATCH, 4).text
    for n, state in states.items():
        assert_close(far.batch(*state), expected[n], EXACT)
