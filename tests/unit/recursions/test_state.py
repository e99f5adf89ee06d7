"""The algorithms over symbols: of CasADi, of SymPy, and our own expressions, evaluated at numbers."""

from __future__ import annotations

import numpy as np
import pytest

from nori_dyn.algebra.expressions import Graph
from nori_dyn.errors import InputError
from nori_dyn.model.joints import Free, Planar, Spherical
from nori_dyn.model.synthetic import random_tree
from nori_dyn.recursions.aba import aba, hybrid_dynamics
from nori_dyn.recursions.christoffel import christoffel
from nori_dyn.recursions.coordinates import com_coordinates, coordinate_change
from nori_dyn.recursions.coriolis import coriolis
from nori_dyn.recursions.crba import crba, inertia_by_columns, inertia_forward_dynamics
from nori_dyn.recursions.derivatives import aba_derivatives, rnea_derivatives
from nori_dyn.recursions.factorisation import ltdl, ltl, solve_ltl
from nori_dyn.recursions.minverse import minverse
from nori_dyn.recursions.rnea import bias_force, coriolis_force, gravity_force, inertial_force, rnea
from nori_dyn.recursions.sparsity import expanded_parents
from nori_dyn.recursions.state import arguments, scalars, shapes_of
from tests.peers import casadi as ca
from tests.peers import sympy
from tests.tolerances import EXACT, RECURSION, ROUNDING, SOLVED, assert_close
from tests.trees import SINGLE_KINDS, TREES, random_state

ARM = random_tree(3, seed=41, kinds=SINGLE_KINDS, chain=0.5)
SMALL_ARM = random_tree(2, seed=42, kinds=("revolute", "prismatic"))
HAND = random_tree(2, seed=43).replace(joints=(Planar(), Spherical()))
FLYER = TREES["one_free_body"]
FLOATING_ARM = ARM.replace(joints=(Free(), *ARM.joints[1:]))

# name: of a tree and its q, qd, x (qdd or tau) and fx
ALGORITHMS = {
    "rnea": lambda tree, q, qd, x, fx: rnea(tree, q, qd, x, fx),
    "rnea without wrenches": lambda tree, q, qd, x, fx: rnea(tree, q, qd, x),
    "bias_force": lambda tree, q, qd, x, fx: bias_force(tree, q, qd, fx),
    "gravity_force": lambda tree, q, qd, x, fx: gravity_force(tree, q),
    "coriolis_force": lambda tree, q, qd, x, fx: coriolis_force(tree, q, qd),
    "inertial_force": lambda tree, q, qd, x, fx: inertial_force(tree, q, x),
    "aba": lambda tree, q, qd, x, fx: aba(tree, q, qd, x, fx),
    "hybrid_dynamics": lambda tree, q, qd, x, fx: np.concatenate(
        hybrid_dynamics(tree, q, qd, x, x, tree.joint_names[:1], fx)
    ),
    "inertia_forward_dynamics": lambda tree, q, qd, x, fx: inertia_forward_dynamics(tree, q, qd, x, fx),
    "crba": lambda tree, q, qd, x, fx: crba(tree, q),
    "inertia_by_columns": lambda tree, q, qd, x, fx: inertia_by_columns(tree, q),
    "minverse": lambda tree, q, qd, x, fx: minverse(tree, q),
    "coriolis": lambda tree, q, qd, x, fx: np.concatenate(coriolis(tree, q, qd)),
    "coriolis by cross": lambda tree, q, qd, x, fx: np.concatenate(coriolis(tree, q, qd, "cross")),
    "rnea_derivatives": lambda tree, q, qd, x, fx: np.concatenate(rnea_derivatives(tree, q, qd, x, fx)),
    "aba_derivatives": lambda tree, q, qd, x, fx: np.concatenate(aba_derivatives(tree, q, qd, x, fx)),
    "ltl": lambda tree, q, qd, x, fx: ltl(crba(tree, q), expanded_parents(tree)),
    "ltdl": lambda tree, q, qd, x, fx: np.vstack(ltdl(crba(tree, q), expanded_parents(tree))),
}
CHRISTOFFEL = {"christoffel": lambda tree, q, qd, x, fx: christoffel(tree, q)}
CENTRE = {"com_coordinates": lambda tree, q, qd, x, fx: np.concatenate(com_coordinates(tree, q, qd))}


def by_casadi(function, inputs, values):
    """Return the entries of an array of SX at values of its inputs."""
    array = function(*inputs)
    f = ca.Function("f", list(inputs), [ca.vertcat(*array.ravel().tolist())])
    found = f(*(ca.DM(x.reshape(symbol.shape)) for x, symbol in zip(values, inputs, strict=True)))
    return np.array(found).reshape(array.shape)


def casadi_symbols(tree):
    return tuple(ca.SX.sym(name, *shape) for name, shape in shapes(tree))


def sympy_symbols(tree):
    """Return columns of symbols, and a matrix of them for the wrenches."""
    q, qd, x, fx = ([sympy.Symbol(f"{name}_{k}") for k in range(int(np.prod(shape)))] for name, shape in shapes(tree))
    return sympy.Matrix(q), sympy.Matrix(qd), sympy.Matrix(x), sympy.Matrix(tree.n_links, 6, fx)


def shapes(tree):
    all_shapes = shapes_of(tree)
    return [("q", all_shapes["q"]), ("qd", all_shapes["qd"]), ("x", all_shapes["qdd"]), ("fx", all_shapes["fx"])]


CASADI_CASES = {
    **{f"arm: {name}": (ARM, f) for name, f in (ALGORITHMS | CHRISTOFFEL).items()},
    **{f"hand: {name}": (HAND, f) for name, f in ALGORITHMS.items()},
    **{f"floating arm: {name}": (FLOATING_ARM, f) for name, f in CENTRE.items()},
}


@pytest.mark.parametrize("name", CASADI_CASES)
def test_casadi_gives_the_numbers(name):
    tree, function = CASADI_CASES[name]
    values = random_state(tree, 2)
    found = by_casadi(lambda *inputs: function(tree, *inputs), casadi_symbols(tree), values)
    assert_close(found, function(tree, *values), SOLVED)


SYMPY_CASES = CHRISTOFFEL | {
    name: ALGORITHMS[name] for name in ("rnea", "gravity_force", "aba", "crba", "minverse", "coriolis", "ltl", "ltdl")
}


@pytest.mark.parametrize("name", SYMPY_CASES)
def test_sympy_gives_the_numbers(name):
    tree, function = SMALL_ARM, SYMPY_CASES[name]
    inputs = sympy_symbols(tree)
    array = function(tree, *inputs)
    f = sympy.lambdify([x for part in inputs for x in part], array.ravel().tolist(), modules="math", cse=True)
    for seed in range(3):
        values = random_state(tree, seed)
        found = f(*np.concatenate([x.ravel() for x in values]))
        assert_close(np.reshape(found, array.shape), function(tree, *values), SOLVED)


EXPRESSION_CASES = {
    **{f"arm: {name}": (ARM, f) for name, f in (ALGORITHMS | CHRISTOFFEL).items()},
    **{f"hand: {name}": (HAND, f) for name, f in ALGORITHMS.items()},
    **{f"floating arm: {name}": (FLOATING_ARM, f) for name, f in CENTRE.items()},
}


@pytest.mark.parametrize("name", EXPRESSION_CASES)
def test_expressions_give_the_numbers(name):
    tree, function = EXPRESSION_CASES[name]
    values = random_state(tree, 1)
    graph, at, inputs = Graph(seed=2), {}, []
    for what, x in zip(("q", "qd", "x", "fx"), values, strict=True):
        array = np.empty(x.shape, dtype=object)
        for place, value in np.ndenumerate(x):
            array[place] = graph.input(f"{what}{place}")
            at[array[place].index] = np.array([value])
        inputs.append(array)
    array = function(tree, *inputs)
    found = graph.evaluate([graph.expr(x) for x in array.ravel()], at)
    assert_close(found.reshape(array.shape), function(tree, *values), SOLVED)


def test_a_numbers_derivative_by_casadi_is_the_inertia_matrix():
    q, qd, qdd, fx = casadi_symbols(ARM)
    tau = ca.vertcat(*rnea(ARM, q, qd, qdd, fx))
    f = ca.Function("f", [q, qd, qdd, fx], [ca.jacobian(tau, qdd)])
    values = random_state(ARM, 4)
    assert_close(np.array(f(*values)), crba(ARM, values[0]), RECURSION)


def containers(symbols):
    """Return one vector of CasADi's in all forms in which it may come."""
    parts = [symbols[k] for k in range(symbols.numel())]
    objects = np.empty(len(parts), dtype=object)
    objects[:] = parts
    return {"column": symbols, "row of parts": parts, "tuple": tuple(parts), "array": objects}


@pytest.mark.parametrize("form", ["column", "row of parts", "tuple", "array"])
def test_vectors_of_casadi_come_in_many_forms(form):
    q, qd, x, _ = casadi_symbols(ARM)
    given = [containers(part)[form] for part in (q, qd, x)]
    values = random_state(ARM, 5)[:3]
    found = by_casadi(lambda *_: rnea(ARM, *given), (q, qd, x), values)
    assert_close(found, rnea(ARM, *values), RECURSION)


@pytest.mark.parametrize("form", [list, tuple, sympy.Matrix, sympy.ImmutableMatrix, sympy.Array, np.array])
def test_vectors_of_sympy_come_in_many_forms(form):
    q, qd, x = (list(sympy.symbols(f"{name}:2")) for name in ("q", "v", "a"))
    values = random_state(SMALL_ARM, 6)[:3]
    tau = rnea(SMALL_ARM, form(q), form(qd), form(x))
    found = sympy.lambdify([*q, *qd, *x], tau.tolist())(*np.concatenate(values))
    assert_close(found, rnea(SMALL_ARM, *values), RECURSION)


ONCE = ("rnea", "gravity_force", "hybrid_dynamics", "minverse", "coriolis", "coriolis by cross", "ltl")
"""One algorithm of every kind."""

MIXED = {
    **{f"arm: {name}": (ARM, ALGORITHMS[name]) for name in ONCE},
    **{f"hand: {name}": (HAND, ALGORITHMS[name]) for name in ONCE},
    "arm: christoffel": (ARM, CHRISTOFFEL["christoffel"]),
    "flyer: com_coordinates": (FLYER, CENTRE["com_coordinates"]),
    "floating arm: com_coordinates": (FLOATING_ARM, CENTRE["com_coordinates"]),
}
SYMBOLIC = {"q": (0,), "qd": (1,), "x": (2,), "q and qd": (0, 1), "fx": (3,)}


@pytest.mark.parametrize("symbolic", SYMBOLIC)
@pytest.mark.parametrize("name", MIXED)
def test_numbers_and_symbols_mix(name, symbolic):
    which = SYMBOLIC[symbolic]
    tree, function = MIXED[name]
    values, symbols = random_state(tree, 7), casadi_symbols(tree)
    expected = function(tree, *values)

    def mixed(*given):
        parts = dict(zip(which, given, strict=True))
        return function(tree, *(parts.get(k, x) for k, x in enumerate(values)))

    inputs, at = zip(*((symbols[k], values[k]) for k in which), strict=True)
    assert_close(by_casadi(mixed, inputs, at), expected, SOLVED)


def test_numbers_and_symbols_mix_in_one_vector():
    values = random_state(ARM, 7)
    first = ca.SX.sym("q0")
    found = by_casadi(lambda x: crba(ARM, [x, *values[0][1:]]), (first,), (values[0][:1],))
    assert_close(found, crba(ARM, values[0]), RECURSION)


def parts(matrix):
    """Return a matrix of CasADi as lists of its entries."""
    return [[matrix[i, j] for j in range(matrix.shape[1])] for i in range(matrix.shape[0])]


FORMS = {"whole": lambda matrix: matrix, "parts": parts}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_matrices_of_casadi_are_factorised(form):
    H, b = ca.SX.sym("H", 3, 3), ca.SX.sym("b", 3)
    values, right = crba(ARM, random_state(ARM, 8)[0]), np.arange(1.0, 4.0)
    parents = expanded_parents(ARM)
    found = by_casadi(lambda H: ltl(form(H), parents), (H,), (values,))
    assert_close(found, ltl(values, parents), RECURSION)
    found = by_casadi(lambda H: np.vstack(ltdl(form(H), parents)), (H,), (values,))
    assert_close(found, np.vstack(ltdl(values, parents)), RECURSION)
    vector = scalars("b", b, (3,))
    found = by_casadi(lambda H, b: solve_ltl(ltl(form(H), parents), parents, vector), (H, b), (values, right))
    assert_close(found, np.linalg.solve(values, right), SOLVED)


def test_matrices_of_sympy_are_factorised():
    entries = sympy.symbols("h:9")
    L = ltl(sympy.Matrix(3, 3, entries), (-1, 0, 1))
    found = sympy.lambdify(entries, L.ravel().tolist(), modules="math")
    full = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    assert_close(np.reshape(found(*full.ravel()), (3, 3)), ltl(full, (-1, 0, 1)), RECURSION)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_change_of_symbols(form):
    symbols = tuple(ca.SX.sym(name, 2, 2) for name in ("A", "R", "M", "C"))
    values = np.random.default_rng(9).normal(size=(4, 2, 2))

    def changed(A, A_rate, M, C):
        return coordinate_change(form(A), form(A_rate)).coriolis(form(M), form(C))

    assert_close(by_casadi(changed, symbols, values), coordinate_change(*values[:2]).coriolis(*values[2:]), ROUNDING)


@pytest.mark.parametrize("name", ["qd", "x"])
def test_symbols_of_a_wrong_shape_are_refused(name):
    values = {"q": ca.SX.sym("q", 3), "qd": ca.SX.sym("qd", 3), "x": ca.SX.sym("x", 3)}
    values[name] = ca.SX.sym(name, 4)
    with pytest.raises(InputError, match=r"has shape \(4, 1\), expected \(3,\)"):
        rnea(ARM, *values.values())
    values[name] = sympy.Matrix(sympy.symbols("x:2"))
    with pytest.raises(InputError, match=r"has shape \(2, 1\), expected \(3,\)"):
        rnea(ARM, *values.values())


def test_arguments_share_their_batch_axes():
    q, fx = arguments(ARM, q=np.zeros((3, 4)), fx=np.zeros((3, 6)))
    assert q.shape == (3, 4)
    assert fx.shape == (3, 6, 4)
    (qd,) = arguments(ARM, qd=None)
    assert_close(qd, np.zeros(3), EXACT)
    with pytest.raises(InputError, match=r"differ in their batch axes: q \(4,\), qd \(3,\)"):
        arguments(ARM, q=np.zeros((3, 4)), qd=np.zeros((3, 3)))


@pytest.mark.parametrize("value", [{}, {1: 2}, "abc", b"abc", [None] * 3, [[1.0], [2.0, 3.0], 4.0], [{}] * 3, object()])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(InputError, match="q"):
        scalars("q", value, (3,))


@pytest.mark.parametrize("value", [[1, 2, 3], (1.0, 2.0, 3.0), np.arange(1, 4), np.array([1, 2.0, 3], dtype=object)])
def test_numbers_become_floats(value):
    found = scalars("q", value, (3,))
    assert found.dtype == float
    assert_close(found, [1.0, 2.0, 3.0], EXACT)
