"""The analytical derivatives, against differences of the algorithms with many digits."""

import operator

import mpmath
import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.ranges import numbers_in
from nori_dyn.errors import SingularSystemError
from nori_dyn.recursions.aba import aba, hybrid_dynamics
from nori_dyn.recursions.derivatives import aba_derivatives, hybrid_dynamics_derivatives, rnea_derivatives
from nori_dyn.recursions.rnea import rnea
from tests.tolerances import RECURSION, ROUNDING, SOLVED, assert_close
from tests.trees import TREES, random_state
from tests.unit.recursions.test_joint_terms import WITH_MOTORS

MOVING = TREES | {f"{name} with motors": tree for name, tree in WITH_MOTORS.items()}
DIGITS = 40
STEP = mpmath.mpf(10) ** -12


class Number:
    """A number of many digits, as a scalar of the recursions."""

    def __init__(self, value):
        self.value = mpmath.mpf(value)

    def __neg__(self):
        return Number(-self.value)

    def __float__(self):
        return float(self.value)


def _value(x):
    return x.value if isinstance(x, Number) else mpmath.mpf(float(x))


def _on_values(function):
    """A function of numbers of many digits as a method of `Number`."""
    return lambda *numbers: Number(function(*map(_value, numbers)))


for _name in ("sin", "cos", "sqrt"):
    setattr(Number, _name, _on_values(getattr(mpmath, _name)))
for _name in ("add", "sub", "mul", "truediv"):
    _of = getattr(operator, _name)
    setattr(Number, f"__{_name}__", _on_values(_of))
    setattr(Number, f"__r{_name}__", _on_values(lambda x, y, of=_of: of(y, x)))


def numbers(array):
    """An array over numbers of many digits; quaternions are made of unit length by `unit`."""
    return np.vectorize(Number, otypes=[object])(array)


def unit(tree, q):
    """A configuration over numbers with its quaternions of unit length, to all digits."""
    q = q.copy()
    for s in tree.quaternions:
        length = mpmath.sqrt(sum(x.value**2 for x in q[s]))
        q[s] = [Number(x.value / length) for x in q[s]]
    return q


def direction(n):
    """A random direction (n,): a matrix that is right along it is right, but for chance."""
    e = np.random.default_rng(5).normal(size=n)
    return e / np.linalg.norm(e)


def central(function, tree, q, qd, y):
    """The derivatives by q, along the freedoms, by qd, and by y, in one direction, by central differences."""
    e = numbers(direction(tree.nv))
    places = zip(tree.joints, tree.q_slices, tree.v_slices, strict=True)
    rates = np.concatenate([joint.rates(q[s], e[v]) for joint, s, v in places])  # up to terms that differences drop
    found = []
    for k, rate in enumerate((rates, e, e)):
        ends = []
        for step in (STEP, -STEP):
            at = [q, qd, y]
            at[k] = at[k] + rate * Number(step)
            ends.append(function(*at))
        found.append(((ends[0] - ends[1]) / Number(2 * STEP)).astype(float))
    return found


@pytest.mark.parametrize("name", ["two_roots with motors", "limb with motors", "fixed_joints with motors", "mixed_8"])
def test_both_against_differences_with_many_digits(name):
    tree = MOVING[name]
    with mpmath.workdps(DIGITS):
        q, qd, y, fx = map(numbers, random_state(tree, 3))
        q = unit(tree, q)
        state = [x.astype(float) for x in (q, qd, y, fx)]
        inverse = central(lambda q, qd, y: rnea(tree, q, qd, y, fx), tree, q, qd, y)
        forward = central(lambda q, qd, y: aba(tree, q, qd, y, fx), tree, q, qd, y)
        with_digits = rnea_derivatives(tree, q, qd, y, fx)
    for found, exact, expected in zip(rnea_derivatives(tree, *state), with_digits, inverse, strict=True):
        assert_close(found @ direction(tree.nv), expected, RECURSION)
        assert_close(exact.astype(float) @ direction(tree.nv), expected, ROUNDING)
    for found, expected in zip(aba_derivatives(tree, *state), forward, strict=True):
        assert_close(found @ direction(tree.nv), expected, SOLVED)


@pytest.mark.parametrize(
    ("name", "seed"),
    [("limb with motors", 1), ("fixed_joints with motors", 0), ("mixed_8", 1)],
)
def test_hybrid_dynamics_against_differences_with_many_digits(name, seed):
    tree = MOVING[name]
    led = [joint for joint in tree.joint_names if np.random.default_rng([seed, *joint.encode()]).random() < 0.5]
    is_led = np.isin(np.arange(tree.nv), numbers_in(tree.v_slices[tree.joint(joint)] for joint in led))

    def sought(q, qd, y, fx):
        found = hybrid_dynamics(tree, q, qd, y, y, led, fx)
        return np.where(is_led, found.tau, found.qdd)

    with mpmath.workdps(DIGITS):
        q, qd, y, fx = map(numbers, random_state(tree, 4))
        q = unit(tree, q)
        expected = central(lambda q, qd, y: sought(q, qd, y, fx), tree, q, qd, y)
        push = numbers(direction(fx.size).reshape(fx.shape))
        by_fx = (sought(q, qd, y, fx + push) - sought(q, qd, y, fx)).astype(float)
        q, qd, y, fx = (x.astype(float) for x in (q, qd, y, fx))
    found = hybrid_dynamics_derivatives(tree, q, qd, y, y, led, fx, with_fx=True)
    for ours, reference in zip(found, expected, strict=False):
        assert_close(ours @ direction(tree.nv), reference, SOLVED)
    assert_close(found.by_fx.reshape(tree.nv, -1) @ direction(fx.size), by_fx, SOLVED)


def test_a_floating_robot_that_turns_falls_as_before():
    tree = TREES["three_children"]
    q, qd, tau, _ = random_state(tree, 2)
    by_q, _, _ = aba_derivatives(tree, q, qd, tau)
    assert_close(by_q[:, 3:6], np.zeros((tree.nv, 3)), ROUNDING)  # wherever it is
    assert_close(by_q[6:, :6], np.zeros((tree.nv - 6, 6)), SOLVED)  # joints do not feel a turn of the base


def test_what_is_refused():
    q, qd, tau, _ = random_state(TREES["massless"], 0)
    with pytest.raises(SingularSystemError, match="moves no inertia"):
        aba_derivatives(TREES["massless"], q, qd, tau)
    with pytest.raises(SingularSystemError, match="moves no inertia"):
        nd.compile(aba_derivatives, TREES["massless"])
