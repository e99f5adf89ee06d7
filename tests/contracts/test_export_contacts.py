"""The exported plans of contact states solve what the switching solver solves."""

from functools import lru_cache
from itertools import product

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import PlanError
from nori_dyn.export.files import c_export
from tests.compilers import needs_compiler
from tests.contracts.test_export import INPUT_NOT_FINITE, NEGATIVE_WEIGHT, OK, UNPLANNED_CONTACTS
from tests.exported import Exported, listed, needs_cpp
from tests.tolerances import SAME_PROGRAM, assert_close

pytestmark = needs_compiler

TREE = nd.autotree(3, branching=2, skew=0.7)
LEAVES = {"left": "link2", "right.foot": "link3"}
FREE = {"type": "external_wrench", "links": {"except": list(LEAVES.values())}, "value": 0}


def walker(closed: dict, *measurements: dict) -> nd.SensorSet:
    """Sensors that know the motion; while a contact is open, no wrench is on its leaf."""
    contacts = {
        name: {
            "closed": [{"type": "external_wrench", "links": leaf, **closed}],
            "open": [{"type": "external_wrench", "links": leaf, "value": 0}],
        }
        for name, leaf in LEAVES.items()
    }
    return nd.SensorSet.from_dict({"name": "walker", "measurements": [*measurements, FREE], "contacts": contacts})


PLANS = {
    "exact": lambda: nd.plan(TREE, walker({}, {"type": "joint_acceleration", "joints": "all"})),
    "weighed": lambda: nd.plan(
        TREE,
        walker(
            {"sigma": 0.5},
            {"type": "joint_acceleration", "joints": "all", "sigma": 0.1},
            {"type": "joint_torque", "joints": "all", "sigma": 0.3},
        ),
        outputs=("tau", "fx:link3"),
        states=[("left",), ("left", "right.foot"), ("right.foot",)],
    ),
}


plan_of = lru_cache(lambda name: PLANS[name]())


@pytest.fixture(scope="module", params=PLANS)
def planned(request):
    return plan_of(request.param)


@pytest.fixture(scope="module")
def made(planned, tmp_path_factory):
    export = c_export(planned.plans, "it", planned.contact_names, "walker")
    return Exported.made(export, tmp_path_factory.mktemp("contacts") / "it")


def mask(state):
    return sum(1 << list(LEAVES).index(contact) for contact in state)


def states(planned, n=6):
    rng = np.random.default_rng(5)
    for _ in range(n):
        weights = rng.uniform(0.5, 5, size=len(planned.weight_names))
        q = TREE.random_configuration(rng)
        yield q, rng.normal(size=TREE.nv), rng.normal(size=len(planned.measurement_names)), weights


def test_it_is_what_the_switching_solver_gives(planned, made):
    solver = planned.solver("numpy")
    for contacts, (q, qd, y, weights) in product(planned.states, states(planned)):
        status, found = made.solve(q, qd, y, weights, contacts=mask(contacts))
        expected = solver.solve(q, qd, y, contacts, weights if len(weights) else None)
        assert status == OK
        for output, values in expected.values.items():
            assert_close(np.reshape(found[output.replace(":", "_")], values.shape), values, SAME_PROGRAM)


def test_states_and_contacts_have_names(planned, made):
    indices = made.export.indices
    assert (indices["IT_CONTACT_left"], indices["IT_CONTACT_right_foot"]) == (1, 2)
    for state in planned.states:
        name = "_".join(state).replace(".", "_") or "no_contact"
        assert indices[f"IT_STATE_{name}"] == mask(state)


def test_what_the_state_does_not_read_may_be_anything(planned, made):
    q, qd, y, weights = next(states(planned))
    reads = set(planned["left"].system.measurement_names)
    assert reads < set(planned.measurement_names)
    expected = made.solve(q, qd, y, weights, contacts=1)[1]
    foreign = np.array([name not in reads for name in planned.measurement_names])
    status, found = made.solve(q, qd, np.where(foreign, np.nan, y), weights, contacts=1)
    assert status == OK
    assert all(np.array_equal(found[field], expected[field]) for field in found)
    broken = y.copy()
    broken[int(np.argmin(foreign))] = np.inf
    assert made.solve(q, qd, broken, weights, contacts=1)[0] == INPUT_NOT_FINITE

    for state in planned.states:  # and so may the weights of other states
        own = set(planned[state].system.weight_names)
        foreign = np.array([name not in own for name in planned.weight_names], dtype=bool)
        assert made.solve(q, qd, y, np.where(foreign, np.nan, weights), contacts=mask(state))[0] == OK, state


def test_a_state_that_is_not_planned_has_a_status(planned, made):
    q, qd, y, weights = next(states(planned))
    for contacts in (4, 7, *([] if () in planned.states else [0])):
        status, found = made.solve(q, qd, y, weights, contacts=contacts)
        assert status == UNPLANNED_CONTACTS, contacts
        assert all(np.isnan(values).all() for values in found.values())


def test_inputs_are_ready_after_one_call(planned, made):
    given = made.new("inputs")
    made.call("init", given)
    assert listed(given, "q") == TREE.neutral_configuration().tolist()
    if planned.weight_names:
        weights, system = dict(zip(planned.weight_names, listed(given, "weights"), strict=True)), planned["left"].system
        assert [weights[name] for name in system.weight_names] == system.weights.tolist()
        given.weights[0] = -1.0
        status = made.call("solve", 1, given, made.new("workspace"), made.new("outputs"))
        assert status == NEGATIVE_WEIGHT


@needs_cpp
def test_the_example_runs_and_so_does_a_program_in_cpp(made, tmp_path):
    assert "us a call" in made.run_example(tmp_path)[-1]
    program = (
        '#include "it.hpp"\n#include <cstdio>\n'
        "int main() {\n"
        "    static nori_dyn::it::Solver solver;\n"
        "    solver.solve_or_throw(IT_CONTACT_left | IT_CONTACT_right_foot);\n"
        "    std::puts(it_status_text(solver.solve(64)));\n"
        "}\n"
    )
    (tmp_path / "cpp").mkdir()
    assert "not planned" in made.run_cpp(program, tmp_path / "cpp")


def test_more_contacts_than_an_enum_has_bits_are_refused():
    planned = plan_of("exact")
    with pytest.raises(PlanError, match="40 contacts: exported code has room for 31"):
        c_export(planned.plans, None, [f"c{k}" for k in range(40)], "many")
