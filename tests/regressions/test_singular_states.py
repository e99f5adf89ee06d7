"""Singular states: refused in time, named when asked, left out of a batch on request, and never with bad advice."""

import pickle
from functools import lru_cache

import numpy as np
import pytest
import scipy.linalg as la

import nori_dyn as nd
from nori_dyn.errors import InputError, SingularSystemError, SystemShapeError, UnknownNameError
from nori_dyn.estimation.plan import Plan
from nori_dyn.system.builder import System
from tests.robots import load
from tests.systems import ACCELERATIONS, TORQUES, WRENCHES, sensor_set
from tests.tolerances import SOLVED, assert_close
from tests.unit.solve.test_solver import backend, every_backend, singular_plan, singular_state


@lru_cache
def tip() -> Plan:
    """The plan of a planar arm whose torques tell the wrench at its tip, but not where it is stretched."""
    tree = nd.autotree(3)
    return nd.plan(nd.System(tree, sensor_set({**ACCELERATIONS, "sigma": 0.1}, *TIP, name="tip")))


TIP = (
    TORQUES | {"sigma": 0.1},
    {"type": "external_wrench", "links": {"except": "link3"}, "value": 0},
    {"type": "external_wrench", "links": "link3", "components": ["mx", "my", "fz"], "value": 0},
    {"type": "external_wrench", "links": "link3", "components": ["mz"], "value": 0, "sigma": 0.1},
)
BENT, STRAIGHT = np.array([0.3, 0.5, 0.7]), np.array([0.3, 0.0, 0.0])


def states(*configurations, plan=None):
    system = (plan or tip()).system
    return np.stack(configurations), np.zeros((len(configurations), 3)), np.ones((len(configurations), system.ny))


# ------------------------------------------------------------------------------------- in time


def counted(monkeypatch):
    """Counts of what costs time."""
    counts = {"svd": 0, "D": 0}

    def counting(name, function):
        def called(*args, **kwargs):
            counts[name] += 1
            return function(*args, **kwargs)

        return called

    for owner, name in ((la, "svd"), (np.linalg, "svd"), (System, "D")):
        monkeypatch.setattr(owner, name, counting(name, getattr(owner, name)))
    return counts


def test_raising_computes_nothing_and_the_words_cost_one_rank(monkeypatch):
    solver = singular_plan().solver("numpy")
    counts = counted(monkeypatch)
    with pytest.raises(SingularSystemError) as raised:
        solver.solve(*singular_state(0.0))
    assert counts == {"svd": 0, "D": 0}
    assert "qdd:joint2" in raised.value.undetermined
    assert counts["svd"] == 1
    before = dict(counts)
    assert "Its rank is 39 of 40. Not determined: " in str(raised.value)
    assert str(raised.value) == str(raised.value)
    assert counts == before


def test_the_words_are_about_the_state_at_which_it_was_raised():
    """The arrays of a control loop go on."""
    solver = singular_plan().solver("numpy")
    q, qd, y = singular_state(0.0)
    with pytest.raises(SingularSystemError) as raised:
        solver.solve(q, qd, y)
    q[:] = singular_state(0.5)[0]
    assert "Its rank is 39 of 40. Not determined: " in str(raised.value)


def test_errors_go_to_other_processes_with_all_they_have():
    solver = singular_plan().solver("numpy")
    for asked in (False, True):
        with pytest.raises(SingularSystemError) as raised:
            solver.solve(*singular_state(0.0))
        error = raised.value
        if asked:
            assert error.undetermined
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is SingularSystemError
        assert str(again) == str(error)
        assert again.undetermined == error.undetermined != ()


# ------------------------------------------------------------------------------- left out of a batch


@every_backend
def test_singular_states_of_a_batch_are_nan_on_request(name):
    solver = singular_plan().solver(backend(name))
    good, bad = singular_state(0.5), singular_state(0.0)
    batch = [np.stack([a, b, a, b]) for a, b in zip(good, bad, strict=True)]
    found = solver.solve_batch(*batch, singular="nan")
    assert found.singular.tolist() == [False, True, False, True]
    expected = solver.solve(*good)
    assert not expected.singular
    for output, values in found.values.items():
        assert np.isnan(values[[1, 3]]).all()
        assert_close(values[0], expected[output], SOLVED)
    assert "2 of 4 states singular" in repr(found)
    with pytest.raises(SingularSystemError, match="singular at state 1 of 4, and at 1 more"):
        solver.solve_batch(*batch)
    with pytest.raises(UnknownNameError, match="unknown way to treat singular states 'skip'"):
        solver.solve_batch(*batch, singular="skip")
    batch[2][1, 0] = np.nan
    with pytest.raises(InputError, match=r"Y\[1, 0\].* is nan"):  # wrong input is no singular state
        solver.solve_batch(*batch, singular="nan")


def contact_solver():
    """The solver of the arm above, whose tip touches or not."""
    tree, free = nd.autotree(3), {"type": "external_wrench", "links": "link3"}
    return nd.plan(
        tree,
        sensor_set(
            ACCELERATIONS,
            *TIP[1:3],
            name="arm",
            contacts={"tip": {"closed": [TORQUES], "open": [{**free, "components": ["mz", "fx", "fy"], "value": 0}]}},
        ),
        outputs=("fx",),
    ).solver("numpy")


def test_singular_states_of_a_batch_of_contacts_are_nan_on_request():
    solver = contact_solver()
    Q = np.stack([BENT, STRAIGHT, STRAIGHT, BENT])
    zero = np.zeros((4, 3)), np.zeros((4, solver.ny))
    contacts = [["tip"], [], ["tip"], []]
    found = solver.solve_batch(Q, *zero, contacts, singular="nan")
    assert found.singular.tolist() == [False, False, True, False]
    assert np.isnan(found.fx[2]).all()
    assert_close(found.fx[[0, 1, 3]], np.zeros((3, 3, 6)), SOLVED)
    words = r"state 2 of 4 \(tip\): sensors 'arm \(tip\)'.*singular at this state"
    with pytest.raises(SingularSystemError, match=words) as raised:
        solver.solve_batch(Q, *zero, contacts)
    assert str(raised.value).count("Not determined") == 1
    assert raised.value.undetermined
    solver.inputs.q[:] = STRAIGHT
    for closed in (("tip",), ()):
        solver.switch(closed)
        assert solver.tick().ok == (not closed)
        assert np.isnan(solver.outputs.fx).all() == bool(closed)


# --------------------------------------------------------------------------------- what is at fault


def test_a_pose_is_at_fault_and_no_sensor_is_to_be_replaced():
    solver = tip().solver("numpy")
    with pytest.raises(SingularSystemError) as raised:
        solver.solve(*(x[0] for x in states(STRAIGHT)))
    message = str(raised.value)
    assert "Replace" not in message
    assert "this one is at fault" in message
    assert "It determines a, tau, qdd all the same: a plan with outputs=['a', 'tau', 'qdd'] may do" in message
    assert "singular='nan'" in message
    assert {name.split(":")[0] for name in raised.value.undetermined} == {"f", "fx"}
    assert "base='floating'" not in message


@every_backend
def test_numbers_that_overflow_are_at_fault_and_no_pose(name):
    solver = nd.plan(nd.System(nd.autotree(3), "forward_dynamics"), outputs=["qdd"]).solver(backend(name))
    with pytest.raises(SingularSystemError, match="so large that the arithmetic overflows") as raised:
        solver.solve(BENT, np.full(3, 1e160), np.zeros(solver.system.ny))
    assert not raised.value.undetermined


def test_sensors_that_are_left_out_are_at_fault_by_name():
    solver = tip().solver("numpy")
    state = [x[0] for x in states(BENT)]
    with pytest.raises(SingularSystemError, match=r"0: 'qdd:joint2', 'tau:joint2', 'fx:link3'\. The others"):
        solver.solve(*state, {"qdd:joint2": 0, "tau:joint2": 0, "fx:link3": 0})
    lost = dict(zip(solver.system.measurement_names, state[2], strict=True)) | {
        "tau:joint1": np.nan,
        "tau:joint3": np.nan,
    }
    with pytest.raises(SingularSystemError, match=r"have a weight of 0: 'tau:joint1'"):
        solver.solve(state[0], state[1], lost, missing="drop")
    with pytest.raises(SingularSystemError) as raised:  # the pose would be singular with it as well
        solver.solve(STRAIGHT, state[1], state[2], {"qdd:joint1": 0})
    assert "this one is at fault" in str(raised.value)


def test_a_robot_that_stands_is_not_told_to_replace_a_sensor():
    """Load cells in both feet: on a fixed base six rows are missing, which no sensor brings back."""
    feet = nd.sensors("icub_feet_three_axes")
    with pytest.raises(SystemShapeError, match=r"6 too few.*base='floating' \(`--base floating`\).*is 6 rows more"):
        nd.plan(nd.System(load("iCubGenova04", "fixed"), feet))
    with pytest.raises(SystemShapeError) as raised:  # a wrist is no foot
        nd.plan(nd.System(nd.autotree(3), sensor_set(WRENCHES | {"links": ["link1"]})))
    assert "floating" not in str(raised.value)


def standing(*sensors):
    """A robot with two legs on a fixed base, and what tells of the feet."""
    tree = nd.autotree(5, branching=2)
    feet = ["link4", "link5"]
    rest = {"type": "external_wrench", "links": {"except": feet}, "value": 0}
    return nd.System(tree, sensor_set(ACCELERATIONS, rest, *sensors))


def test_contacts_on_a_fixed_base_are_told_of_floating_ones():
    """The moment about x of both feet: no torque about z tells it, and so no sensor in the joints."""
    foot = {"type": "external_wrench", "links": ["link4", "link5"], "components": ["my", "mz", "fx", "fy", "fz"]}
    two = {"type": "joint_torque", "joints": ["joint1", "joint2"]}
    with pytest.raises(SingularSystemError, match=r"base='floating'.*Otherwise replace a redundant sensor"):
        nd.plan(standing(foot, two))
