"""What to add: the sensors that are named make the set suffice, exactly or at the poses, and few of them do."""

import itertools

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.observe import additions
from nori_dyn.observe.generic import generic_rank
from nori_dyn.report.findings import describe_addition
from tests.robots import load
from tests.systems import ACCELERATIONS, INVERSE, UNLOADED, sensor_set

TREE = nd.autotree(4, branching=2, skew=0.7)


def with_additions(system: nd.System, sensors) -> nd.System:
    """A system with what was added, as its entries in a config say."""
    content = system.sensors.to_dict()
    entries = [dict(sensor.entry) for sensor in sensors]
    return nd.System(
        system.tree, nd.SensorSet.from_dict({**content, "measurements": content["measurements"] + entries})
    )


def random_set(seed: int) -> nd.System:
    rng = np.random.default_rng(seed)
    entries = [
        {"type": "joint_acceleration", "joints": [name for name in TREE.joint_names if rng.random() < 0.6]},
        {"type": "external_wrench", "links": [name for name in TREE.names if rng.random() < 0.6], "value": 0},
        {"type": "external_wrench", "links": str(rng.choice(TREE.names)), "components": ["mx", "fz"], "name": "cell"},
    ]
    own = [entry for entry in entries if entry.get("joints") or entry.get("links")]
    return nd.System(TREE, sensor_set(*own))


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 20), marks=pytest.mark.long)])
def test_what_is_added_suffices_and_less_does_not(seeds):
    for seed in seeds:
        system = random_set(seed)
        report = nd.observability(system, where=None)
        assert not report.is_observable
        (found,) = report.additions
        assert not found.at_poses
        assert nd.observability(with_additions(system, found.sensors), where=None).is_observable, seed
        for fewer in itertools.combinations(found.sensors, len(found.sensors) - 1):
            assert not nd.observability(with_additions(system, fewer), where=None).is_observable, seed
        for other in found.others:
            assert nd.observability(with_additions(system, [other]), where=None).is_observable, seed


def test_what_is_called_the_smallest_is():
    smallest = 0
    for seed in range(20):
        system = random_set(seed)
        generic = generic_rank(system)
        (found,) = additions.additions(system, generic, [])
        if not found.is_smallest:
            continue
        smallest += 1
        candidates = additions._addables(system, np.flatnonzero(generic.moved).tolist())
        missing = generic.open
        for fewer in itertools.islice(itertools.combinations(candidates, len(found.sensors) - 1), 500):
            columns = [column for candidate in fewer for column in candidate.columns]
            assert missing.gain(columns) < missing.dimension, seed
    assert smallest > 5


def test_a_single_sensor_is_named_with_all_that_do_as_well():
    short = nd.System(TREE, sensor_set({**ACCELERATIONS, "joints": {"except": "joint2"}}, UNLOADED))
    report = nd.observability(short, where=None)
    (found,) = report.additions
    assert [sensor.words for sensor in found.sensors] == ["the acceleration of joint joint2"]
    assert "a torque sensor in joint2" in {other.words for other in found.others}
    words = describe_addition(found)
    assert words == "The acceleration of joint joint2: then everything is determined, at almost every pose."
    assert f"Add this. {words}" in " ".join(str(report).split())
    (figures,) = report.to_dict()["additions"]
    assert figures["sensors"] == [{"type": "joint_acceleration", "joints": "joint2"}]
    assert figures["words"] == words


def test_a_base_that_no_motor_moves_is_known_without_a_sensor():
    tree = load("solo12", "floating")
    short = nd.System(tree, sensor_set({**ACCELERATIONS, "joints": "actuated"}, UNLOADED))
    (found,) = nd.observability(short, where=None).additions
    assert [dict(sensor.entry) for sensor in found.sensors] == [
        {"type": "joint_torque", "joints": tree.joint_names[0], "value": 0}
    ]


@pytest.mark.parametrize(
    ("config", "generic", "at_poses"),
    [
        ("load_cells_five", None, {"components": ["mz"], "links": "r_sole", "type": "external_wrench"}),
        pytest.param(
            "icub_feet_three_axes",
            {"type": "joint_torque", "joints": "r_hip_pitch"},
            {"components": ["mz", "fx", "fy"], "links": "r_sole", "type": "external_wrench"},
            marks=pytest.mark.long,
        ),
    ],
)
def test_load_cells_of_the_icub(config, generic, at_poses):
    system = nd.System(load("iCubGenova04", "floating"), config)
    found = nd.observability(system).additions
    assert [dict(sensor.entry) for one in found for sensor in one.sensors] == [*filter(None, (generic, at_poses))]
    for one in found:
        report = nd.observability(with_additions(system, one.sensors))
        assert report.is_observable
        assert one.is_smallest
        assert not (one.at_poses and report.loses_rank)


def test_a_search_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(additions, "MOST_LOOKS", 3)
    report = nd.observability(nd.System(TREE, sensor_set(ACCELERATIONS)), where=None)
    assert report.additions == ()
    assert "the search for additions was given up" in " ".join(str(report).split())
    assert nd.observability(nd.System(TREE, INVERSE), where=None).additions == ()
