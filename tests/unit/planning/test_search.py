"""The search in the refined system says whose order its program has."""

import pytest

from nori_dyn.descriptions.sensor_configs import load_sensors
from nori_dyn.model.synthetic import autotree
from nori_dyn.planning.lifting import lifted_classes
from nori_dyn.planning.orderings.greedy import greedy
from nori_dyn.planning.orderings.problem import Ordering, ordering_problem
from nori_dyn.planning.orderings.registry import ORDERINGS
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.planning.outputs import output_columns, resolve_outputs
from nori_dyn.planning.planner import make_plan
from nori_dyn.planning.search import Search
from nori_dyn.system.builder import System
from nori_dyn.system.refined import refine
from tests.systems import FORWARD, hybrid
from tests.trees import TREES


def lifted_from(plan, name):
    """Whether a plan's program can come from an ordering: to the root, or as it has D."""
    system = plan.system
    refined = refine(system, plan.seed, plan.regrouped)
    problem = ordering_problem(system, refined.symbolic, plan.seed, definitions=refined.definitions)
    given = ordering_problem(system, refined.original, plan.seed)
    found = []
    for to_root in (True, False) if name == "recursive" else (False,):
        work = greedy(problem, lifted_classes(ORDERINGS[name](given), system, refined, to_root))
        found.append(Ordering.of(work).columns.tolist())
    return plan.program_columns.tolist() in found


def test_of_the_recursions_where_another_ordering_suits_D_better():
    """The chain of the paper's code: P and Q are another's, and the program's order is not lifted from it."""
    plan = make_plan(System(autotree(5, skew=1.5, taper=0.95), load_sensors("nori_code")), ["tau"])
    assert plan.ordering == "recursive"
    own = plan.tried[0].ordering
    assert own != "recursive"
    assert {candidate.program_ordering for candidate in plan.tried} == {"recursive"}
    assert lifted_from(plan, "recursive")
    assert not lifted_from(plan, own)
    assert f"recursive, in the refined system; P and Q of D: {own}" in " ".join(str(plan).split())


@pytest.mark.skipif(not has_umfpack(), reason="the extra 'umfpack' is not installed")
def test_of_another_ordering_where_that_leads_to_less():
    plan = make_plan(System(TREES["two_roots"], hybrid(TREES["two_roots"], seed=4)))
    assert plan.ordering == plan.tried[0].ordering == "umfpack"
    assert lifted_from(plan, "umfpack")
    assert not lifted_from(plan, "recursive")
    assert plan.cost.total < min(candidate.program.total for candidate in plan.tried[1:])


def test_more_effort_is_a_longer_search_of_the_same_orders():
    """What a smaller effort finds, a larger one finds as well."""
    system = System(TREES["fixed_joints"], FORWARD)
    columns = output_columns(system, resolve_outputs(system, ["qdd"]))

    def found(effort):
        search = Search(system, columns, seed=0)
        return [(one.cost, one.order.columns.tolist()) for one in search.restarts("recursive", effort, lambda *_: None)]

    short, long = found(2_000), found(2_500)
    assert len(short) > 0
    assert long[: len(short)] == short
