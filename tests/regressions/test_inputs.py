"""What is given: numbers that NumPy makes of anything, contacts of a batch, and arrays that stay where they are."""

import datetime
import re
from functools import lru_cache
from itertools import product

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.arrays import numeric
from nori_dyn.errors import InputError
from nori_dyn.estimation.plan import Plan
from tests.systems import UNLOADED, sensor_set
from tests.tolerances import SOLVED, assert_close
from tests.unit.program.arrays import read_only, unaligned
from tests.unit.solve.test_solver import TREE as TICKING
from tests.unit.solve.test_solver import backend, every_backend
from tests.unit.solve.test_solver import planned as ticking
from tests.unit.solve.test_switching import data
from tests.unit.solve.test_switching import planned as contact_plans

# --------------------------------------------------------------------------------------------------------------
# What NumPy turns into floats in silence is no number: refused by one checker, wherever numbers are given.


TREE = nd.autotree(3, skew=0.4)
N = TREE.nv


@lru_cache
def planned() -> Plan:
    """The plan of a chain whose readings are N accelerations, then N torques; as many weights."""
    rows = [{"type": kind, "joints": "all", "sigma": 1} for kind in ("joint_acceleration", "joint_torque")]
    return nd.plan(nd.System(TREE, sensor_set(*rows, UNLOADED)))


solver = lru_cache(lambda: planned().solver("numpy"))
monitor = lru_cache(lambda: planned().monitor("numpy"))
gravity = lru_cache(lambda: nd.compile(nd.recursions.gravity_force, TREE, backend="numpy"))
switching = lru_cache(lambda: contact_plans().solver("numpy"))


def zeros() -> np.ndarray:
    return np.zeros(N)


def twice(x) -> list:
    return [x, x]


def solve(**given) -> None:
    solver().solve(**({"q": zeros(), "qd": zeros(), "y": np.zeros(2 * N)} | given))


def solve_batch(**given) -> None:
    state = {"Q": np.zeros((2, N)), "Qd": np.zeros((2, N)), "Y": np.zeros((2, 2 * N))}
    solver().solve_batch(**(state | given))


def long(x) -> object:
    """Numbers for N joints twice over, of the same kind."""
    return [*x, *x] if isinstance(x, list) else (np.ma if isinstance(x, np.ma.MaskedArray) else np).concatenate([x, x])


TAKERS = {
    "q": lambda x: solve(q=x),
    "qd": lambda x: solve(qd=x),
    "y": lambda x: solve(y=long(x)),
    "y by name": lambda x: solve(y={f"{kind}:joint{k + 1}": x[k] for kind in ("qdd", "tau") for k in range(N)}),
    "weights": lambda x: solve(weights=long(x)),
    "Q": lambda x: solve_batch(Q=twice(x)),
    "Qd": lambda x: solve_batch(Qd=twice(x)),
    "Y": lambda x: solve_batch(Y=twice(long(x))),
    "weights of a batch": lambda x: solve_batch(weights=twice(long(x))),
    "D": lambda x: planned().system.D(x),
    "q of b": lambda x: planned().system.b(x, zeros(), np.zeros(2 * N)),
    "y of b": lambda x: planned().system.b(zeros(), zeros(), long(x)),
    "monitor": lambda x: monitor().check(zeros(), zeros(), long(x)),
    "rnea": lambda x: nd.rnea(TREE, x, zeros(), zeros()),
    "aba": lambda x: nd.aba(TREE, zeros(), zeros(), x),
    "crba": lambda x: nd.crba(TREE, x),
    "wrenches": lambda x: nd.rnea(TREE, zeros(), zeros(), zeros(), twice(x)),
    "integrated": lambda x: TREE.integrate(zeros(), x),
    "difference": lambda x: TREE.difference(x, zeros()),
    "compiled": lambda x: gravity()(x),
    "observability": lambda x: nd.observability(planned().system, configurations=twice(x)),
    "contacts": lambda x: switching().solve_batch(twice(x), twice(x), twice(x)),
}


GIVEN = {
    "masked": (np.ma.masked_array(np.zeros(N), [False, True, False]), "is a masked array"),
    "masked rows in a list": ([np.ma.masked_array(0.0, True)] * N, "is a masked array"),
    "complex": (np.zeros(N, dtype=complex), "holds complex numbers"),
    "text": (["0"] * N, "holds text"),
    "dates": (np.zeros(N, dtype="datetime64[s]"), "holds dates"),
    "time spans": (np.zeros(N, dtype="timedelta64[s]"), "holds time spans"),
    "booleans": (np.zeros(N, dtype=bool), "holds booleans"),
    "objects": ([datetime.timedelta(0)] * N, "holds datetime.timedelta|numbers or symbols"),
    "nothing": ([0.0] * (N - 1) + [None], "holds None|numbers or symbols"),
}


@pytest.mark.parametrize("taker", TAKERS)
def test_no_number_is_made_of_what_is_none(taker):
    said = {kind: words(TAKERS[taker], given) for kind, (given, _) in GIVEN.items()}
    assert not {kind: text for kind, text in said.items() if not re.search(GIVEN[kind][1], text)}


def words(call, given) -> str:
    """The words of a refusal."""
    try:
        call(given)
    except InputError as error:
        return str(error)
    return "not refused"


def test_all_real_numbers_are_taken():
    for given in ([0, 1, 2], (0.0, 1, 2), np.arange(3, dtype=np.uint8), np.arange(3, dtype=np.float32)):
        assert numeric("x", given).tolist() == [0.0, 1.0, 2.0]
        assert numeric("x", given).dtype == np.float64
        assert numeric("x", np.array(given, dtype=object)).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("shape", [(), (N - 1,), (2 * N,), (N + 2, N), (N, 2, 2)], ids=str)
def test_states_of_another_size_are_neither_integrated_nor_compared(shape):
    for call in (TREE.integrate, TREE.difference):
        assert re.search(
            r"has shape .* expected \(3,\) or \(3, N\)", words(lambda x, call=call: call(x, x), np.zeros(shape))
        )


def test_an_algorithm_says_that_it_takes_a_robot():
    with pytest.raises(InputError, match=r"takes a robot .*, not 'arm.urdf': load it first"):
        nd.rnea("arm.urdf", zeros(), zeros(), zeros())


def test_ragged_lists_are_refused_in_words():
    for taker in (numeric, lambda _, x: solve_batch(Q=x), lambda _, x: solve_batch(weights=x)):
        with pytest.raises(InputError, match="is not an array of numbers"):
            taker("x", [[0.0, 1.0], [0.0]])


def test_threads_are_a_whole_number():
    Q, Q6 = np.zeros((2, N)), np.zeros((2, 6))
    calls = (
        solve_batch,
        lambda threads: monitor().check_batch(Q, Q, np.zeros((2, 2 * N)), threads=threads),
        lambda threads: gravity().batch(Q, threads=threads),
        lambda threads: switching().solve_batch(Q6, Q6, np.zeros((2, switching().ny)), threads=threads),
    )
    for call, threads in product(calls, (2.5, 0, -1, "2", None, True)):
        with pytest.raises(InputError, match=rf"threads is {threads!r}.*must be a whole number, at least 1"):
            call(threads=threads)


def test_contacts_that_are_no_names_are_refused_in_words():
    state = np.zeros(6), np.zeros(6), np.zeros(switching().ny)
    calls = (
        switching().switch,
        lambda contacts: switching().solve(*state, contacts),
        lambda contacts: switching().solve_batch(*(x[None] for x in state), contacts),
    )
    wrong = (5, 2.5, np.float64(1), np.array(True), np.ma.masked_array([True] * 3, [True] * 3))
    for call, contacts in product(calls, wrong):
        said = words(call, contacts)
        assert re.search(r"contacts is .*expected names, or booleans", said), (contacts, said)


# --------------------------------------------------------------------------------------------------------------
# Contacts of a batch mean one thing: ["A", "B", "A", "A"] for four states was read as A and B closed in all.


def test_a_sequence_of_names_is_refused_whatever_it_means():
    Q, Qd, Y, _ = data(contact_plans(), 4)
    for contacts in (["a", "b", "a", "a"], ("a", "b"), ["b"], ("a", "b", "c", "a"), [("a",), "b", ("a",), ()]):
        with pytest.raises(InputError, match=r"with the name '.' in it.*closed in all 4 states, or one for each"):
            switching().solve_batch(Q, Qd, Y, contacts)
    names = {"a": 1}.keys()  # are a set
    assert switching().solve_batch(Q, Qd, Y, names).tau.shape == (4, 6)


def test_no_states_are_not_no_contact():
    Q, Qd, Y, _ = data(contact_plans(), 4)
    with pytest.raises(InputError, match="contacts has 0 states, expected 4"):
        switching().solve_batch(Q, Qd, Y, [])
    expected = switching().solve_batch(Q, Qd, Y, [()] * 4)
    np.testing.assert_array_equal(switching().solve_batch(Q, Qd, Y, set()).tau, expected.tau)


# --------------------------------------------------------------------------------------------------------------
# A ticker uses arrays where they lie: what does not lie as it expects is refused when it is made.


WRONG = {
    "strided": (lambda n: np.zeros(2 * n)[::2], "steps of 16 bytes"),
    "backwards": (lambda n: np.zeros(n)[::-1], "steps of -8 bytes"),
    "short": (lambda n: np.zeros(n - 1), "shape"),
    "long": (lambda n: np.zeros(n + 1), "shape"),
    "two axes": (lambda n: np.zeros((n, 1)), "shape"),
    "float32": (lambda n: np.zeros(n, dtype=np.float32), "of float32"),
    "integers": (lambda n: np.zeros(n, dtype=np.int64), "of int64"),
    "other bytes": (lambda n: np.zeros(n, dtype=">f8"), "of >f8"),
    "unaligned": (lambda n: unaligned(np.zeros(n)), "not aligned"),
    "a list": (lambda n: [0.0] * n, "a list"),
    "masked": (lambda n: np.ma.zeros(n), "a MaskedArray"),
}


@every_backend
def test_other_arrays_are_refused_by_name(name):
    solver = ticking().solver(backend(name))
    sizes = {"state": sum(solver.system.input_sizes.values()), "values": sum_of_outputs(solver)}
    for which, (wrong, message) in product(sizes, WRONG.values()):
        arrays = {name: np.zeros(size) for name, size in sizes.items()}
        arrays[which] = wrong(sizes[which])
        with pytest.raises(InputError, match=rf"{which} (has|is).*{message}.*used where it lies"):
            solver.ticker(**arrays)


def sum_of_outputs(solver) -> int:
    return sum(array.size for array in vars(solver.outputs).values())


@every_backend
def test_what_is_written_must_be_writeable_and_apart(name):
    solver = ticking().solver(backend(name))
    rng = np.random.default_rng(0)
    state = TICKING.random_configuration(rng), rng.normal(size=TICKING.nv), rng.normal(size=solver.system.ny)
    n, m = sum(solver.system.input_sizes.values()), sum_of_outputs(solver)
    with pytest.raises(InputError, match=r"values has .*read-only; expected a writeable array"):
        solver.ticker(np.zeros(n), read_only(np.zeros(m)))
    whole = np.zeros(n + m - 1)
    with pytest.raises(InputError, match="share memory"):
        solver.ticker(whole[:n], whole[n - 1 :])
    given, values = np.concatenate(state), np.zeros(m)
    given.flags.writeable = False  # it is only read
    assert solver.ticker(given, values)().ok
    assert_close(solver._layout.read(values)["qdd"], solver.solve(*state).qdd, SOLVED)


def test_arrays_of_a_solver_stay_where_they_are():
    """Another array in their place would never be read, or written."""
    for solver in (ticking().solver("numpy"), contact_plans().solver("numpy")):
        with pytest.raises(InputError, match=r"'q' stays where it is.*`\.q\[:\] = \.\.\.`"):
            solver.inputs.q = np.ones_like(solver.inputs.q)
        with pytest.raises(InputError, match="'tau' stays where it is"):
            solver.outputs.tau = np.zeros_like(solver.outputs.tau)
        before = solver.inputs.qd
        solver.inputs.qd += 1.0
        assert solver.inputs.qd is before
        assert (before == 1.0).all()
