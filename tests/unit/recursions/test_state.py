"""The algorithms over symbols: of CasADi, of SymPy, and our own expressions, evaluated at numbers."""

import numpy as np
import pytest

from nori_dyn.algebra.expressions import Graph
from nori_dyn.errors import InputError
from nori_dyn.model.joints import Planar, Spherical
from nori_dyn.model.synthetic import random_tree
from nori_dyn.recursions.coordinates import coordinate_change
from nori_dyn.recursions.crba import crba
from nori_dyn.recursions.factorisation import ltdl, ltl, solve_ltl
from nori_dyn.recursions.rnea import rnea
from nori_dyn.recursions.sparsity import expanded_parents
from nori_dyn.recursions.state import scalars, shapes_of
from tests.covering import covering
from tests.oracles import inputs_of
from tests.peers import casadi as ca
from tests.peers import sympy
from tests.tolerances import RECURSION, ROUNDING, SOLVED, assert_close
from tests.trees import SINGLE_KINDS, TREES, on_a_free_base, random_state
from tests.unit.recursions.algorithms import ALGORITHMS, CENTRE, CHRISTOFFEL, FACTORS, OF_ARRAYS
from tests.unit.recursions.test_joint_terms import ARM as ARM_WITH_MOTORS

ARM = random_tree(3, seed=41, kinds=SINGLE_KINDS, chain=0.5)
SMALL_ARM = random_tree(2, seed=42, kinds=("revolute", "prismatic"))
HAND = random_tree(2, seed=43).replace(joints=(Planar(), Spherical()))
FLYER = TREES["one_free_body"]
FLOATING_ARM = on_a_free_base(ARM)


def by_casadi(function, inputs, values):
    """The entries of an array of SX at values of its inputs."""
    array = function(*inputs)
    f = ca.Function("f", list(inputs), [ca.vertcat(*array.ravel().tolist())])
    found = f(*(ca.DM(x.reshape(symbol.shape)) for x, symbol in zip(values, inputs, strict=True)))
    return np.array(found).reshape(array.shape)


def casadi_symbols(tree):
    return tuple(ca.SX.sym(name, *shape) for name, shape in shapes(tree))


def sympy_symbols(tree):
    """Columns of symbols, and a matrix of them for the wrenches."""
    q, qd, x, fx = ([sympy.Symbol(f"{name}_{k}") for k in range(int(np.prod(shape)))] for name, shape in shapes(tree))
    return sympy.Matrix(q), sympy.Matrix(qd), sympy.Matrix(x), sympy.Matrix(tree.n_links, 6, fx)


def shapes(tree):
    all_shapes = shapes_of(tree)
    return [(name, all_shapes[of]) for name, of in (("q", "q"), ("qd", "qd"), ("x", "qdd"), ("fx", "fx"))]


EVERY = ALGORITHMS | FACTORS | CHRISTOFFEL | CENTRE
EVERY |= {name: OF_ARRAYS[name] for name in ("jacobian", "jacobian_rate")}
OF_SOME = dict.fromkeys(FACTORS, (ARM, HAND)) | dict.fromkeys(CHRISTOFFEL, (ARM, ARM_WITH_MOTORS))
OF_SOME |= dict.fromkeys(CENTRE, (FLOATING_ARM,))


@pytest.mark.parametrize("name", EVERY)
def test_casadi_and_expressions_give_the_numbers(name):
    function = EVERY[name]
    for tree in OF_SOME.get(name, (HAND, ARM_WITH_MOTORS)):
        values, graph = random_state(tree, 2), Graph(seed=2)
        expected = function(tree, *values)
        inputs, at = inputs_of(graph, **dict(zip(("q", "qd", "x", "fx"), values, strict=True)))
        array = function(tree, *inputs)
        found = graph.evaluate([graph.expr(x) for x in array.ravel()], {k: np.array([x]) for k, x in at.items()})
        assert_close(found.reshape(array.shape), expected, SOLVED)
        if not (tree.components and "derivatives" in name):  # CasADi warns, as it is called by functions of NumPy's
            found = by_casadi(lambda *inputs, tree=tree: function(tree, *inputs), casadi_symbols(tree), values)
            assert_close(found, expected, SOLVED)


@pytest.mark.parametrize("name", ["rnea", "aba", "coriolis"])
def test_sympy_gives_the_numbers(name):
    """Of sums, products and quotients. All algorithms over symbols: the test before this; square roots: below."""
    tree, function = SMALL_ARM, ALGORITHMS[name]
    inputs = sympy_symbols(tree)
    array = function(tree, *inputs)
    f = sympy.lambdify([x for part in inputs for x in part], array.ravel().tolist(), modules="math", cse=True)
    for seed in range(3):
        values = random_state(tree, seed)
        found = f(*np.concatenate([x.ravel() for x in values]))
        assert_close(np.reshape(found, array.shape), function(tree, *values), SOLVED)


def containers(symbols):
    """One vector of CasADi's in all forms in which it may come."""
    parts = [symbols[k] for k in range(symbols.numel())]
    objects = np.empty(len(parts), dtype=object)
    objects[:] = parts
    return {"column": symbols, "row of parts": parts, "tuple": tuple(parts), "array": objects}


def test_vectors_of_casadi_come_in_many_forms():
    q, qd, x, _ = casadi_symbols(ARM)
    values = random_state(ARM, 5)[:3]
    for form in containers(q):
        given = [containers(part)[form] for part in (q, qd, x)]
        found = by_casadi(lambda *_, given=given: rnea(ARM, *given), (q, qd, x), values)
        assert_close(found, rnea(ARM, *values), RECURSION)
    found = by_casadi(lambda q: crba(ARM, [q[0], *values[0][1:]]), (q,), values[:1])  # symbols and numbers
    assert_close(found, crba(ARM, values[0]), RECURSION)


def test_vectors_of_sympy_come_in_many_forms():
    q, qd, x = (list(sympy.symbols(f"{name}:2")) for name in ("q", "v", "a"))
    values = random_state(SMALL_ARM, 6)[:3]
    for form in (list, tuple, sympy.Matrix, sympy.ImmutableMatrix, sympy.Array, np.array):
        tau = rnea(SMALL_ARM, form(q), form(qd), form(x))
        found = sympy.lambdify([*q, *qd, *x], tau.tolist())(*np.concatenate(values))
        assert_close(found, rnea(SMALL_ARM, *values), RECURSION)


ONCE = ("rnea", "gravity_force", "hybrid_dynamics", "minverse", "coriolis", "coriolis by cross", "ltl")
"""One algorithm of every kind."""

MIXED = {
    **{f"arm: {name}": (ARM, EVERY[name]) for name in (*ONCE, *CHRISTOFFEL)},
    **{f"hand: {name}": (HAND, EVERY[name]) for name in ONCE},
    "flyer: com_coordinates": (FLYER, CENTRE["com_coordinates"]),
    "floating arm: com_coordinates": (FLOATING_ARM, CENTRE["com_coordinates"]),
}
SYMBOLIC = {"q": (0,), "qd": (1,), "x": (2,), "q and qd": (0, 1), "fx": (3,)}


@covering(strength=1, case=MIXED, which=SYMBOLIC)
def test_numbers_and_symbols_mix(case, which):
    tree, function = case
    values, symbols = random_state(tree, 7), casadi_symbols(tree)
    expected = function(tree, *values)

    def mixed(*given):
        parts = dict(zip(which, given, strict=True))
        return function(tree, *(parts.get(k, x) for k, x in enumerate(values)))

    inputs, at = zip(*((symbols[k], values[k]) for k in which), strict=True)
    assert_close(by_casadi(mixed, inputs, at), expected, SOLVED)


FORMS = {
    "whole": lambda matrix: matrix,
    "parts": lambda matrix: [[matrix[i, j] for j in range(matrix.shape[1])] for i in range(matrix.shape[0])],
}


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


def test_symbols_of_a_wrong_shape_are_refused():
    for wrong, size in ((ca.SX.sym("x", 4), 4), (sympy.Matrix(sympy.symbols("x:2")), 2)):
        for name in ("qd", "qdd"):
            values = {of: ca.SX.sym(of, 3) for of in ("q", "qd", "qdd")} | {name: wrong}
            with pytest.raises(InputError, match=rf"{name} has shape \({size}, 1\), expected \(3,\)"):
                rnea(ARM, **values)
