"""Batches of arrays as their user has them: what C finds of NumPy's arrays by itself, and what it leaves to Python."""

from __future__ import annotations

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.program import c_source
from tests.compilers import needs_compiler
from tests.tolerances import EXACT, assert_close

pytestmark = needs_compiler

N = 70
X = np.random.default_rng(0).normal(size=(N, 3))


class Own(np.ndarray):
    """Arrays of somebody else."""


def unaligned(x):
    room = np.zeros(x.nbytes + 4, dtype=np.uint8)[4:].view(float).reshape(x.shape)
    room[:] = x
    return room


def in_odd_steps(x):
    records = np.zeros(x.shape, dtype=[("x", "f8"), ("y", "f4")])
    records["x"] = x
    return records["x"]


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


FITS = {
    "plain": lambda x: x.copy(),
    "number by number": np.asfortranarray,
    "some of more columns": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "every other row": lambda x: np.repeat(x, 2, axis=0)[1::2],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "one state for all": lambda x: np.broadcast_to(x[0], x.shape),
    "one number for all": lambda x: np.broadcast_to(x[0, 0], x.shape),
    "read-only": read_only,
    "of a buffer": lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),
}
MISFITS = {
    "a list": lambda x: x.tolist(),
    "nothing": lambda x: None,
    "another class": lambda x: x.view(Own),
    "a masked array": np.ma.masked_array,
    "single precision": lambda x: x.astype(np.float32),
    "integers": lambda x: x.astype(np.int64),
    "complex": lambda x: x.astype(complex),
    "the other byte order": lambda x: x.astype(">f8"),
    "objects": lambda x: x.astype(object),
    "not aligned": unaligned,
    "odd steps": in_odd_steps,
    "longer": lambda x: np.vstack([x, x]),
    "shorter": lambda x: x[1:],
    "wider": lambda x: np.hstack([x, x]),
    "narrower": lambda x: x[:, 1:],
    "one state": lambda x: x[0],
    "one axis more": lambda x: x[None],
    "a number": lambda x: np.array(1.0),
}
MISPLACED = {
    "read-only": (lambda x: read_only(np.zeros_like(x)), "read-only"),
    "one place for all": (lambda x: as_strided(np.zeros_like(x), (0, 8)), "several results in one place"),
    "one place for a state": (lambda x: as_strided(np.zeros_like(x), (8, 0)), "several results in one place"),
    "what is read": (lambda x: x, "share memory"),
    "what is read, turned": (lambda x: x[::-1], "share memory"),
    "of another length": (lambda x: np.zeros((N + 1, 3)), "shape"),
    "of another width": (lambda x: np.zeros((N, 4)), "shape"),
    "single precision": (lambda x: np.zeros((N, 3), dtype=np.float32), "float32"),
}


def as_strided(x, strides):
    return np.lib.stride_tricks.as_strided(x, strides=strides, writeable=True)


@pytest.fixture(scope="module")
def sums():
    """A function of two inputs, whose numbers tell where each of its inputs was read."""
    return nd.compile(lambda tree, q, qd: q + 2 * qd, nd.autotree(3), backend="native")


@pytest.fixture(scope="module")
def solver():
    return nd.plan(nd.System(nd.autotree(3), "inverse_dynamics"), outputs=["tau"]).solver("native")


def run(function, q, qd, out, threads=1):
    return function.kernel.batches((3, 3, 3), 1, 2)((q, qd, out), N, threads)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", FITS)
def test_what_is_read_where_it_lies(sums, kind, threads):
    q, qd, out = FITS[kind](X), X[::-1].copy(), np.full((N, 3), np.nan)
    assert run(sums, q, qd, out, threads) == (None, None)
    np.testing.assert_array_equal(out, q + 2 * qd)
    assert run(sums, qd, q, out, threads) == (None, None)
    np.testing.assert_array_equal(out, qd + 2 * q)


@pytest.mark.parametrize(
    "kind", [kind for kind in FITS if kind not in ("read-only", "of a buffer") and "all" not in kind]
)
def test_what_is_written_where_it_lies(sums, kind):
    out = FITS[kind](np.zeros((N, 3)))
    assert run(sums, X, X, out) == (None, None)
    np.testing.assert_array_equal(out, 3 * X)
    np.testing.assert_array_equal(sums.batch(X, X, out=out), 3 * X)


@pytest.mark.parametrize("kind", MISFITS)
def test_what_is_left_to_python(sums, kind):
    out = np.full((N, 3), np.nan)
    for q, qd in ((MISFITS[kind](X), X), (X, MISFITS[kind](X))):
        assert run(sums, q, qd, out) is None
    assert run(sums, X, X, MISFITS[kind](X)) is None
    assert np.isnan(out).all()


@pytest.mark.parametrize("kind", ["a list", "another class", "single precision", "not aligned", "odd steps", "objects"])
def test_python_makes_the_same_of_it(sums, kind):
    np.testing.assert_array_equal(sums.batch(MISFITS[kind](X), X), np.asarray(MISFITS[kind](X), dtype=float) + 2 * X)


@pytest.mark.parametrize("kind", MISPLACED)
def test_where_nothing_can_be_written_nothing_is(sums, kind):
    place, words = MISPLACED[kind]
    q = X.copy()
    assert run(sums, q, X, place(q)) is None
    with pytest.raises(nd.InputError, match=words):
        sums.batch(q, X, out=place(q))
    np.testing.assert_array_equal(q, X)


def test_outputs_between_the_numbers_that_are_read(sums):
    """The spans overlap, and no number is shared: Python looks closer than C does."""
    room = np.zeros((N, 6))
    room[:, ::2] = X
    assert run(sums, room[:, ::2], X, room[:, 1::2]) is None
    np.testing.assert_array_equal(sums.batch(room[:, ::2], X, out=room[:, 1::2]), X + 2 * X)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 15, 16, 17, 64, 65])
def test_short_rows_are_read_and_written_and_nothing_beside_them(n, count):
    function = nd.compile(lambda tree, q, qd: q + 2 * qd, nd.autotree(n), backend="native")
    rng = np.random.default_rng(n)
    for width in (n, n + 1, 2 * n + 3):
        room = np.full((count + 2, width), np.nan)  # around what is read and written
        given = [np.full((count + 2, width), np.nan) for _ in range(2)]
        q, qd, out = (x.reshape(-1)[width : width * (count + 1)].reshape(count, width)[:, :n] for x in (*given, room))
        q[:], qd[:] = rng.normal(size=(2, count, n))
        assert function.batch(q, qd, out=out) is out
        np.testing.assert_array_equal(out, q + 2 * qd)
        assert np.isnan(room).sum() == room.size - out.size
        q[count - 1, n - 1] = np.inf
        with pytest.raises(nd.InputError, match=rf"q\[{count - 1}, {n - 1}\] is inf"):
            function.batch(q, qd)


def test_room_grows_with_what_is_asked_for(sums):
    for n, threads in ((5, 1), (500, 2), (40, 7), (2000, 3)):
        q = np.random.default_rng(n).normal(size=(n, 3))
        np.testing.assert_array_equal(sums.batch(q, q, threads=threads), 3 * q)


@pytest.mark.parametrize("threads", [0, -1, 1.0, True, None])
def test_threads_are_counted(sums, threads):
    with pytest.raises(nd.InputError, match="threads"):
        sums.batch(X, X, threads=threads)


def test_no_states(sums):
    with pytest.raises(nd.InputError, match="at least 1"):
        sums.batch(X[:0], X[:0])


class TestOfASolver:
    @pytest.mark.parametrize("kind", [*FITS, "a list", "another class", "single precision", "not aligned", "odd steps"])
    def test_however_states_lie_the_torques_are_the_same(self, solver, kind):
        given = (FITS | MISFITS)[kind](X)
        plain = np.array(given, dtype=float)
        expected = solver.solve_batch(plain, plain, plain).tau
        np.testing.assert_array_equal(solver.solve_batch(given, given, given).tau, expected)

    @pytest.mark.parametrize(
        "kind", ["nothing", "complex", "longer", "wider", "one state", "one axis more", "a number"]
    )
    def test_what_is_no_state_is_refused_by_name(self, solver, kind):
        with pytest.raises(nd.InputError, match="Qd"):
            solver.solve_batch(X, MISFITS[kind](X), X)

    def test_an_estimate_of_another_solver_is_written_too(self, solver):
        out = solver.plan.solver("native").solve_batch(X, X, X)
        assert solver.solve_batch(X[::-1].copy(), X, X, out=out) is out
        np.testing.assert_array_equal(out.tau, solver.solve_batch(X[::-1].copy(), X, X).tau)


@pytest.mark.parametrize("n", [1, 7, 64, 129])
def test_long_programs_are_called_for_more_states_before_the_next(monkeypatch, tmp_path, n):
    monkeypatch.setenv("NORI_DYN_CACHE", str(tmp_path))
    tree = nd.autotree(5, skew=0.4)
    q, qd, tau = np.random.default_rng(n).normal(size=(3, n, 5))
    expected = nd.compile(nd.aba, tree).batch(q, qd, tau)
    monkeypatch.setattr(c_source, "FAR", 0)
    monkeypatch.setenv("NORI_DYN_CACHE", str(tmp_path / "far"))
    far = nd.compile(nd.aba, tree)
    assert f"#define GROUPS {c_source.GROUPS_FAR}" in c_source.c_source(far._job(), 4).batch
    assert_close(far.batch(q, qd, tau), expected, EXACT)
