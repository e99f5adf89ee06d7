"""The planner: what it makes, and what it refuses and why."""

from __future__ import annotations

import pytest

from nori_dyn.algebra.counting import expression_cost
from nori_dyn.errors import MissingExtraError, PlanError, SingularSystemError, SystemShapeError
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.planning import diagnosis
from nori_dyn.planning.orderings import registry
from nori_dyn.planning.orderings import umfpack as umfpack_ordering
from nori_dyn.planning.planner import make_plan
from nori_dyn.program.backends.registry import make_backend
from nori_dyn.system.builder import System
from tests.systems import ACCELERATIONS, FORWARD, INVERSE, TORQUES, WRENCHES, sensor_set
from tests.trees import TREES

TREE = TREES["autotree_chain"]


@pytest.fixture
def no_umfpack(monkeypatch):
    """Let scikit-umfpack be missing."""
    monkeypatch.setattr(umfpack_ordering, "has_umfpack", lambda: False)
    monkeypatch.setattr(registry, "has_umfpack", lambda: False)


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


def test_stages_are_told_as_they_begin():
    stages: list[str] = []
    make_plan(System(TREE, INVERSE), ordering="markowitz", progress=lambda stage, done=None: stages.append(stage))
    assert stages == ["worst-case sparsity", "ordering markowitz"]


def test_effort_is_spent_on_a_search_that_never_makes_it_worse():
    told: list[float] = []

    def progress(stage: str, done: float | None = None) -> None:
        if done is not None:
            told.append(done)

    system = System(TREE, FORWARD)
    searched = make_plan(system, ordering="recursive", effort=0.5, progress=progress)
    plain = make_plan(system, ordering="recursive")
    assert told == sorted(told)
    assert told[0] < 0.2
    assert told[-1] <= 1
    assert searched.tried[0].burden <= plain.tried[0].burden
    assert searched.cost == expression_cost(searched.solved.unknowns[: searched.system.shape[1]])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_inverse_dynamics_of_any_tree_is_free_of_fill_in(seed):
    plan = make_plan(System(random_tree(12, seed), INVERSE), seed=seed)
    assert plan.tried[0].fill_in == 0


def test_too_few_rows_are_counted_by_sensor():
    system = System(TREE, sensor_set(WRENCHES, {"type": "joint_torque", "joints": ["joint1", "joint2"]}, name="poor"))
    with pytest.raises(SystemShapeError) as raised:
        make_plan(system)
    assert (raised.value.n_rows, raised.value.n_variables) == (97, 100)
    message = str(raised.value)
    for part in (
        "'poor'",
        "100 unknowns and 97 rows",
        "dynamics 65",
        "external_wrench 30",
        "joint_torque 2",
        "3 too few",
    ):
        assert part in message
    assert "add sensors" in message


def test_too_many_exact_rows_are_counted_by_sensor():
    soft = {"type": "link_acceleration", "links": "all", "sigma": 0.1}
    system = System(TREE, sensor_set(WRENCHES, ACCELERATIONS, TORQUES, soft, name="rich"))
    with pytest.raises(SystemShapeError, match="100 unknowns and 105 rows") as raised:
        make_plan(system)
    message = str(raised.value)
    for part in ("joint_acceleration 5", "joint_torque 5", "5 too many that hold exactly", "`sigma`"):
        assert part in message


def test_no_sensors_at_all():
    with pytest.raises(SystemShapeError, match="65 rows"):
        make_plan(System(TREE, sensor_set()))


@pytest.mark.parametrize("ordering", ["auto", "recursive", "markowitz", "superlu", "umfpack"])
def test_a_massless_leaf_is_the_cause_of_singular_forward_dynamics(ordering):
    if ordering == "umfpack":
        pytest.importorskip("scikits.umfpack", reason="the extra 'umfpack' is not installed")
    tree = TREES["massless"]
    with pytest.raises(SingularSystemError, match="singular at every configuration") as raised:
        make_plan(System(tree, FORWARD), ordering=ordering)
    message = str(raised.value)
    assert "Cause: link 'link4' and all that it carries have no inertia" in message
    assert "'link2'" not in message  # it carries a link that has one
    assert "rank is 79 of 80" in message
    assert "qdd:joint4" in raised.value.undetermined


def test_a_massless_leaf_is_fine_for_inverse_dynamics():
    tree = TREES["massless"]
    plan = make_plan(System(tree, INVERSE))
    assert plan.tried[0].fill_in == 0


def test_sensors_that_do_not_see_a_component_are_singular():
    """Two torques in place of two couples about x: no torque about z tells them."""
    wrenches = {"type": "external_wrench", "links": "all", "components": ["my", "mz", "fx", "fy", "fz"]}
    system = System(autotree(2), sensor_set(ACCELERATIONS, TORQUES, wrenches, name="blind"))
    with pytest.raises(SingularSystemError, match=r"'blind'.*Not determined: .*Replace a sensor") as raised:
        make_plan(system)
    assert {"fx:link1.mx", "fx:link2.mx"} <= set(raised.value.undetermined)
    assert "of 40" in str(raised.value)
    assert "Cause" not in str(raised.value)


def test_sensors_need_not_be_a_known_problem():
    """Two torques in place of two couples about z: they follow."""
    wrenches = {"type": "external_wrench", "links": "all", "components": ["mx", "my", "fx", "fy", "fz"]}
    plan = make_plan(System(autotree(2), sensor_set(ACCELERATIONS, TORQUES, wrenches)))
    assert plan.elimination().solution()


def test_large_singular_systems_are_not_made_dense(monkeypatch):
    monkeypatch.setattr(diagnosis, "MAX_DENSE", 10)
    with pytest.raises(SingularSystemError) as raised:
        make_plan(System(TREES["massless"], FORWARD))
    assert raised.value.undetermined == ()
    assert "rank is 79 of 80" in str(raised.value)


def test_unknown_ordering_is_refused():
    with pytest.raises(PlanError, match=r"unknown ordering 'umfpak'.*Did you mean 'umfpack'"):
        make_plan(System(TREE, INVERSE), ordering="umfpak")


def test_unknown_output_is_refused():
    with pytest.raises(PlanError, match=r"unknown output 'tau:joint9'.*Did you mean 'tau:joint"):
        make_plan(System(TREE, INVERSE), outputs=("tau:joint9",))


@pytest.mark.usefixtures("no_umfpack")
class TestWithoutUmfpack:
    def test_asking_for_it_names_the_extra(self):
        with pytest.raises(MissingExtraError, match=r"pip install 'nori_dyn\[umfpack\]'") as raised:
            make_plan(System(TREE, INVERSE), ordering="umfpack")
        assert raised.value.extra == "umfpack"

    def test_auto_does_without(self):
        plan = make_plan(System(TREE, FORWARD))
        assert {candidate.ordering for candidate in plan.tried} == {"recursive", "markowitz", "superlu"}

    def test_its_backend_names_the_extra(self):
        plan = make_plan(System(TREE, INVERSE))
        with pytest.raises(MissingExtraError, match="umfpack") as raised:
            make_backend("umfpack", plan)
        assert raised.value.extra == "umfpack"


def test_cost_grows_with_the_number_of_links():
    """Linear growth, no fill-in for inverse dynamics; tests/unit/test_imports.py plans a chain of 100."""
    short, long = (make_plan(System(autotree(n, 1, 1.5, 0.9), FORWARD)) for n in (20, 40))
    assert long.system.shape == (800, 800)
    assert long.cost.total < 2.2 * short.cost.total
    assert long.tried[0].fill_in < 2.2 * short.tried[0].fill_in
    inverse = make_plan(System(autotree(40, 1, 1.5, 0.9), INVERSE))
    assert inverse.tried[0].fill_in == 0
    assert inverse.pattern.nnz == inverse.tried[0].nonzeros
