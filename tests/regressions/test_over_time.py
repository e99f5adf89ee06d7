"""Sensors that tell all over time, and not at one instant, were refused; plan, report and filter agree now."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import PlanError, SystemShapeError
from tests.systems import ACCELERATIONS, sensor_set
from tests.tolerances import SOLVED, assert_close
from tests.unit.filtering.recorded import by_least_squares, recorded
from tests.unit.observe.test_learned import poses, stacked
from tests.words import plain

TORQUES = {"type": "joint_torque", "joints": "all", "sigma": 0.5}
SPEED = {"of": "qd", "rate": "qdd", "noise": 0.02, "walk": 0.01}
DT = 0.01


def hand(joints: int, *more: dict, skew: float = 0.9, **push: object) -> nd.System:
    """An arm whose last link is pushed: by its torques, and by velocities that persist."""
    tip = f"link{joints}"
    unloaded = {"type": "external_wrench", "links": {"except": tip}, "value": 0}
    memory = {"speed": SPEED, "push": {"of": f"fx:{tip}", "walk": 5.0} | push}
    return nd.System(nd.autotree(joints, skew=skew), sensor_set(TORQUES, unloaded, *more, name="hand", memory=memory))


def forces(joints: int) -> dict:
    """What reads the force on the last link, not the moment."""
    force = {"type": "external_wrench", "components": ["fx", "fy", "fz"], "sigma": 1.0}
    return force | {"links": f"link{joints}"}


SYSTEMS = {
    "seven joints": lambda: hand(7),
    "six joints": lambda: hand(6),
    "five joints, one axis for all": lambda: hand(5, skew=0.0),
    "two joints": lambda: hand(2),
    "two joints and a force sensor": lambda: hand(2, forces(2)),
    "three joints and a force sensor": lambda: hand(3, forces(3)),
    "three joints, a push that decays": lambda: hand(3, forces(3), time_constant=2.0),
    "known at first": lambda: hand(2, sigma=10.0),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_plan_report_and_filter_agree_with_stacked_matrices(name):
    """What is determined is the rank of the rows of D at several states, with the laws between them."""
    system = SYSTEMS[name]()
    tree, numbers = system.tree, sum(len(one.variable.components) for one in system.memory)
    is_known = all(one.sigma is not None or one.rate is not None for one in system.memory)
    is_told = stacked(system, poses(tree, 4, seed=1), np.array([0.1, 0.2, 0.15]))[0] == numbers
    report = nd.observability(system, where=None)
    assert report.suffices_over_time == (is_told or is_known)
    if not (is_told or is_known):
        with pytest.raises(
            nd.errors.SingularSystemError, match=r"nothing is known at first of fx:link\d.*Never determined"
        ) as no:
            nd.plan(system, outputs=["qdd"])
        assert set(no.value.undetermined) >= set(report.over_time.undetermined)
        return
    plan = nd.plan(system, outputs=["qdd", f"fx:{tree.names[-1]}"])
    assert plan.is_over_time == (not is_known)
    ticks = recorded(system, 12, seed=3)
    found = nd.Tracker(plan, DT, backend="numpy").over(*ticks.all, singular="nan")
    mean, _ = by_least_squares(system, *(part[:12] for part in ticks.all))
    columns = [k for v in system.variables if v.name == f"fx:{tree.names[-1]}" for k in range(*v.slice.indices(10**6))]
    assert_close(found[f"fx:{tree.names[-1]}"][-1], mean[-1, columns], SOLVED)


def test_what_knows_one_instant_alone_refuses_such_a_plan_by_name(tmp_path):
    plan = nd.plan(hand(7), outputs=["qdd"])
    words = "sensors 'hand': one instant does not determine fx:link7"
    plan.save(tmp_path / "hand.plan")
    for each in (plan, nd.plan(hand(7), outputs=["qdd"]), nd.Plan.load(tmp_path / "hand.plan")):
        for ask in (each.solver, each.monitor, lambda each=each: each.derivative("q")):
            with pytest.raises(PlanError, match=words):
                ask()
        with pytest.raises(PlanError, match=words):
            each.export(tmp_path / "c")
        assert "fx:link7: unknown at first, and not determined by one instant" in plain(str(each))
    assert not (tmp_path / "c").exists()
    assert nd.Tracker(plan, DT, backend="numpy").export(tmp_path / "c", name="hand").files


def test_what_a_filter_cannot_run_is_refused_as_before_when_it_is_planned():
    tree, motion = nd.autotree(2), ACCELERATIONS
    push = {"push": {"of": "fx:link2"}}
    unloaded = {"type": "external_wrench", "links": "link1", "value": 0}
    for more, error, words in (
        ({"measurements": [motion, unloaded]}, SystemShapeError, "Of fx:link2, in `memory`, there is no initial prior"),
        ({"measurements": [motion, TORQUES, unloaded], "dynamics": {"sigma": 0.1}}, PlanError, "has a sigma: a filter"),
    ):
        with pytest.raises(error, match=words):
            nd.plan(nd.System(tree, nd.SensorSet.from_dict({"name": "no", "memory": push} | more)))


def test_outputs_that_one_contact_state_knows_exactly_have_no_deviation():
    """Their deviations once were a program without outputs, and a ValueError."""
    wrench = {"type": "external_wrench", "links": "link2", "value": 0}
    on_ground = [wrench | {"components": ["mx", "my", "mz", "fx", "fy"]}, wrench | {"components": ["fz"], "sigma": 50}]
    rows = [
        ACCELERATIONS | {"sigma": 0.5},
        {"type": "joint_torque", "joints": "all", "sigma": 0.1, "offset": {"sigma": 1}},
        {"type": "external_wrench", "links": "link1", "value": 0},
    ]
    contacts = {"tip": {"closed": on_ground, "open": [wrench]}}
    told = sensor_set(*rows, name="tip", contacts=contacts, memory={"offsets": {"of": "offset", "walk": 0.01}})
    plans = nd.plan(nd.autotree(2), told, outputs=["fx:link2"])
    tracker = nd.Tracker(plans, dt=0.01, backend="numpy")
    at_rest, y = np.ones((4, 2)), np.zeros((4, len(tracker.measurement_names)))
    found = tracker.over(None, at_rest, 0 * at_rest, y, contacts=[("tip",), ("tip",), (), ()])
    assert found.deviations["fx:link2"][1, 5] > 0
    np.testing.assert_array_equal(found.deviations["fx:link2"][2:], 0)
