"""The planner: what it makes, the outputs asked of it, what it refuses and why; the rules by which it counts."""

import pytest

import nori_dyn as nd
from nori_dyn.algebra.counting import Cost, expression_cost
from nori_dyn.algebra.expressions import Graph
from nori_dyn.errors import MissingExtraError, PlanError, SingularSystemError, SystemShapeError
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.planning import diagnosis
from nori_dyn.planning.cost import RULES, engine_rule, factorisation_cost, substitution_cost
from nori_dyn.planning.elimination import FIELD, Elimination
from nori_dyn.planning.orderings import registry
from nori_dyn.planning.orderings import umfpack as umfpack_ordering
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.planning.outputs import Output, output_columns, resolve_outputs
from nori_dyn.planning.planner import make_plan
from nori_dyn.program.kernel.registry import kernel_of
from nori_dyn.system.builder import System
from nori_dyn.system.variables import KINDS
from tests.matrices import symbolic_matrix
from tests.systems import ACCELERATIONS, FORWARD, INVERSE, TORQUES, WRENCHES, sensor_set
from tests.trees import TREES

TREE = TREES["autotree_chain"]


def test_a_plan_holds_the_permutations_and_the_counts():
    system = System(TREE, FORWARD)
    plan = make_plan(system)
    n = system.shape[1]
    for permutation in (plan.row_permutation, plan.column_permutation):
        assert sorted(permutation.tolist()) == list(range(n))
        with pytest.raises(ValueError, match="read-only"):
            permutation[0] = 1
    assert plan.pattern.shape == (n, n)
    assert plan.pattern.dtype == bool
    assert sorted(plan.program_rows.tolist()) == sorted(plan.program_columns.tolist())
    assert len(plan.program_rows) == plan.refined.symbolic.shape[0] > n
    assert plan.cost == expression_cost(plan.solved.unknowns[: plan.system.shape[1]])
    assert plan.stability == plan.tried[0].stability
    work = plan.elimination()
    assert (work.fill_in, work.nonzeros) == (plan.tried[0].fill_in, plan.tried[0].nonzeros)
    assert f"'{plan.ordering}'" in repr(plan)
    assert str(plan.cost.total) in repr(plan)


def test_stages_are_told_and_effort_is_spent_on_a_search_that_never_makes_it_worse():
    stages: list[str] = []
    make_plan(System(TREE, INVERSE), ordering="markowitz", progress=lambda stage, done=None: stages.append(stage))
    assert stages == ["worst-case sparsity", "ordering markowitz"]
    told: list[float | None] = []
    system = System(TREE, FORWARD)
    searched = make_plan(system, effort=20_000, progress=lambda stage, done=None: told.append(done))
    plain = make_plan(system)
    shares = [done for done in told if done is not None]
    of_each = [k for k, done in enumerate(shares) if done == 0]
    assert len(of_each) == len(plain.tried)  # each ordering has its part of it
    for first, last in zip(of_each, [*of_each[1:], None], strict=True):
        assert len(shares[first:last]) > 2
        assert shares[first:last] == sorted(shares[first:last])
        assert shares[first:last][-1] < 1
    assert {one.ordering for one in searched.tried} == {one.ordering for one in plain.tried}
    assert searched.tried[0].burden <= plain.tried[0].burden
    assert searched.cost == expression_cost(searched.solved.unknowns[: searched.system.shape[1]])


def test_effort_ends_at_once_where_nothing_is_to_be_won():
    told: list[float | None] = []
    make_plan(System(TREE, INVERSE), effort=10**12, progress=lambda stage, done=None: told.append(done))
    assert set(told) == {None}


def refused(system, *parts):
    """Check that a system has too many or too few rows, and that the error says so."""
    with pytest.raises(SystemShapeError) as raised:
        make_plan(system)
    for part in parts:
        assert part in str(raised.value)
    return raised.value


def test_too_few_rows_and_too_many_exact_ones_are_counted_by_sensor():
    poor = sensor_set(WRENCHES, {**TORQUES, "joints": ["joint1", "joint2"]}, name="poor")
    counts = ("dynamics 65", "external_wrench 30", "joint_torque 2", "3 too few")
    error = refused(System(TREE, poor), "'poor'", "100 unknowns and 97 rows", *counts, "add sensors")
    assert (error.n_rows, error.n_variables) == (97, 100)
    soft = {"type": "link_acceleration", "links": "all", "sigma": 0.1}
    rich = sensor_set(WRENCHES, ACCELERATIONS, TORQUES, soft, name="rich")
    counts = ("joint_acceleration 5", "joint_torque 5", "5 too many that hold exactly", "`sigma`")
    refused(System(TREE, rich), "100 unknowns and 105 rows", *counts)
    refused(System(TREE, sensor_set()), "65 rows")


@pytest.mark.parametrize("ordering", ["auto", *registry.ORDERINGS])
def test_a_massless_leaf_is_the_cause_of_singular_forward_dynamics(ordering):
    if ordering == "umfpack":
        pytest.importorskip("scikits.umfpack", reason="the extra 'umfpack' is not installed")
    with pytest.raises(SingularSystemError, match="singular at every configuration") as raised:
        make_plan(System(TREES["massless"], FORWARD), ordering=ordering)
    message = str(raised.value)
    assert "Cause: link 'link4' and all that it carries have no inertia" in message
    assert "'link2'" not in message  # it carries a link that has one
    assert "rank is 79 of 80" in message
    assert "qdd:joint4" in raised.value.undetermined


def test_inverse_dynamics_of_any_tree_is_free_of_fill_in_massless_leaves_included():
    for tree in (TREES["massless"], random_tree(8, 0), random_tree(8, 1)):
        assert make_plan(System(tree, INVERSE)).tried[0].fill_in == 0


def test_sensors_that_do_not_see_a_component_are_singular():
    """Two torques in place of two couples: those about z follow, but no torque about z tells those about x."""
    told = {**WRENCHES, "components": ["mx", "my", "fx", "fy", "fz"]}
    plan = make_plan(System(autotree(2), sensor_set(ACCELERATIONS, TORQUES, told)))
    assert plan.elimination().solution()
    wrenches = {**WRENCHES, "components": ["my", "mz", "fx", "fy", "fz"]}
    system = System(autotree(2), sensor_set(ACCELERATIONS, TORQUES, wrenches, name="blind"))
    with pytest.raises(SingularSystemError, match=r"'blind'.*Not determined: .*Replace a redundant sensor") as raised:
        make_plan(system)
    assert {"fx:link1.mx", "fx:link2.mx"} <= set(raised.value.undetermined)
    assert "of 40" in str(raised.value)
    assert "Cause" not in str(raised.value)


def test_large_singular_systems_are_not_made_dense(monkeypatch):
    monkeypatch.setattr(diagnosis, "MAX_DENSE", 10)
    with pytest.raises(SingularSystemError) as raised:
        make_plan(System(TREES["massless"], FORWARD))
    assert raised.value.undetermined == ()
    assert "rank is 79 of 80" in str(raised.value)


def test_without_umfpack_auto_does_without_and_asking_for_it_names_the_extra(monkeypatch):
    monkeypatch.setattr(umfpack_ordering, "has_umfpack", lambda: False)
    monkeypatch.setattr(registry, "has_umfpack", lambda: False)
    plan = make_plan(System(TREE, FORWARD))
    assert {candidate.ordering for candidate in plan.tried} == {"recursive", "markowitz", "superlu"}
    with pytest.raises(MissingExtraError, match=r"pip install 'nori_dyn\[umfpack\]'") as raised:
        make_plan(System(TREE, INVERSE), ordering="umfpack")
    assert raised.value.extra == "umfpack"
    with pytest.raises(MissingExtraError, match="umfpack") as raised:
        kernel_of("umfpack", plan)
    assert raised.value.extra == "umfpack"


@pytest.fixture(scope="module")
def system() -> System:
    return System(TREES["two_roots"], INVERSE)


def named(system, output):
    """The names of the columns of an output."""
    return [system.variable_names[k] for k in output_columns(system, resolve_outputs(system, (output,)))]


def test_none_stands_for_all_and_a_kind_for_all_bodies(system):
    outputs = resolve_outputs(system, None)
    assert [output.name for output in outputs] == list(KINDS)
    assert sorted(set(output_columns(system, outputs).tolist())) == list(range(system.shape[1]))
    for kind in KINDS:
        assert named(system, kind) == [name for name in system.variable_names if name.startswith(f"{kind}:")]
    assert resolve_outputs(system, "tau") == resolve_outputs(system, ("tau",))


def test_a_frame_on_a_link_is_the_link_with_a_transform(system):
    (output,) = resolve_outputs(system, ("fx:tool",))
    frame = system.tree.frame("tool")
    assert output == Output("fx:tool", "fx", frame.link, frame.X, "tool")
    assert named(system, "fx:tool") == named(system, f"fx:{system.tree.names[frame.link]}")


def test_unknown_names_and_no_outputs_are_refused(system):
    for name, message in (
        ("tau:joint11", "unknown output 'tau:joint11'.*Did you mean 'tau:joint1'"),
        ("tau:link1", "unknown output 'tau:link1'"),
        ("fx:joint1", "unknown output 'fx:joint1'"),
        ("fx:wall", "'wall' is fixed to the world"),
        ("", "unknown output ''"),
    ):
        with pytest.raises(PlanError, match=message):
            resolve_outputs(system, (name,))
    with pytest.raises(PlanError, match="outputs is empty"):
        resolve_outputs(system, ())


def test_a_plan_as_text():
    plan = nd.plan(nd.System(nd.autotree(6, 2), nd.sensors("forward_dynamics")), ["qdd", "fx:link6"], cache=False)
    lines = str(plan).splitlines()
    said = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[: lines.index("")]}
    assert said["robot"] == f"{plan.system.tree.name}: 6 links, 6 freedoms"
    assert said["sensors"] == "forward_dynamics: 6 readings per tick"
    assert said["system"].startswith(f"120 equations for 120 unknowns, {plan.pattern.nnz:,} nonzeros")
    assert said["outputs"] == "qdd, fx:link6"
    (chosen, *_) = plan.tried
    own = "" if chosen.ordering == plan.ordering else f"; P and Q of D: {chosen.ordering}"
    assert said["ordering"] == f"{plan.ordering}, in the refined system{own}"
    named = nd.plan(plan.system, ["qdd"], ordering="markowitz", cache=False)
    assert "markowitz, of D itself: P and Q are the program's" in str(named)
    assert said["operations"].startswith(f"{plan.cost.total:,} per tick")
    assert "stable: over" in said["stability"]
    rows = [line.split() for line in lines]
    for k, candidate in enumerate(plan.tried):
        figures = (candidate.fill_in, candidate.published.total, candidate.cost.total)
        mark = ["*"] if k == 0 else []
        row = next(row for row in rows if row[: len(mark) + 1] == [*mark, candidate.ordering])
        assert row[len(mark) + 1 : len(mark) + 4] == [f"{figure:,}" for figure in figures]
        assert row[-2] == f"{candidate.program.total:,}"
    assert ("UMFPACK is not installed" in str(plan)) != has_umfpack()


def eliminated(rows, b=()) -> Elimination:
    n = len(rows)
    return Elimination(symbolic_matrix(rows, b), FIELD).run(range(n), range(n))


FULL = [["x0", "x1", "x2"], ["x3", "x4", "x5"], ["x6", "x7", "x8"]]
FULL_B = [["y0"], ["y1"], ["y2"]]


def test_full_matrix_costs_what_the_textbook_says():
    """n = 3: 5 products with reciprocals of 2 pivots, 4 + 1 updates; then n (n - 1) + n in the substitutions."""
    work = eliminated(FULL, FULL_B)
    assert factorisation_cost(work) == Cost(additions=5, multiplications=3 + 5, divisions=2)
    assert substitution_cost(work) == Cost(additions=6, multiplications=6 + 3, divisions=1)
    assert engine_rule(work) == Cost(11, 17, 3)
    assert RULES["textbook"](work) == Cost(5 + 6, 5 + 6, 3 + 3)
    assert RULES["textbook_without_units"](work) == Cost(11, 11, 6)


def test_fill_in_is_a_product_and_no_addition():
    work = eliminated([["x0", "x1"], ["x2", 0]])
    assert work.fill_in == 1
    assert factorisation_cost(work) == Cost(additions=0, multiplications=1 + 1, divisions=1)
    assert RULES["textbook"](work).additions == 1 + 2


def test_ones_cost_nothing():
    """Pivot -1: no division; multiplier x1 by -1: l = -x1 is one product saved; u = 1 saves the update's product."""
    work = eliminated([[-1, 1], ["x1", "x2"]])
    assert factorisation_cost(work) == Cost(additions=1, multiplications=0, divisions=0)
    triangular = eliminated([[1, 0, 0], ["x0", -1, 0], [1, "x1", 1]], [["y0"], ["y1"], [0]])
    assert factorisation_cost(triangular) == Cost()
    # forward: x0 y0, 1 y0 into a zero, x1 times a sum; two additions, and one into what the other made nonzero
    assert substitution_cost(triangular) == Cost(additions=2, multiplications=2, divisions=0)
    assert RULES["textbook_without_units"](triangular).multiplications == 2
    assert RULES["textbook_without_units"](triangular).divisions == 0


def test_zeros_on_the_right_hand_side_and_unknowns_that_are_zero_cost_nothing():
    work = eliminated(FULL)
    assert substitution_cost(work) == Cost()
    assert engine_rule(work) == factorisation_cost(work)
    work = eliminated([["x0", "x1"], [0, "x2"]], [["y0"], [0]])
    assert substitution_cost(work) == Cost(additions=0, multiplications=1, divisions=1)


def test_published_rule_counts_the_elementwise_product():
    """Full 3 x 3: columns of L and rows of U share 2, then 1 places; what is counted as done is less than half."""
    work = eliminated(FULL, FULL_B)
    substitutions = Cost(additions=3 + 6 + 3, multiplications=6 + 2 * 3)
    assert RULES["published_fig2"](work) == Cost(additions=3, multiplications=3 + 3) + substitutions
    # fig. 1 subtracts for both 1 and -1 each entry that is not that: 2 * 2 a shared place when none is a unit
    assert RULES["published_fig1"](work) == Cost(additions=3, multiplications=3 + 3 - 4 * 3) + substitutions


def test_a_diagonal_needs_no_factorisation():
    work = eliminated([["x0", 0], [0, 1]], [["y0"], ["y1"]])
    assert {name: rule(work) for name, rule in RULES.items()} == {
        "engine": Cost(0, 1, 1),
        "textbook": Cost(0, 0, 2),
        "textbook_without_units": Cost(0, 0, 1),
        "published_fig1": Cost(2 + 2, 4, 0),
        "published_fig2": Cost(2 + 2, 4, 0),
    }


def test_expressions_are_counted_once_each_and_costs_add_up():
    assert Cost(1, 2, 3) + Cost(10, 20, 30) == Cost(11, 22, 33)
    assert (Cost(1, 2, 3).total, Cost()) == (6, Cost(0, 0, 0))
    graph = Graph(0)
    x, y = graph.input("x"), graph.input("y")
    shared = x * y
    s, c = graph.sin_cos(x)
    outputs = (shared + s, shared - c, -shared, graph.reciprocal(shared), y)
    assert expression_cost(outputs) == Cost(additions=3, multiplications=1, divisions=1)
    assert expression_cost(()) == Cost()
    assert expression_cost((x, graph.expr(2.0))) == Cost()
