"""A touch anywhere: the contacts and the state that it stands for, and its rows against Pinocchio's."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InvalidConfigError, SensorConfigError
from nori_dyn.measurements.touch import WRENCH
from nori_dyn.model.joints import Free
from nori_dyn.model.kinematics import positions
from tests.peers import pin
from tests.tolerances import RECURSION, assert_close
from tests.trees import FLOATING, TREES, random_state

TORQUES = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
CONTENT = {
    "name": "arm",
    "measurements": [TORQUES, {"type": "external_wrench", "links": "link1", "value": 0}],
    "memory": {"speed": {"of": "qd", "rate": "qdd", "noise": 0.001}},
    "touch": {"links": ["link2", "link3"], "force": 20, "lever": 0.5, "change": 2},
}


def root_of(tree, link: str) -> int:
    i = tree.names.index(link)
    while not tree.is_root(i):
        i = tree.parents[i]
    return i


def test_it_stands_for_a_contact_a_link_and_a_wrench_as_state():
    arm, sensors = nd.autotree(3, skew=1.0), nd.SensorSet.from_dict(CONTENT)
    assert nd.SensorSet.from_dict(sensors.to_dict()) == sensors
    assert sensors.fingerprint != nd.SensorSet.from_dict({**CONTENT, "touch": None}).fingerprint
    made = sensors.touching(arm)
    assert nd.SensorSet.from_dict(made.to_dict()) == made
    assert made.contact_names == ("link2", "link3")
    assert made.contact_states() == [("link2",), ("link3",), ()]
    memory = dict(made.memory)["touch"]
    assert memory.sigma == memory.jump == [10.0] * 3 + [20.0] * 3
    assert memory.walk == [1.0] * 3 + [2.0] * 3
    assert np.sqrt(memory.walk[3] ** 2 * memory.time_constant / 2) == pytest.approx(20.0)  # the walk keeps the size
    plan = nd.plan(arm, sensors, outputs=["fx"])
    assert plan.states == (("link2",), ("link3",), ())
    assert plan.states[("link3",)].system.memory[-1].variable.name == "touch:wrench"


@pytest.mark.parametrize("tree", [TREES["two_roots"], FLOATING["arms"]], ids=["two roots", "floating base"])
def test_what_acts_on_a_link_is_the_wrench_in_coordinates_of_the_base(tree):
    q, *_ = random_state(tree, 0)
    poses = positions(tree, q).X_0
    rng = np.random.default_rng(0)
    links = {"links": "all", "lever": 1.0}
    made = nd.SensorSet.from_dict({**CONTENT, "measurements": [TORQUES], "memory": {}, "touch": links}).touching(tree)
    for state in made.contact_states():
        if not state:
            continue
        system = nd.System(tree, made.in_contact(*state))
        rows = next(row for row in system.sensor_rows if row.equation.group == "touch")
        D = system.D(q)[rows.slice].toarray()
        w = rng.normal(size=6)
        placed, root = (pin.SE3(poses[i].E.T, poses[i].r) for i in (rows.equation.body, root_of(tree, state[0])))
        if isinstance(tree.joints[root_of(tree, state[0])], Free):
            placed = root.inverse() * placed
        here = placed.actInv(pin.Force(w[3:], w[:3]))
        fx = np.r_[here.angular, here.linear]
        variables = {variable.key: variable for variable in system.variables}
        d = np.zeros(system.shape[1])
        d[variables[WRENCH.key].slice] = w
        d[system.column("fx", rows.equation.body)] = fx
        assert_close(D @ d, np.zeros(6), RECURSION)


def test_sets_with_touches_are_planned_not_solved():
    arm, sensors = nd.autotree(3, skew=1.0), nd.SensorSet.from_dict(CONTENT)
    with pytest.raises(SensorConfigError, match="have links that may be touched"):
        nd.System(arm, sensors)
    contact = {"closed": [], "open": [{"type": "external_wrench", "links": "link2", "value": 0}]}
    twice = nd.SensorSet.from_dict({**CONTENT, "contacts": {"link2": contact}})
    with pytest.raises(SensorConfigError, match="'link2' is a contact, and a link that may be touched"):
        nd.plan(arm, twice)
    with pytest.raises(InvalidConfigError, match="force"):
        nd.SensorSet.from_dict({**CONTENT, "touch": {"force": -1}})
    with pytest.raises(SensorConfigError, match="how large wrenches of touches are"):
        nd.System(arm, nd.SensorSet.from_dict({**CONTENT, "touch": None, "memory": {"touch": {"of": "touch"}}}))
