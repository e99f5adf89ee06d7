"""Limbs that are alike are eliminated alike, and what that saves. See also tests/unit/model/test_internal_frames.py."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.descriptions.sensor_configs import sensors
from nori_dyn.model.limbs import limb_groups
from nori_dyn.planning.elimination import FIELD, Elimination
from nori_dyn.planning.isomorphic import carried, images_of, isomorphic_order, isomorphic_parts
from nori_dyn.planning.orderings.problem import Ordering
from nori_dyn.planning.planner import make_plan
from nori_dyn.system.builder import System
from nori_dyn.system.limbs import correspondence
from tests.robots import load
from tests.systems import ACCELERATIONS, TORQUES, WRENCHES, sensor_set

OUTPUT = {"inverse_dynamics": "tau", "forward_dynamics": "qdd"}

OPERATIONS = {  # of floating robots
    "solo12": (1_359, 3_071),
    "g1": (4_406, 10_207),
    "anymal": (1_796, 3_501),
    "hyq": (1_687, 3_176),
    "go2": (1_673, 3_336),
    "talos_reduced": (4_256, 8_880),
}
SHORT = ("solo12",)


@pytest.mark.parametrize("problem", OUTPUT)
@pytest.mark.parametrize("robot", [x if x in SHORT else pytest.param(x, marks=pytest.mark.long) for x in OPERATIONS])
def test_operations_are_those_counted(robot, problem):
    """How alike limbs are computed: tests/unit/program/test_packs.py."""
    plan = nd.plan(System(load(robot, "floating"), sensors(problem)), (OUTPUT[problem],))
    assert plan.cost.total == OPERATIONS[robot][list(OUTPUT).index(problem)]
    assert plan.stability.is_stable


@pytest.fixture(scope="module")
def solo12():
    return load("solo12", "floating")


def parts_and_plan(tree, config):
    system = System(tree, config)
    plan = make_plan(system)
    return isomorphic_parts(system, plan.refined), plan


@pytest.fixture(scope="module")
def forward(solo12):
    """The group of the legs, and the plan."""
    (group,), plan = parts_and_plan(solo12, sensors("forward_dynamics"))
    return group, plan


def test_rows_and_columns_of_limbs_are_all_that_their_bodies_have(solo12, forward):
    group, plan = forward
    bodies = [body for limb in limb_groups(solo12)[0].limbs for body in limb]
    columns = np.flatnonzero(np.isin(plan.refined.symbolic.bodies, bodies))
    np.testing.assert_array_equal(np.sort(group.columns, axis=None), columns)
    assert group.rows.shape == group.columns.shape == (4, len(columns) // 4)
    assert len(set(group.rows.flat)) == group.rows.size


def test_an_order_that_differs_from_limb_to_limb_is_made_alike_and_stays_one(forward):
    group, plan = forward
    order = plan.program_order
    assert isomorphic_order(order, np.ones(len(order.columns), dtype=np.intp), (group,)) is None
    place = np.argsort(order.columns)[group.columns[2][-12:]]  # these are the last of a limb, in another order
    columns, rows = order.columns.copy(), order.rows.copy()
    columns[np.sort(place)], rows[np.sort(place)] = columns[place][::-1], rows[place][::-1]
    updates = np.where(np.isin(columns, group.columns[2]), 2, 1)
    alike = isomorphic_order(Ordering(rows, columns), updates, (group,))
    assert alike is not None
    for chosen in (alike.rows, alike.columns):
        np.testing.assert_array_equal(np.sort(chosen), np.arange(len(chosen)))
    work = Elimination(plan.refined.symbolic, FIELD).run(alike.rows, alike.columns)
    assert work.updates == Elimination(plan.refined.symbolic, FIELD).run(order.rows, order.columns).updates


def test_limbs_with_other_sensors_are_not_alike_and_weighed_rows_of_limbs_correspond_too(solo12):
    foot = solo12.joint_names[solo12.names.index("FL_LOWER_LEG")]
    motion = {"type": "joint_acceleration", "joints": foot}
    groups, _ = parts_and_plan(solo12, sensor_set({**TORQUES, "joints": {"except": [foot]}}, motion, WRENCHES))
    assert groups == ()
    weighed = sensor_set({**TORQUES, "sigma": 0.1}, {**ACCELERATIONS, "sigma": 0.2}, WRENCHES)
    (group,), plan = parts_and_plan(solo12, weighed)
    np.testing.assert_array_equal(group.rows, group.columns)
    assert plan.refined.symbolic.shape[0] > group.rows.size


@pytest.fixture(scope="module")
def one_foot(solo12):
    """Sets of sensors for one foot on the ground each: weighed ones, and exact ones whose wrenches are read there."""
    feet = {foot: f"{foot}_LOWER_LEG" for foot in ("FL", "HR")}
    wrench = {"type": "external_wrench", "links": {"except": list(feet.values())}, "value": 0}
    contacts = {
        foot: {
            "closed": [{"type": "external_wrench", "links": [link]}],
            "open": [{"type": "external_wrench", "links": [link], "value": 0}],
        }
        for foot, link in feet.items()
    }
    return {
        "weighed": [sensors("quadruped_contacts").in_contact(each) for each in ("fore_left", "hind_right")],
        "exact": [sensor_set(ACCELERATIONS, wrench, name="exact", contacts=contacts).in_contact(each) for each in feet],
    }


@pytest.fixture(scope="module")
def plan_of_one_foot(solo12, one_foot):
    """Torques with the first of these feet on the ground."""
    return {kind: make_plan(System(solo12, first), ("tau",)) for kind, (first, _) in one_foot.items()}


@pytest.mark.parametrize("kind", ["weighed", "exact"])
def test_the_order_for_one_foot_is_that_for_another_with_limbs_exchanged(solo12, one_foot, plan_of_one_foot, kind):
    plan = plan_of_one_foot[kind]
    one, other = plan.system, System(solo12, one_foot[kind][1])
    bodies, _ = correspondence(one, other)
    assert [solo12.names[bodies[i]][:2] for i in range(solo12.n_links) if solo12.names[i].startswith("FL")] == [
        "HR"
    ] * 3
    carried_plan = make_plan(other, ("tau",), like=plan)
    mine, theirs = plan.refined.symbolic, carried_plan.refined.symbolic
    rows, columns = images_of(one, other, mine, theirs)
    for images in (rows, columns):
        np.testing.assert_array_equal(np.sort(images), np.arange(len(images)))
    image = {*zip(rows[mine.rows].tolist(), columns[mine.columns].tolist(), strict=True)}
    assert image == {*zip(theirs.rows.tolist(), theirs.columns.tolist(), strict=True)}
    order = carried(plan.program_order, (rows, columns))
    np.testing.assert_array_equal(carried_plan.program_columns, order.columns)
    np.testing.assert_array_equal(carried_plan.program_rows, order.rows)
    assert carried_plan.cost == plan.cost


def test_a_set_that_no_exchange_of_limbs_makes_of_another_keeps_its_own_order(solo12, plan_of_one_foot):
    own = plan_of_one_foot["weighed"]
    both = System(solo12, sensors("quadruped_contacts").in_contact("fore_left", "hind_right"))
    assert correspondence(both, own.system) is None
    for_one = make_plan(own.system, ("tau",), like=make_plan(both, ("tau",)))
    np.testing.assert_array_equal(for_one.program_columns, own.program_columns)
