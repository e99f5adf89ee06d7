"""Plan sets: which states are planned, what is singular, their file, the cache of plans, and what `print` says."""

import copy
import json
import pickle

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import (
    PlanError,
    SingularSystemError,
    SystemShapeError,
    UnknownSensorNameError,
    UnplannedStateError,
)
from tests.tolerances import SOLVED, assert_close
from tests.unit.estimation.test_plan import assert_forged_is_refused
from tests.unit.solve.test_switching import TREE, data, planned, sensors, soft

ALL = (("a", "b", "c"), ("a", "b"), ("a", "c"), ("b", "c"), ("a",), ("b",), ("c",), ())


def test_all_states_are_planned_unless_told_which():
    plan_set = planned()
    assert plan_set.states == ALL
    assert len(plan_set) == 8
    assert plan_set.contact_names == ("a", "b", "c")
    for state in ALL:
        assert plan_set[state] is plan_set[state[::-1]] is plan_set.plans[state]
        assert plan_set[state].system.fingerprint == nd.System(TREE, sensors().in_contact(*state)).fingerprint
    assert "no contact: " in repr(plan_set)
    assert f"a, b, c: {plan_set[ALL[0]].cost.total} operations" in repr(plan_set)


def test_a_robot_with_its_sensors_is_planned_in_all_its_states():
    straight, turned = nd.plan(TREE, sensors(), ("tau",)), nd.plan(TREE, sensors(), ("tau",), [("b", "a"), ()])
    assert straight.states == ALL
    assert turned.states == (("a", "b"), ())
    assert dict(turned.states.items()) == turned.plans
    assert turned.states[("b", "a")] is turned.states.first is turned[("a", "b")]
    assert turned.states[()].cost == turned.plans[()].cost
    assert straight.states["c"] is straight.plans[("c",)]
    with pytest.raises(UnplannedStateError, match=r"state 'c' is not planned. Planned: a, b; no contact"):
        turned.states["c"]
    for name in ("cost", "row_permutation", "pattern", "system", "refined", "outputs"):
        with pytest.raises(PlanError, match=rf"`{name}` is of one contact state.*Planned are: a, b; no contact"):
            getattr(turned, name)
    for ask in (turned.monitor, turned.graph, turned.elimination, lambda: turned.derivative("q")):
        with pytest.raises(PlanError, match=r"is of one contact state.*Planned are: a, b; no contact"):
            ask()
    assert copy.deepcopy(turned).states == pickle.loads(pickle.dumps(turned.states)) == turned.states
    assert pickle.loads(pickle.dumps(turned)).states["a", "b"].cost == turned.states["a", "b"].cost
    with pytest.raises(AttributeError, match="no attribute 'price'"):
        turned.price  # noqa: B018 (read for its error)


def test_a_plan_has_one_state():
    system = nd.System(TREE, sensors().in_contact("a"))
    one, same = nd.plan(system, ("tau",)), nd.plan(TREE, sensors().in_contact("a"), ("tau",))
    assert one.states == ((),)
    assert one[()] is one.states[()] is one.states.first is one
    assert len(one) == 1
    assert isinstance(one.solver("numpy"), nd.results.Solver)
    assert (one.contact_names, one.left_out, one.tree) == ((), {}, TREE)
    assert (one.measurement_names, one.weight_names) == (system.measurement_names, system.weight_names)
    assert same.system.fingerprint == one.system.fingerprint
    assert (same.row_permutation == one.row_permutation).all()


def test_states_may_be_named_in_any_order_and_twice():
    named = [("b", "a"), (), ["c"], ("a", "b")]
    for states in (named, named[::-1], named[2:] + named[:2]):
        plan_set = nd.plan(TREE, sensors(), outputs=("tau",), states=states)
        assert plan_set.states == (("a", "b"), ("c",), ())
    with pytest.raises(UnplannedStateError, match=r"state 'a' is not planned. Planned: a, b; c; no contact"):
        plan_set[("a",)]
    with pytest.raises(UnknownSensorNameError, match="unknown contact 'd'"):
        plan_set[("d",)]


def test_the_order_of_the_contacts_in_the_config_does_not_matter():
    content, states = sensors().to_dict(), [("a", "b"), ("c",)]
    content["contacts"] = dict(reversed(content["contacts"].items()))
    straight, turned = (
        nd.plan(TREE, known, outputs=("tau", "fx"), states=states)
        for known in (sensors(), nd.SensorSet.from_dict(content))
    )
    assert turned.contact_names == ("c", "b", "a")
    Q, Qd, Y, which = data(straight, 10)
    one, other = straight.solver("numpy"), turned.solver("numpy")
    for q, qd, y, state in zip(Q, Qd, Y, which, strict=True):
        by_name = dict(zip(straight.measurement_names, y, strict=True))
        expected, found = one.solve(q, qd, by_name, state), other.solve(q, qd, by_name, state)
        assert_close(found.tau, expected.tau, SOLVED)
        assert_close(found.fx, expected.fx, SOLVED)


def test_too_many_contacts_to_plan_all():
    content = sensors().to_dict()
    content["contacts"] = {f"c{k}": {"closed": [], "open": []} for k in range(7)} | content["contacts"]
    many = nd.SensorSet.from_dict(content)
    with pytest.raises(PlanError, match=r"10 contacts, and so 1024 contact states. Name those that occur"):
        nd.plan(TREE, many)
    assert nd.plan(TREE, many, outputs=("tau",), states=[("c3", "a")]).states == (("c3", "a"),)


def test_what_is_no_set_of_states_is_refused():
    with pytest.raises(PlanError, match=r"'inverse_dynamics' have no contacts, and so one state"):
        nd.plan(TREE, nd.sensors("inverse_dynamics"), states=[()])
    with pytest.raises(PlanError, match="states is empty"):
        nd.plan(TREE, sensors(), states=[])
    with pytest.raises(UnknownSensorNameError, match=r"unknown contact 'd' in sensors 'leaves'"):
        nd.plan(TREE, sensors(), states=[("a", "d")])


WRENCH = {"type": "external_wrench", "links": "link4"}
CELL = {"closed": [WRENCH], "open": []}
REPEATS = {"closed": [WRENCH], "open": [{"type": "joint_torque", "joints": "all"}]}


@pytest.mark.parametrize(
    ("leaf", "error", "why"), [(CELL, SystemShapeError, "6 too few"), (REPEATS, SingularSystemError, "Not determined")]
)
def test_a_singular_state_is_named_or_left_out(leaf, error, why):
    known = sensors(a=leaf, names=("a", "b", "c"))
    with pytest.raises(error, match=rf"sensors 'leaves \(b, c\)' on robot .*{why}.*leave_out_singular"):
        nd.plan(TREE, known, outputs=("tau",))
    plan_set = nd.plan(TREE, known, outputs=("tau",), leave_out_singular=True)
    assert plan_set.states == tuple(state for state in ALL if "a" in state)
    assert set(plan_set.left_out) == {state for state in ALL if "a" not in state}
    assert why in plan_set.left_out[()]
    with pytest.raises(UnplannedStateError, match="'b'"):
        plan_set.solver("numpy").switch("b")
    with pytest.raises(PlanError, match=rf"no contact state with a unique solution.*{why}"):
        nd.plan(TREE, known, outputs=("tau",), states=[("b",), ()], leave_out_singular=True)


def test_planning_again_is_a_look_up(own_cache, counted):
    for _ in range(2):
        assert len(list(nd.plan(TREE, soft(0.5), outputs=("tau",)).states.values())) == 2
    assert len(counted) == 2
    nd.plan(nd.System(TREE, soft(0.5).in_contact("a")), outputs=("tau",))
    assert len(counted) == 2
    assert len(list(nd.plan(TREE, soft(0.5), outputs=("tau",), cache=False).states.values())) == 2
    assert len(counted) == 4


def test_a_state_is_planned_when_it_is_first_needed(counted):
    plan_set = nd.plan(TREE, sensors(), outputs=("tau",), cache=False)
    solver = plan_set.solver("numpy")
    assert (plan_set.measurement_names, solver.states) == (solver.measurement_names, ALL)
    assert [system.sensors.name for system, *_ in counted] == ["leaves (a, b, c)"]
    assert "; b, c: planned when needed; " in repr(plan_set)
    for _ in range(2):
        solver.switch(["c", "b"])  # which limbs in each other's place make of the state of "a" and "c"
        assert [system.sensors.name for system, *_ in counted[1:]] == ["leaves (a, c)", "leaves (b, c)"]
    assert f"; b, c: {plan_set['b', 'c'].cost.total} operations; " in repr(plan_set)
    assert nd.plan(TREE, sensors(), ("tau",), ordering="recursive", cache=False).states == ALL
    assert len(counted) == 3 + len(ALL)  # an order by name may find no pivots, which is said at once


def test_what_a_plan_is_does_not_depend_on_the_state_that_is_needed_first():
    states = ("a", "c"), ("b", "c"), ("a",), ("b",)
    one, other = (nd.plan(TREE, sensors(), ("tau",), states=states, cache=False) for _ in range(2))
    forward, backward = {state: one[state] for state in states}, {state: other[state] for state in states[::-1]}
    for state in states:
        np.testing.assert_array_equal(forward[state].program_rows, backward[state].program_rows)
        np.testing.assert_array_equal(forward[state].row_permutation, backward[state].row_permutation)
    assert forward["a", "c"].cost == forward["b", "c"].cost  # limbs in each other's place


@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_saved_is_what_is_loaded(tmp_path, weighted):
    known = soft(0.5) if weighted else sensors(a=CELL)
    one = nd.plan(TREE, known, outputs=("tau", "fx:link5"), leave_out_singular=True)
    one.save(tmp_path / "set")
    other = nd.Plan.load(tmp_path / "set")
    assert (other.states, other.left_out, other.sensors) == (one.states, one.left_out, one.sensors)
    assert other.measurement_names == one.measurement_names
    assert other.weight_names == one.weight_names
    for state in one.states:
        assert other[state].tried == one[state].tried
        np.testing.assert_array_equal(other[state].program_rows, one[state].program_rows)
    Q, Qd, Y, which = data(one, 12)
    found, expected = (plan_set.solver("numpy").solve_batch(Q, Qd, Y, which) for plan_set in (other, one))
    np.testing.assert_array_equal(found.tau, expected.tau)
    np.testing.assert_array_equal(found["fx:link5"], expected["fx:link5"])


FORGED = [
    (lambda c: c.pop("states"), "'states' is wrong: Field required"),
    (lambda c: c["states"][1].update(contacts=["a", "x"]), "unknown contact 'x'"),
    (lambda c: c["states"][1].update(contacts=["a"]), "fingerprint of 'a' does not fit"),
    (lambda c: c["sensors"].pop("contacts"), "unknown contact"),
]


def test_forged_files_are_refused(tmp_path):
    """Those of one state, in test_plan.py, are read by the same code."""
    planned("tau").save(tmp_path / "set")
    text = (tmp_path / "set").read_text()
    content = json.loads(text)
    assert (content["format"], len(content["states"])) == ("nori_dyn plan", 8)
    assert text.count('"X_tree"') == 1  # the model is in it once
    assert_forged_is_refused(tmp_path, content, FORGED)
    with pytest.raises(PlanError, match="belongs to another system"):
        nd.Plan.load(tmp_path / "set", planned("tau")[("a",)].system)


def test_a_file_of_one_of_the_states_is_that_of_a_plan(tmp_path):
    planned("tau")[("a",)].save(tmp_path / "plan")
    one = nd.Plan.load(tmp_path / "plan")
    assert (one.system.sensors.name, one.contact_names) == ("leaves (a)", ())


def test_they_and_their_solver_as_text():
    plans = planned()
    rows = [" ".join(line.split()) for line in str(plans).splitlines()]
    assert "contacts a, b, c" in rows
    for state, name in ((ALL[0], "a, b, c"), ((), "no contact")):
        one = plans[state]
        expected = f"{name} {one.system.ny} {one.system.shape[1]} {one.ordering} {one.cost.total:,} "
        assert any(row.startswith(expected) for row in rows), rows
    solver = plans.solver("numpy")
    solver.switch("b")
    rows = [" ".join(line.split()) for line in str(solver).splitlines()]
    assert "closed now b" in rows
    assert "* b yes" in rows
    assert "no contact" in rows
    assert "2 of 8 are prepared, the others when first needed." in rows
