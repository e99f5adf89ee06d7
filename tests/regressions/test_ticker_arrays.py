"""A ticker uses arrays where they lie: what does not lie as it expects is refused when it is made."""

from __future__ import annotations

import numpy as np
import pytest

from nori_dyn.errors import InputError
from tests.tolerances import SOLVED, assert_close
from tests.unit.solve.test_solver import TREE, backend, every_backend, planned
from tests.unit.solve.test_switching import planned as contact_plans


def unaligned(size: int) -> np.ndarray:
    return np.zeros(8 * size + 1, dtype=np.uint8)[1:].view(float)


def read_only(size: int) -> np.ndarray:
    array = np.zeros(size)
    array.flags.writeable = False
    return array


WRONG = {
    "strided": (lambda n: np.zeros(2 * n)[::2], "steps of 16 bytes"),
    "backwards": (lambda n: np.zeros(n)[::-1], "steps of -8 bytes"),
    "short": (lambda n: np.zeros(n - 1), "shape"),
    "long": (lambda n: np.zeros(n + 1), "shape"),
    "two axes": (lambda n: np.zeros((n, 1)), "shape"),
    "float32": (lambda n: np.zeros(n, dtype=np.float32), "of float32"),
    "integers": (lambda n: np.zeros(n, dtype=np.int64), "of int64"),
    "other bytes": (lambda n: np.zeros(n, dtype=">f8"), "of >f8"),
    "unaligned": (unaligned, "not aligned"),
    "a list": (lambda n: [0.0] * n, "a list"),
    "masked": (lambda n: np.ma.zeros(n), "a MaskedArray"),
}


@every_backend
@pytest.mark.parametrize("which", ["state", "values"])
@pytest.mark.parametrize("kind", WRONG)
def test_other_arrays_are_refused_by_name(name, which, kind):
    solver = planned().solver(backend(name))
    wrong, message = WRONG[kind]
    arrays = {"state": np.zeros(sum(solver.system.input_sizes.values())), "values": np.zeros(sum_of_outputs(solver))}
    arrays[which] = wrong(len(arrays[which]))
    with pytest.raises(InputError, match=rf"{which} (has|is).*{message}.*used where it lies"):
        solver.ticker(**arrays)


def sum_of_outputs(solver) -> int:
    return sum(array.size for array in vars(solver.outputs).values())


@every_backend
def test_what_is_written_must_be_writeable_and_apart(name):
    solver = planned().solver(backend(name))
    rng = np.random.default_rng(0)
    state = TREE.random_configuration(rng), rng.normal(size=TREE.nv), rng.normal(size=solver.system.ny)
    n, m = sum(solver.system.input_sizes.values()), sum_of_outputs(solver)
    with pytest.raises(InputError, match=r"values has .*read-only; expected a writeable array"):
        solver.ticker(np.zeros(n), read_only(m))
    whole = np.zeros(n + m - 1)
    with pytest.raises(InputError, match="share memory"):
        solver.ticker(whole[:n], whole[n - 1 :])
    given, values = np.concatenate(state), np.zeros(m)
    given.flags.writeable = False  # it is only read
    assert solver.ticker(given, values)().ok
    assert_close(solver._layout.read(values)["qdd"], solver.solve(*state).qdd, SOLVED)


def test_arrays_of_a_solver_stay_where_they_are():
    """Another array in their place would never be read, or written."""
    for solver in (planned().solver("numpy"), contact_plans().solver("numpy")):
        with pytest.raises(InputError, match=r"'q' stays where it is.*`\.q\[:\] = \.\.\.`"):
            solver.inputs.q = np.ones_like(solver.inputs.q)
        with pytest.raises(InputError, match="'tau' stays where it is"):
            solver.outputs.tau = np.zeros_like(solver.outputs.tau)
        before = solver.inputs.qd
        solver.inputs.qd += 1.0
        assert solver.inputs.qd is before
        assert (before == 1.0).all()
