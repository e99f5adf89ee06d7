"""nd.compile: any function of a robot as a program, single, in batches, in place; and its derivatives."""

from functools import partial

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.spatial import matvec
from nori_dyn.errors import InputError, SingularSystemError, UnknownNameError
from tests.compilers import needs_compiler
from tests.oracles import derivative, newton_euler
from tests.tolerances import DIFFERENCES, RECURSION, ROUNDING, assert_close
from tests.trees import TREES, random_state, three_children

BACKENDS = (pytest.param("native", marks=needs_compiler), "numpy")
every_backend = pytest.mark.parametrize("backend", BACKENDS)


@pytest.fixture
def tree():
    return three_children()


def truth(tree, seed=0):
    """A state, and the torques of the textbook in it."""
    q, qd, qdd, fx = random_state(tree, seed)
    return q, qd, qdd, fx, newton_euler(tree, q, qd, qdd, fx).tau


@every_backend
def test_a_tick_reads_and_writes_its_own_arrays(tree, backend):
    q, qd, qdd, _, _ = truth(tree)
    f = nd.compile(nd.rnea, tree, backend=backend)
    before = f.outputs
    f.inputs.q[:], f.inputs.qd[:], f.inputs.qdd[:] = q, qd, qdd
    f.tick()
    assert f.outputs is before
    assert_close(f.outputs, newton_euler(tree, q, qd, qdd, np.zeros((4, 6))).tau, RECURSION)
    copy = f(q, qd, qdd)
    f.tick()
    assert copy is not f.outputs
    with pytest.raises(ValueError, match="read-only"):
        f.outputs[0] = 1.0


@every_backend
def test_a_tuple_stays_what_it_is(tree, backend):
    q, qd, _, _, _ = truth(tree)
    f = nd.compile(nd.coriolis, tree, backend=backend)
    found = f(q, qd)
    assert type(found) is type(f.outputs)
    assert found._fields == ("M", "Mdot", "C")
    expected = nd.coriolis(tree, q, qd)
    for ours, reference in zip(found, expected, strict=True):
        assert_close(ours, reference, ROUNDING)
    batch = f.batch(np.array([q, q]), np.array([qd, qd]))
    assert batch.C.shape == (2, tree.nv, tree.nv)


def test_unwanted_outputs_are_not_computed(tree):
    everything = nd.compile(nd.coriolis, tree, backend="numpy")
    q, qd, *_ = truth(tree)
    C = nd.compile(nd.coriolis, tree, outputs=("C",), backend="numpy")
    assert C.cost.total < everything.cost.total
    assert_close(C(q, qd), everything(q, qd).C, ROUNDING)
    M, rate = nd.compile(nd.coriolis, tree, outputs=("M", "Mdot"), backend="numpy")(q, qd)
    assert_close(M, nd.crba(tree, q), ROUNDING)
    assert_close(rate, everything(q, qd).Mdot, ROUNDING)


def test_options_are_given_by_partial_and_anybodys_function_will_do(tree):
    q, qd, *_ = truth(tree)
    cross = nd.compile(partial(nd.coriolis, factorisation="cross"), tree, outputs=("C",), backend="numpy")
    assert_close(cross(q, qd), nd.coriolis(tree, q, qd, "cross").C, ROUNDING)

    def energy(tree, q, qd, weights):
        return np.sum(weights * qd * matvec(nd.crba(tree, q), qd)) / 2

    weights = np.arange(tree.nv) + 1.0
    f = nd.compile(energy, tree, shapes={"weights": (tree.nv,)}, backend="numpy")
    assert f(q, qd, weights) == pytest.approx(weights * qd @ (nd.crba(tree, q) @ qd) / 2, rel=1e-13)
    assert f.batch(q[None], qd[None], weights[None]).shape == (1,)


class TestDerivatives:
    @pytest.mark.parametrize("mode", ["forward", "reverse"])
    @pytest.mark.parametrize("name", ["mixed_8", "two_roots", "three_children"])
    def test_inverse_dynamics_by_differences_of_the_textbook(self, name, mode):
        tree, inputs = TREES[name], ("q", "qd", "qdd", "fx")
        q, qd, qdd, fx, _ = state = truth(tree)
        made = nd.compile(nd.rnea, tree, inputs=inputs, backend="numpy").derivative(*inputs, mode=mode)
        by_q, by_qd, by_qdd, by_fx = made(*state[:4])
        assert by_fx.shape == (tree.nv, tree.n_links, 6)

        def torque(t, dq=0.0, dqd=0.0, dqdd=0.0, dfx=0.0):
            moved = tree.integrate(q, dq + np.zeros(tree.nv), t)
            return newton_euler(tree, moved, qd + t * dqd, qdd + t * dqdd, fx + t * dfx).tau

        rng = np.random.default_rng(1)
        for e in rng.normal(size=(2, tree.nv)):  # a matrix that is right along both is right, but for chance
            assert_close(by_q @ e, derivative(partial(torque, dq=e)), DIFFERENCES._replace(value=1e-9))
            assert_close(by_qd @ e, derivative(partial(torque, dqd=e)), DIFFERENCES)
            assert_close(by_qdd @ e, derivative(partial(torque, dqdd=e)), DIFFERENCES)
        wrench = rng.normal(size=fx.shape)
        assert_close(np.tensordot(by_fx, wrench, 2), derivative(partial(torque, dfx=wrench)), DIFFERENCES)

    def test_the_two_modes_agree_and_auto_takes_the_cheaper(self, tree):
        q, qd, *_ = truth(tree)
        modes = ("forward", "reverse", "auto")  # each from a graph of its own: equal functions in one are one node
        made = {
            mode: nd.compile(nd.recursions.coriolis_force, tree, backend="numpy").derivative("q", mode=mode)
            for mode in modes
        }
        assert_close(made["forward"](q, qd), made["reverse"](q, qd), ROUNDING)
        forward, reverse, auto = (made[mode].cost.total for mode in modes)
        assert auto == min(forward, reverse) < max(forward, reverse)

    def test_second_derivatives(self, tree):
        q, qd, *_ = truth(tree)
        f = nd.compile(nd.recursions.coriolis_force, tree, backend="numpy")
        second = f.derivative("qd").derivative("qd")(q, qd)  # C(q, qd) qd is quadratic in qd
        assert_close(np.einsum("ijk,j,k->i", second, qd, qd) / 2, nd.recursions.coriolis_force(tree, q, qd), RECURSION)

    def test_forward_dynamics_is_derived_as_the_solution_of_inverse_dynamics(self, tree):
        q, qd, qdd, fx, tau = truth(tree)
        f = nd.compile(nd.aba, tree, inputs=("q", "qd", "tau", "fx"), backend="numpy")

        def directly(tree, q, qd, tau, fx):  # the same algorithm, under a name that says nothing of what it solves
            return nd.aba(tree, q, qd, tau, fx)

        direct = nd.compile(directly, tree, backend="numpy")
        for name in ("q", "qd", "tau", "fx"):
            by_rule, by_way = f.derivative(name), direct.derivative(name)
            assert_close(by_rule(q, qd, tau, fx), by_way(q, qd, tau, fx), RECURSION)
        assert f.derivative("q").cost.total < direct.derivative("q").cost.total
        assert_close(f.derivative("tau")(q, qd, tau, fx), nd.minverse(tree, q), RECURSION)

    def test_by_nothing_or_by_what_is_no_input(self, tree):
        f = nd.compile(nd.crba, tree, backend="numpy")
        with pytest.raises(InputError, match="by which input"):
            f.derivative()
        with pytest.raises(UnknownNameError, match="unknown input 'qd'"):
            f.derivative("qd")


class TestBadInput:
    @every_backend
    def test_shapes_and_values_are_refused_by_name(self, tree, backend):
        q, qd, qdd, *_ = truth(tree)
        f = nd.compile(nd.rnea, tree, backend=backend)
        for given, words in (
            ((q, np.zeros(2), qdd), r"qd has shape \(2,\), expected"),
            ((q, qd, np.where(np.arange(tree.nv) == 3, np.nan, qdd)), r"qdd\[3\] is nan"),
            ((2 * q, qd, qdd), "quaternion"),
            ((q, ["a"] * tree.nv, qdd), "not an array of numbers"),
            ((q, qd), "the inputs are q, qd, qdd"),
        ):
            with pytest.raises(InputError, match=words):
                f(*given)
        with pytest.raises(InputError, match="the inputs are q, qd, qdd"):
            f(q, qd, qddd=qdd)
        wrong = np.array([qd, qd])
        wrong[1, 4] = np.inf
        for given, words in (
            ((np.array([q, q]), np.zeros((3, 9)), np.zeros((2, 9))), r"qd has shape \(3, 9\), expected \(2, 9\)"),
            ((np.array([q, q]), wrong, np.array([qdd, qdd])), r"qd\[1, 4\] is inf"),
            ((np.zeros((0, tree.nq)), np.zeros((0, 9)), np.zeros((0, 9))), "leading axis"),
        ):
            with pytest.raises(InputError, match=words):
                f.batch(*given)

    @every_backend
    def test_a_result_that_is_not_finite_is_no_result(self, tree, backend):
        f = nd.compile(lambda tree, qd: 1 / qd, tree, backend=backend)
        qd = np.ones(tree.nv)
        assert_close(f(qd), qd, ROUNDING)
        with pytest.raises(SingularSystemError, match="not finite at this state"):
            f(np.zeros(tree.nv))
        with pytest.raises(SingularSystemError, match="not finite at state 1 of 2"):
            f.batch(np.array([qd, 0 * qd]))

    @pytest.mark.parametrize(
        ("function", "options", "error", "words"),
        [
            (nd.crba, {"inputs": ("q", "qdot")}, UnknownNameError, r"unknown input 'qdot'.*'crba'"),
            (nd.coriolis, {"outputs": ("D",)}, UnknownNameError, "unknown output 'D'"),
            (nd.crba, {"backend": "cuda"}, UnknownNameError, "unknown backend 'cuda'"),
            (nd.rnea, {"inputs": ("q",)}, InputError, "needs the inputs q, qd, qdd: qd, qdd left out"),
            (lambda tree, x: x, {}, InputError, "the shape of input 'x' is not known"),
            (lambda tree, q: np.array(["a"]), {}, InputError, "no number and no expression"),
        ],
    )
    def test_unknown_names(self, tree, function, options, error, words):
        with pytest.raises(error, match=words):
            nd.compile(function, tree, **options)

    def test_a_robot_without_mass_cannot_be_compiled(self):
        with pytest.raises(SingularSystemError, match=r"joint '.*' moves no inertia"):
            nd.compile(nd.aba, TREES["massless"])


def test_a_function_says_what_it_is(tree):
    assert repr(nd.compile(nd.crba, tree, backend="numpy")).startswith("CompiledFunction(crba(q) of 'three_children', ")
