"""What is learned over time of what persists: against stacked matrices in doubles, and closed forms."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
import scipy.linalg as la

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import InvalidConfigError, UnknownSensorNameError
from nori_dyn.model.joints import Fixed, Free
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.learned import Learned
from nori_dyn.typing import Floats
from tests.closed_robots import four_bar
from tests.least_squares import null_space
from tests.robots import load
from tests.systems import ACCELERATIONS, SPEED, TORQUES, sensor_set
from tests.words import plain

VELOCITY = ["wx", "wy", "wz", "vx", "vy", "vz"]
STILL = {"type": "joint_torque", "joints": {"except": "actuated"}, "value": 0}
ZERO = 1e-9
"""Share of the largest below which singular values, and numbers in a null space, are zero."""


def with_offset(**entry) -> dict:
    return {**entry, "sigma": 0.1, "offset": {"sigma": 5.0}}


def unloaded(*but: str) -> dict:
    return {"type": "external_wrench", "links": {"except": list(but)} if but else "all", "value": 0}


def system_of(tree: KinematicTree, *entries: dict, **memory: dict) -> nd.System:
    return nd.System(tree, sensor_set(*entries, memory=memory))


def arm() -> nd.System:
    """An arm whose torque sensors have offsets, pushed at its last link."""
    entries = ACCELERATIONS, with_offset(**TORQUES), unloaded("link5")
    return system_of(nd.autotree(5, skew=0.9), *entries, offsets={"of": "offset"}, push={"of": "fx:link5"})


def biped() -> nd.System:
    """A floating body on two legs with load cells that have offsets; its acceleration is read."""
    tree = nd.autotree(7, branching=2, skew=0.8)
    tree = tree.replace(joints=(Free(), *tree.joints[1:]))
    cells = with_offset(type="force_torque", joints=["joint2", "joint3"])
    return system_of(tree, ACCELERATIONS, STILL, cells, unloaded("link4", "link7"), offsets={"of": "offset"})


def quadruped() -> nd.System:
    """A quadruped on point feet, whose torque sensors have offsets; the acceleration of its base is read."""
    tree = load("solo12", "floating")
    feet = tuple(tree.names[i] for i in range(tree.n_links) if i not in tree.parents)
    points = [{"type": "external_wrench", "links": list(feet), "components": ["mx", "my", "mz"], "value": 0}]
    sensors = ACCELERATIONS, with_offset(type="joint_torque", joints="actuated")
    return system_of(tree, *sensors, STILL, unloaded(*feet), *points, offsets={"of": "offset"})


def on_a_base(seed: int) -> nd.System:
    """A random robot whose base is state, on feet that stand, with inertial sensors some of which have offsets.

    That its rows and rates are those of a moving base is for tests/unit/measurements/test_floating_base.py.
    """
    rng, n = np.random.default_rng(seed), 2 + seed % 5
    tree = nd.tools.random_tree(n, seed, ["revolute", "prismatic"], chain=0.4)
    tree = tree.replace(joints=(Free(), *tree.joints[1:]), X_tree=(Transform.identity(), *tree.X_tree[1:]))
    foot = {"type": "zero_velocity", "sigma": 0.1}
    rows = [{**ACCELERATIONS, "joints": "actuated"}]
    rows.append({**foot, "links": tree.names[-1], "components": VELOCITY[3 * (seed % 2) :]})
    for name, kind in zip(
        tree.names, rng.choice(["imu", "gyroscope", "accelerometer", "foot", ""], size=n), strict=True
    ):
        halves = [{"sigma": 0.1} | ({"offset": {"sigma": 1.0}} if rng.random() < 0.6 else {}) for _ in range(2)]
        if kind == "imu":
            rows.append({"type": kind, "links": name, "gyroscope": halves[0], "accelerometer": halves[1]})
        elif kind == "foot" and name != tree.names[-1]:
            rows.append({**foot, "links": name, "components": VELOCITY[3:]})
        elif kind in ("gyroscope", "accelerometer"):
            rows.append({"type": kind, "links": name} | halves[0])
    offsets = {"offsets": {"of": "offset"}} if "offset" in str(rows) else {}
    return system_of(tree, *rows, base={"of": "base"}, **offsets)


SYSTEMS = {"arm": arm, "biped": biped, "quadruped": quadruped}
ON_A_BASE = {f"base {seed}": partial(on_a_base, seed) for seed in range(40)}
SHORT = ("base 5", "base 9", "base 11", "base 25", "base 31", "base 35")
DT = np.array([0.8, 1.3, 0.6])
"""Times between states, where what persists has rates."""


def stacked(system: nd.System, Q: Sequence[Floats], dt: Floats | None = None) -> tuple[int, set[str]]:
    """How many combinations of what persists are told at the last of some states, and which numbers are.

    The rows of D at each, each with its own columns, and rows between them: m' = a m + dt r.
    """
    first = {each.known_by for each in system.memory}
    rows = [k for row in system.rows if row.name not in first for k in range(row.slice.start, row.slice.stop)]
    n = system.shape[1]
    blocks = [system.D(q).toarray()[rows] for q in Q]
    A = la.block_diag(*blocks)
    place = {v.key: v.slice.start for v in system.variables}
    for j in range(len(Q) - 1):
        for each in system.memory:
            for k in range(len(each.variable.components)):
                law, step = np.zeros(len(Q) * n), 1.0 if dt is None else dt[j]
                law[(j + 1) * n + each.variable.slice.start + k] = -1.0
                law[j * n + each.variable.slice.start + k] = each.decay(step)
                if each.rate is not None:
                    law[j * n + place[each.rate] + k] = step
                A = np.vstack([A, law])
    open_ = null_space(A, ZERO)
    columns = [k for each in system.memory for k in range(each.variable.slice.start, each.variable.slice.stop)]
    last = open_[[(len(Q) - 1) * n + k for k in columns]]
    rank = int(np.sum(la.svdvals(last) > 1e-7)) if last.size else 0
    is_seen = np.abs(last).max(axis=1, initial=0.0) < 1e-7
    return len(columns) - rank, {system.variable_names[k] for k, told in zip(columns, is_seen, strict=True) if told}


def poses(tree: KinematicTree, n: int, moving: Sequence[str] | None = None, seed: int = 0) -> Floats:
    """Random configurations; all but some joints, where these are named, stay."""
    Q = tree.random_configurations(n, seed)
    for name, part in zip(tree.joint_names, tree.q_slices, strict=True):
        if moving is not None and name not in moving:
            Q[:, part] = Q[0, part]
    return Q


def seen_of(found: Learned, after: int) -> set[str]:
    return {name for name, k in zip(found.names, found.seen_after, strict=True) if 0 < k <= after}


@pytest.mark.parametrize(
    "name", [*SYSTEMS, *(x if x in SHORT else pytest.param(x, marks=pytest.mark.long) for x in ON_A_BASE)]
)
def test_ranks_and_what_is_seen_are_those_of_stacked_matrices(name):
    system = (SYSTEMS | ON_A_BASE)[name]()
    found = nd.observability(system, where=None).over_time
    Q = poses(system.tree, 3, seed=1)
    for k in (1, 2, 3):
        rank, seen = stacked(system, Q[:k], DT)
        assert found.ranks[min(k, len(found.ranks)) - 1] == rank
        assert seen_of(found, k) == seen
    assert found.error < 1e-20


@pytest.mark.parametrize("name", ["arm", "biped", "base 4", "base 25"])
def test_what_has_to_move_is_what_stacked_matrices_need(name):
    system = (SYSTEMS | ON_A_BASE)[name]()
    found = nd.observability(system, where=None).over_time
    moving = found.needs.moving
    assert found.needs.each
    for need in [*found.needs.each, found.needs.all]:
        names = set(need.names)
        for enough in [need.enough] if not need.any_of else [(joint,) for joint in need.any_of]:
            assert names <= stacked(system, poses(system.tree, need.after, enough), DT)[1]
        for joint in need.all_of:
            still = stacked(system, poses(system.tree, 3, [other for other in moving if other != joint]), DT)[1]
            assert not names & still
        if need.is_only:
            others = [joint for joint in moving if joint not in (need.any_of or need.all_of)]
            assert not names & stacked(system, poses(system.tree, 3, others), DT)[1]
        if not need.any_of:
            for joint in need.enough:
                fewer = [other for other in need.enough if other != joint]
                assert not names <= stacked(system, poses(system.tree, 4, fewer), DT)[1]


def test_where_the_base_is_and_how_it_lies_tells_nothing():
    system = biped()
    base = system.tree.joint_names[0]
    Q = poses(system.tree, 3, [base])
    assert stacked(system, Q) == stacked(system, Q[:1])
    report = nd.observability(system, where=None)
    assert base not in report.over_time.needs.moving
    assert "Moving or turning the base alone adds nothing" in " ".join(str(report).split())


def test_a_torque_offset_and_an_unknown_torque_are_told_by_their_difference_only():
    """tau = offset - fx.mz + what is known, at every pose."""
    tree = nd.autotree(1)
    system = system_of(
        tree, ACCELERATIONS, with_offset(**TORQUES), offset={"of": "offset"}, push={"of": "fx:link1", "sigma": 3.0}
    )
    found = nd.observability(system, where=None).over_time
    assert found.ranks == (1,)
    assert [dict(each.terms) for each in found.sums] == [{"offset:tau:joint1": 1.0, "fx:link1.mz": -1.0}]
    assert found.untold == tuple(f"fx:link1.{c}" for c in ("mx", "my", "fx", "fy", "fz"))
    assert not found.is_learned
    assert not found.suffices


def test_an_offset_alone_is_seen_at_one_pose_where_the_force_is_known_and_never_where_it_is_not():
    known = system_of(nd.autotree(1), ACCELERATIONS, with_offset(**TORQUES), unloaded(), offset={"of": "offset"})
    found = nd.observability(known, where=None).over_time
    assert (found.ranks, found.seen_after, found.needs.each) == ((1,), (1,), ())
    unknown = system_of(nd.autotree(1), ACCELERATIONS, with_offset(**TORQUES), offset={"of": "offset"})
    report = nd.observability(unknown, where=None)
    assert (report.over_time.ranks, report.over_time.seen_after) == ((0,), (0,))
    assert "The sensors tell nothing of the one number of the memory, however many poses there are." in plain(report)


def two_cells(skew: float) -> nd.System:
    """Two links with a load cell in each joint, the second pushed by what is not known."""
    cells = with_offset(type="force_torque", joints="all")
    return system_of(nd.autotree(2, skew=skew), ACCELERATIONS, cells, unloaded("link2"), offsets={"of": "offset"})


def test_what_goes_along_the_axis_between_two_load_cells_is_never_told_apart():
    """o_1 - X* o_2 is told at each pose; what a turn about z leaves as it is, mz and fz at the axis, is in both.

    The axis is a distance of 1 along x away from the first: fz of the second is fz and -my of the first.
    """
    report = nd.observability(two_cells(0.0), where=None)
    found = report.over_time
    assert found.ranks == (6, 10)
    never = {f"offset:ft:joint1.{c}" for c in ("my", "mz", "fz")} | {f"offset:ft:joint2.{c}" for c in ("mz", "fz")}
    assert {name for name, after in zip(found.names, found.seen_after, strict=True) if not after} == never
    assert sorted(tuple(each.terms.items()) for each in found.sums) == [
        (("offset:ft:joint1.fz", 1.0), ("offset:ft:joint2.fz", -1.0)),
        (("offset:ft:joint1.my", 1.0), ("offset:ft:joint2.fz", 1.0)),
        (("offset:ft:joint1.mz", 1.0), ("offset:ft:joint2.mz", -1.0)),
    ]
    (need,) = found.needs.each
    assert (need.all_of, need.is_only, need.after) == (("joint2",), True, 2)
    text = plain(report)
    assert "over 2 poses, only if joint2 moves" in text
    assert "- offset:ft:joint1.my + offset:ft:joint2.fz" in text
    assert "rank after 1, 2, ... poses: 6, 10" in text


def test_what_decays_is_told_from_what_stays_as_time_passes_though_nothing_moves():
    memory = {"offset": {"of": "offset"}, "push": {"of": "fx:link1", "time_constant": 2.0}}
    system = system_of(nd.autotree(1), ACCELERATIONS, with_offset(**TORQUES), **memory)
    found = nd.observability(system, where=None).over_time
    assert found.ranks == (1, 2)
    assert seen_of(found, 2) == {"offset:tau:joint1", "fx:link1.mz"}
    assert [need.by_time for need in found.needs.each] == [True]
    q = system.tree.random_configuration(0)
    assert stacked(system, [q, q], np.array([0.7])) == (2, seen_of(found, 2))


def test_speeds_tell_pushes_as_a_momentum_observer_does():
    system = system_of(
        nd.autotree(6, skew=0.8), TORQUES, unloaded("link6"), speed=SPEED, push={"of": "fx:link6", "walk": 5.0}
    )
    report = nd.observability(system, where=None)
    found = report.over_time
    assert found.ranks == (6, 12)
    assert not report.is_observable
    assert report.suffices_over_time
    Q = poses(system.tree, 3)
    for k in (1, 2, 3):
        assert stacked(system, Q[:k], np.array([0.8, 1.3])) == (found.ranks[min(k, 2) - 1], seen_of(found, k))
    text = plain(report)
    assert text.startswith("Yes, but not at once. At one pose")
    assert "fx:link6: over 2 instants, as time passes, even at rest" in text
    assert "fx:link6 persists in the coordinates of its link. The weight of a payload does not" in text


def test_what_persists_may_be_the_rate_of_what_persists_and_need_not_be_a_source():
    """A force that grows by another one, which decays; and a torque, which the equations of motion give."""
    memory = {
        "force": {"of": "fx:link6", "rate": "fx:link5"},
        "growth": {"of": "fx:link5", "time_constant": 3.0},
        "motor": {"of": "tau:joint2"},
    }
    system = system_of(nd.autotree(6, skew=0.8), ACCELERATIONS, TORQUES, unloaded("link5", "link6"), **memory)
    found = nd.observability(system, where=None, states=4).over_time
    Q, dt = poses(system.tree, 4), np.array([0.8, 1.3, 0.6])
    for k in (1, 2, 3, 4):
        assert stacked(system, Q[:k], dt) == (found.ranks[k - 1], seen_of(found, k))
    assert found.ranks[0] < found.ranks[1] == len(found.names)


def test_what_is_told_at_first_and_priors_are_left_out_but_an_offset_that_does_not_persist_is_noise():
    tree = nd.autotree(2)
    prior = {"type": "prior", "variables": ["fx"], "sigma": 10.0}
    entries = ACCELERATIONS, with_offset(**TORQUES), prior
    held = nd.observability(system_of(tree, *entries), where=None, memory="offset")
    assert held.is_observable
    assert held.over_time.ranks == (0,)
    known = ACCELERATIONS, with_offset(**TORQUES), unloaded("link2")
    push = nd.observability(system_of(tree, *known), where=None, memory=["fx:link2"]).over_time
    assert seen_of(push, 3) >= {"fx:link2.mz"}


def test_memory_is_given_by_names_or_as_in_a_config():
    cells = two_cells(0.3)
    system = nd.System(cells.tree, nd.SensorSet.from_dict(cells.sensors.to_dict() | {"memory": {}}))

    def learned(system, **memory):
        return nd.observability(system, where=None, **memory).over_time

    assert learned(system) is learned(cells, memory={}) is None
    by_name = learned(system, memory=["offset:ft:joint1", "offset:ft:joint2"])
    by_entry = learned(system, memory={"o": {"of": "offset", "walk": 0.1}})
    assert by_name.ranks == by_entry.ranks == learned(cells).ranks


def test_as_many_states_as_are_asked_for():
    found = nd.observability(two_cells(0.3), where=None, states=1)
    assert found.over_time.ranks == (6,)
    assert "More poses may tell more." in plain(found)
    longer = nd.observability(two_cells(0.3), where=None, states=4).over_time
    assert len(longer.ranks) == 4
    assert longer.states == longer.ranks.index(longer.rank) + 1
    assert "More poses may tell more." not in plain(nd.observability(two_cells(0.0), where=None, states=4))


def test_what_is_refused():
    system = two_cells(0.3)
    for states in (0, 51, 2.5, True):
        with pytest.raises(nd.errors.InputError, match="expected a whole number from 1 to 50"):
            nd.observability(system, states=states)
    with pytest.raises(
        nd.errors.InputError, match="states counts those over which the memory is learned, and the sensors have none"
    ):
        nd.observability(system, memory={}, states=2)
    with pytest.raises(UnknownSensorNameError, match="'offset:ft:joint1'"):
        nd.observability(system, memory=["offset:ft:joint11"])
    with pytest.raises(InvalidConfigError, match="off"):
        nd.observability(system, memory={"offsets": {"off": "offset"}})


def test_a_robot_with_loops_is_looked_at_where_it_is_closed():
    entries = ACCELERATIONS, with_offset(**TORQUES), unloaded("coupler")
    system = system_of(four_bar(), *entries, offsets={"of": "offset"})
    report = nd.observability(system, where=None)
    found = report.over_time
    Q = system.tree.random_configurations(3, 5)
    for k in (1, 2, 3):
        assert stacked(system, Q[:k]) == (found.ranks[min(k, len(found.ranks)) - 1], seen_of(found, k))
    assert found.error is None
    assert found.gap > 1e6
    assert (found.needs.each, found.needs.moving) == ((), ())
    assert "Ranks are numerical, at closed configurations; which joints must move is not determined." in plain(report)


def test_where_nothing_can_move_two_load_cells_tell_differences_only():
    tree = nd.autotree(2)
    tree = tree.replace(joints=(Fixed(), Fixed()))
    cells = with_offset(type="force_torque", joints="all")
    report = nd.observability(system_of(tree, cells, unloaded("link2"), offsets={"of": "offset"}), where=None)
    assert (report.over_time.ranks, report.over_time.needs.moving) == ((6,), ())
    assert "Of the 12 numbers of the memory the sensors determine 6 combinations of 12, at one pose." in plain(report)
