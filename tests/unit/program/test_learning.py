"""Compiled functions in PyTorch and JAX, where these are installed."""

import gc
import importlib.util
import sys
import weakref
from functools import lru_cache

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import InputError, MissingExtraError
from nori_dyn.model.joints import axis_rotation
from nori_dyn.model.tree import Frame
from nori_dyn.planning.outputs import output_columns
from nori_dyn.solve.solver import Solver
from tests import oracles
from tests.agreement.test_plan_derivatives import ExtendedEstimate
from tests.agreement.test_weighted import redundant
from tests.compilers import needs_compiler
from tests.systems import FORWARD
from tests.tolerances import EXACT, ROUNDING, SOLVED, Tolerance, assert_close
from tests.trees import on_a_free_base

SINGLE = Tolerance(1e-6, "results in single precision")

FLOATING = on_a_free_base(nd.autotree(1))
JOINTS = nd.tools.random_tree(2, seed=0, kinds=["planar", "spherical"])


class Torch:
    """PyTorch as these tests use it."""

    def __init__(self):
        self.xp = pytest.importorskip("torch")

    def function(self, compiled, **options):
        return compiled.torch(**options)

    def array(self, x, dtype="float64"):
        return self.xp.tensor(np.asarray(x), dtype=getattr(self.xp, dtype))

    def gradients(self, f, *states):
        states = [x.clone().requires_grad_() for x in states]
        return self.xp.autograd.grad(f(*states), states)

    def second(self, f, x):
        x = x.clone().requires_grad_()
        (gradient,) = self.xp.autograd.grad(f(x), x, create_graph=True)
        return self.xp.autograd.grad(gradient.sum(), x)

    def address(self, x):
        return x.data_ptr()


class Jax:
    """JAX as these tests use it."""

    def __init__(self):
        self.jax = pytest.importorskip("jax")
        self.jax.config.update("jax_enable_x64", True)
        self.xp = self.jax.numpy

    def function(self, compiled, **options):
        return compiled.jax(**options)

    def array(self, x, dtype="float64"):
        return self.xp.array(x, dtype=dtype)

    def gradients(self, f, *states):
        return self.jax.grad(f, argnums=tuple(range(len(states))))(*states)

    def second(self, f, x):
        return self.jax.hessian(f)(x)

    def address(self, x):
        return x.unsafe_buffer_pointer()


@pytest.fixture(params=[Torch, Jax], ids=["torch", "jax"])
def library(request):
    return request.param()


@lru_cache
def planned(name):
    tree = {"floating": FLOATING, "joints": JOINTS}.get(name, nd.autotree(3 if name == "chain" else 2, skew=0.4))
    if name == "weighted":
        return nd.plan(nd.System(tree, redundant(tree)), outputs=["tau", "fx"])
    if name == "turned":
        turned = Transform(axis_rotation((0.0, 0.0, 1.0), 0.5), np.array([0.1, 0.2, 0.3]))
        tree = tree.replace(frames={**tree.frames, "tool": Frame(tree.n_links - 1, turned)})
    return nd.plan(nd.System(tree, FORWARD), outputs=["qdd", "f:tool" if name == "turned" else f"f:{tree.names[-1]}"])


def states_of(system, n=4, seed=0):
    rng = np.random.default_rng(seed)
    Q = system.tree.random_configurations(n, rng)
    return Q, rng.normal(size=(n, system.tree.nv)), rng.normal(size=(n, system.ny))


def in_extended_precision(system, columns, weighting, state):
    """The derivatives of a weighted sum of unknowns by each number of each input; q is normalised."""
    estimate = ExtendedEstimate(system)
    given = [np.asarray(x, dtype=np.longdouble) for x in state]

    def at(k, i, t):
        moved = [x + t * (np.arange(len(x)) == i) if j == k else x for j, x in enumerate(given)]
        for part in system.tree.quaternions:
            moved[0][part] = moved[0][part] / np.sqrt(np.sum(moved[0][part] ** 2))
        return estimate.at(*moved)[columns] @ weighting

    stencil = list(zip(oracles.STENCIL, np.round(840 * oracles.WEIGHTS).astype(np.longdouble) / 840, strict=True))
    h = np.longdouble(1e-3)
    return [[sum(w * at(k, i, s * h) for s, w in stencil) / h for i in some(len(x))] for k, x in enumerate(given)]


def some(size):
    """The last four, of a q those of a quaternion if it has any."""
    return range(max(size - 4, 0), size)


@pytest.mark.parametrize("name", ["chain", "floating", "joints", "weighted"])
def test_gradients_are_those_in_extended_precision(library, name):
    plan = planned(name)
    system, rng = plan.system, np.random.default_rng(1)
    f = library.function(plan.solver("numpy"))
    columns = output_columns(system, plan.outputs)
    weighting = rng.normal(size=len(columns))
    factors = library.array(weighting)

    def loss(*state):
        flat = [x.reshape(-1) for x in f(*state).values()]
        return sum((part * own).sum() for part, own in zip(flat, split(factors, [len(x) for x in flat]), strict=True))

    state = [x[0] for x in states_of(system)]
    state += [rng.uniform(0.5, 2, system.n_weights)] if system.is_weighted else []
    state[0][:] = state[0] * 1.0004 if system.tree.quaternions else state[0]  # not quite of unit length
    found = library.gradients(loss, *map(library.array, state))
    for own, expected in zip(found, in_extended_precision(system, columns, weighting, state), strict=True):
        assert_close(np.asarray(own)[some(len(own))], expected, SOLVED)


def split(factors, sizes):
    return [factors[b - n : b] for n, b in zip(sizes, np.cumsum(sizes).tolist(), strict=True)]


def test_leading_axes_broadcast(library):
    plan = planned("floating")
    solver = plan.solver("numpy")
    f = library.function(solver, threads=2)
    Q, Qd, Y = states_of(plan.system, 6)
    estimate = solver.solve_batch(Q, Qd, Y)
    found = f(*map(library.array, (Q.reshape(2, 3, -1), Qd.reshape(2, 3, -1), Y.reshape(2, 3, -1))))
    assert [*found] == ["qdd", "f:link1"]
    assert_close(found["qdd"], estimate.qdd.reshape(2, 3, -1), EXACT)
    assert_close(found["f:link1"], estimate["f:link1"].reshape(2, 3, 6), EXACT)
    one = f(library.array(Q[1]), y=library.array(Y[1]), qd=library.array(Qd[1]))
    assert_close(one["qdd"], estimate.qdd[1], EXACT)
    spread = f(library.array(Q), library.array(Qd[0]), library.array(Y[:1]))
    assert_close(spread["qdd"], solver.solve_batch(Q, np.tile(Qd[0], (6, 1)), np.tile(Y[0], (6, 1))).qdd, EXACT)
    (by_qd,) = library.gradients(
        lambda qd: f(library.array(Q), qd, library.array(Y))["qdd"].sum(), library.array(Qd[0])
    )
    assert tuple(by_qd.shape) == (plan.system.tree.nv,)
    none = f(library.array(Q[:0]), library.array(Qd[:0]), library.array(Y[0]))
    assert tuple(none["qdd"].shape) == (0, plan.system.tree.nv)


def test_weights_may_be_left_out(library):
    plan = planned("weighted")
    f, state = library.function(plan.solver("numpy")), states_of(plan.system)
    given = [library.array(x) for x in state]
    assert_close(f(*given)["tau"], plan.solver("numpy").solve_batch(*state).tau, EXACT)
    assert_close(f(*given, library.array(plan.system.weights))["tau"], f(*given)["tau"], EXACT)


def test_outputs_in_another_frame_are_turned(library):
    plan = planned("turned")
    f, state = library.function(plan.solver("numpy")), states_of(plan.system)
    expected = plan.solver("numpy").solve_batch(*state)["f:tool"]
    assert_close(f(*map(library.array, state))["f:tool"], expected, EXACT)


def test_doubles_are_not_copied(library, monkeypatch):
    plan = planned("chain")
    f, given = library.function(plan.solver("numpy")), [library.array(x) for x in states_of(plan.system, 50)]
    real, seen = Solver.solve_batch, []

    def solve_batch(self, q, qd, y, *args, **kwargs):
        seen.extend(x.ctypes.data for x in (q, qd, y))
        return real(self, q, qd, y, *args, **kwargs)

    monkeypatch.setattr(Solver, "solve_batch", solve_batch)
    f(*given)
    assert seen == [library.address(x) for x in given]


def test_single_precision_comes_back_as_it_came(library):
    plan = planned("chain")
    f, state = library.function(plan.solver("numpy")), states_of(plan.system)
    single = [library.array(x, "float32") for x in state]
    assert "float32" in str(f(*single)["qdd"].dtype)
    assert "float64" in str(f(library.array(state[0]), *single[1:])["qdd"].dtype)
    gradients = library.gradients(lambda *given: f(*given)["qdd"].sum(), *single)
    assert all("float32" in str(x.dtype) for x in gradients)
    assert_close(f(*single)["qdd"], f(*(library.array(np.asarray(x)) for x in single))["qdd"], SINGLE)


@pytest.mark.parametrize("name", ["chain", "floating"])
def test_it_computes_in_single_precision(library, name):
    """Also the derivatives, those by a quaternion among them."""
    plan = planned(name)
    solver, state = plan.solver("numpy"), states_of(plan.system)
    f, exact = library.function(solver, dtype="float32"), library.function(solver)
    single = [library.array(x, "float32") for x in state]
    doubles = [library.array(np.asarray(x)) for x in single]
    found, expected = f(*single)["qdd"], exact(*doubles)["qdd"]
    assert "float32" in str(found.dtype)
    size = float(abs(expected).max())
    assert 0 < float(abs(found - expected).max()) < 1e-4 * size
    of = (library.gradients(lambda *given, g=g: g(*given)["qdd"].sum(), *x) for g, x in ((f, single), (exact, doubles)))
    for own, other in zip(*of, strict=True):
        assert "float32" in str(own.dtype)
        assert float(abs(own - other).max()) < 1e-4 * float(abs(other).max())


def test_functions_of_a_robot(library):
    tree = nd.autotree(3)
    f = library.function(nd.compile(nd.rnea, tree, inputs=["q", "qd", "qdd", "fx"], backend="numpy"))
    rng = np.random.default_rng(0)
    q, qd, qdd, fx = rng.normal(size=(3, 5, 3)), *rng.normal(size=(2, 3)), rng.normal(size=(3, 6))
    found = f(*map(library.array, (q, qd, qdd, fx)))
    assert_close(found[2, 4], nd.rnea(tree, q[2, 4], qd, qdd, fx), ROUNDING)
    (by_fx,) = library.gradients(lambda fx: f(*map(library.array, (q[0, 0], qd, qdd)), fx).sum(), library.array(fx))
    moved = [oracles.derivative(lambda t, e=e: nd.rnea(tree, q[0, 0], qd, qdd, fx + t * e).sum()) for e in units(3, 6)]
    assert_close(by_fx, np.reshape(moved, (3, 6)), ROUNDING)
    several = library.function(nd.compile(nd.coriolis, tree, backend="numpy"))(library.array(q), library.array(qd))
    assert several._fields == ("M", "Mdot", "C")
    assert_close(several.C[1, 2], nd.coriolis(tree, q[1, 2], qd).C, ROUNDING)


def units(*shape):
    return np.eye(np.prod(shape)).reshape(-1, *shape)


@needs_compiler
def test_native_code_in_threads(library):
    plan = planned("chain")
    solver = plan.solver("native")
    f, state = library.function(solver, threads=2), states_of(plan.system, 300)
    assert_close(f(*map(library.array, state))["qdd"], solver.solve_batch(*state).qdd, EXACT)
    (by_y,) = library.gradients(lambda y: f(*map(library.array, state[:2]), y)["qdd"].sum(), library.array(state[2]))
    assert_close(by_y, plan.derivative("y").batch(*state).dqdd_dy.sum(axis=1), ROUNDING)


def test_second_derivatives_are_refused(library):
    plan = planned("chain")
    f, (q, qd, y) = library.function(plan.solver("numpy")), [library.array(x[0]) for x in states_of(plan.system)]
    with pytest.raises(InputError, match="first derivatives only"):
        library.second(lambda q: f(q, qd, y)["qdd"].sum(), q)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda a, q, qd, y: (a(np.zeros(7)), qd, y),
            r"q is .*float64 \(7,\) on .*, expected floating point numbers \(..., 3\) on the CPU",
        ),
        (lambda a, q, qd, y: (q, a(np.zeros((5, 3))), y), r"leading axes \(4,\), \(5,\), \(4,\) of q, qd, y do not"),
        (lambda a, q, qd, y: (a(np.zeros(3), "int32"), qd, y), r"q is .*int32 \(3,\) on .*, expected floating point"),
        (lambda a, q, qd, y: (q, qd), r"the inputs are q, qd, y; given: 2 by position"),
        (lambda a, q, qd, y: (q, qd, y * np.nan), r"Y\[0, 0\] .*is nan"),
    ],
)
def test_wrong_inputs_are_refused(library, change, message):
    plan = planned("chain")
    given = [library.array(x) for x in states_of(plan.system)]
    with pytest.raises(InputError, match=message):
        library.function(plan.solver("numpy"))(*change(library.array, *given))


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_a_library_that_is_missing_is_named(name, monkeypatch):
    solver = planned("chain").solver("numpy")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'nori_dyn\[{name}\]'"):
        getattr(solver, name)()


def test_torch_checks_gradients_and_transforms_them():
    torch = Torch().xp
    plan = planned("floating")
    f, (Q, Qd, Y) = plan.solver("numpy").torch(), map(Torch().array, states_of(plan.system))
    given = [x.requires_grad_() for x in (Q, Qd, Y)]
    one = [x[:1].detach().requires_grad_() for x in given]
    assert torch.autograd.gradcheck(lambda *state: tuple(f(*state).values()), one, eps=1e-5, atol=1e-8, rtol=1e-7)
    each = torch.func.vmap(torch.func.grad(lambda q, y: f(q, Qd[0], y)["qdd"].sum()))(Q, Y)
    (expected,) = torch.autograd.grad(f(Q, Qd[0], Y)["qdd"].sum(), Q)
    assert_close(each.detach(), expected, ROUNDING)
    jacobian = torch.func.jacrev(lambda y: f(Q[0], Qd[0], y)["qdd"])(Y[0])
    assert_close(
        jacobian.detach(),
        plan.derivative("y", backend="numpy")(*(x[0].detach().numpy() for x in given)).dqdd_dy,
        ROUNDING,
    )


def test_torch_elsewhere_is_refused():
    torch = Torch().xp
    plan = planned("chain")
    q, qd, y = map(Torch().array, states_of(plan.system))
    with pytest.raises(InputError, match=r"qd is .* on meta, expected .* on the CPU"):
        plan.solver("numpy").torch()(q, torch.empty_like(qd, device="meta"), y)


def test_jax_transforms():
    jax, plan = Jax().jax, planned("floating")
    f, state = plan.solver("numpy").jax(), states_of(plan.system)
    Q, Qd, Y = map(Jax().array, state)
    expected = plan.solver("numpy").solve_batch(*state).qdd
    assert_close(jax.jit(f)(Q, Qd, Y)["qdd"], expected, EXACT)
    assert_close(jax.vmap(f)(Q, Qd, Y)["qdd"], expected, EXACT)
    with pytest.raises(InputError, match=r"q is float64 \(4, 3\) on cpu, expected"):
        jax.jit(f)(Q[:, :3], Qd, Y)
    assert_close(jax.lax.map(lambda x: f(*x)["qdd"], (Q, Qd, Y)), expected, EXACT)
    spread = plan.solver("numpy").solve_batch(state[0], np.tile(state[1][0], (4, 1)), state[2]).qdd
    assert_close(jax.vmap(f, in_axes=(1, None, 0))(Q.T, Qd[0], Y)["qdd"], spread, EXACT)
    by_y = plan.derivative("y", backend="numpy").batch(*state).dqdd_dy
    for made in (jax.jacfwd, jax.jacrev):
        found = jax.jit(jax.vmap(made(lambda y, q, qd: f(q, qd, y)["qdd"])))(Y, Q, Qd)
        assert_close(found, by_y, ROUNDING)


@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=needs_compiler)])
def test_states_that_are_not_trusted_are_factorised_again(library, backend):
    plan = planned("chain")
    solver, state = plan.solver(backend), states_of(plan.system)
    solver.kernel.limits[: len(solver.kernel.pivot_names)] = np.inf
    estimate = solver.solve_batch(*state)
    assert estimate.fell_back.all()
    assert_close(library.function(solver)(*map(library.array, state))["qdd"], estimate.qdd, EXACT)


def test_errors_leave_compiled_code_of_jax():
    jax, plan = Jax().jax, planned("chain")
    f, (Q, Qd, Y) = plan.solver("numpy").jax(), map(Jax().array, states_of(plan.system))
    Y = Y.at[1, 0].set(np.nan)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"InputError: Y\[1, 0\] .*is nan"):
        jax.block_until_ready(jax.jit(f)(Q, Qd, Y))
    for run in (jax.vmap(f), jax.grad(lambda *state: f(*state)["qdd"].sum())):
        with pytest.raises(InputError, match=r"Y\[1, 0\] .*is nan"):
            run(Q, Qd, Y)


def test_compiled_code_of_jax_keeps_what_it_calls():
    jax, plan = Jax().jax, planned("chain")
    solver, state = plan.solver("numpy"), states_of(plan.system)
    expected, alive = solver.solve_batch(*state).qdd, weakref.ref(solver)
    run = jax.jit(solver.jax()).lower(*state).compile()
    del solver
    gc.collect()
    assert_close(run(*state)["qdd"], expected, EXACT)
    del run
    gc.collect()
    assert alive() is None


def test_jax_calls_back_where_it_cannot_lend_its_arrays(monkeypatch):
    jax, plan = Jax().jax, planned("chain")
    solver, state = plan.solver("numpy"), states_of(plan.system)
    of_y = lambda y: solver.jax()(*state[:2], y)["qdd"]  # noqa: E731
    found = jax.jit(of_y)(state[2]), jax.jacrev(of_y)(state[2])
    monkeypatch.setitem(sys.modules, "jax.experimental.buffer_callback", None)
    assert "buffer" not in jax.jit(solver.jax()).lower(*state).as_text()
    assert_close(of_y(state[2]), found[0], EXACT)
    assert_close(jax.jacrev(of_y)(state[2]), found[1], EXACT)
    with pytest.raises(InputError, match="is nan"):
        of_y(state[2] * np.nan)


def test_jax_without_doubles_is_refused_unless_floats_are_asked_for():
    jax = Jax().jax
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(InputError, match="jax_enable_x64"):
        planned("chain").solver("numpy").jax()
    plan = planned("chain")
    state = [x.astype(np.float32) for x in states_of(plan.system)]
    found = jax.jit(plan.solver("numpy").jax(dtype="float32"))(*state)["qdd"]
    assert_close(found, plan.solver("numpy").solve_batch(*state, dtype="float32").qdd, EXACT)
    jax.config.update("jax_enable_x64", True)
