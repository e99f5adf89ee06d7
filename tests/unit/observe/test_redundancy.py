"""Failing sensors against brute force: the rank of D in doubles with their rows taken out."""

import itertools
from functools import partial

import numpy as np
import pytest

from nori_dyn.errors import InputError, PlanError
from nori_dyn.model.synthetic import autotree
from nori_dyn.observe.generic import closed_looks
from nori_dyn.observe.numeric import Reduction
from nori_dyn.observe.redundancy import redundancy
from nori_dyn.system.builder import System
from tests.closed_robots import four_bar, parallel_cranks, random_mechanism
from tests.least_squares import null_space
from tests.systems import ACCELERATIONS, INVERSE, TORQUES, UNLOADED, sensor_set

CHOICES = [
    ACCELERATIONS,
    TORQUES,
    {"type": "accelerometer", "links": "all"},
    {"type": "net_wrench", "links": "all"},
]


def random_system(seed: int) -> System:
    """A small tree with random sensors, no external wrench but on its last link."""
    rng = np.random.default_rng(seed)
    tree = autotree(3, 1 + seed % 2, 0.7, 0.9)
    last = tree.names[-1]
    entries = [{"type": "external_wrench", "links": {"except": last}, "value": 0}]
    for kind in CHOICES:
        key = "joints" if "joints" in kind else "links"
        owners = tree.joint_names if key == "joints" else tree.names
        chosen = [name for name in owners if rng.random() < 0.6]
        if chosen:
            entries.append({**kind, key: chosen})
    if rng.random() < 0.7:
        entries.append({"type": "external_wrench", "links": last, "components": ["mx", "fz"]})
    return System(tree, sensor_set(*entries))


def undetermined(system: System, q, without=()) -> set[str]:
    """The torques that the null space of the other rows moves, by SVD."""
    rows = [k for row in system.rows if row.name not in without for k in range(row.slice.start, row.slice.stop)]
    moved = np.abs(null_space(system.D(q).toarray()[rows], 1e-9)).max(axis=1, initial=0) > 1e-7
    return {name for name, there in zip(system.variable_names, moved, strict=True) if there and name[:3] == "tau"}


def check_failing_sets(system: System, q, size: int, what: object) -> None:
    """Compare what fails, and what is lost, with brute force at a configuration."""
    found, missing = redundancy(system, ("tau",), size=size), undetermined(system, q)
    torques = {name for name in system.variable_names if name.startswith("tau")}
    assert set(found.outputs) == torques - missing, what
    names = [row.name for row in system.measurements]
    assert found.sensors == tuple(names), what  # rows of loops are none
    expected: dict[tuple[str, ...], set[str]] = {}
    for k in range(1, size + 1):
        for some in itertools.combinations(names, k):
            gone = undetermined(system, q, some) - missing
            if gone and not any(set(smaller) < set(some) for smaller in expected):
                expected[some] = gone
    assert set(found.failing_sets) == set(expected), what
    alone = {some: gone for some, gone in expected.items() if len(some) == 1}
    assert {(name,): set(gone) for name, gone in found.lost.items()} == alone, what
    assert set(found.spare) == {name for name in names if (name,) not in expected}, what


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 20), marks=pytest.mark.long)])
def test_failing_sets_by_brute_force(seeds):
    for seed in seeds:
        system = random_system(seed)
        check_failing_sets(system, system.tree.random_configuration(seed), 3, seed)


@pytest.mark.parametrize("make", [four_bar, parallel_cranks, partial(random_mechanism, 8)])
def test_failing_sets_of_closed_robots_by_brute_force(make):
    tree = make()
    motion = {"type": "joint_acceleration", "joints": list(tree.joint_names[:2])}
    cells = [
        {"type": "linear_relation", "name": name, "terms": {name: 1}, "value": None}
        for name in System(tree, sensor_set(UNLOADED)).variable_names
        if name.startswith("loop")
    ]
    system = System(tree, sensor_set(TORQUES, motion, UNLOADED, *cells[:3]))
    check_failing_sets(system, closed_looks(Reduction(system), seed=1)[1][0], 2, make)


def test_every_sensor_of_a_square_system_is_critical():
    tree = autotree(4)
    found = redundancy(System(tree, INVERSE))
    assert set(found.critical) == {f"qdd:{name}" for name in tree.joint_names} | {f"fx:{name}" for name in tree.names}
    assert found.spare == ()
    assert found.failing_sets == tuple((name,) for name in found.critical)
    assert "a:link1.ax" not in found.lost["qdd:joint2"]
    assert {"a:link2.wz", "f:link2.mz", "tau:joint1"} <= set(found.lost["qdd:joint2"])
    assert "that may not" not in str(found)  # all may not


def test_known_values_do_not_fail():
    """tau = H qdd of two joints, all four read: any two of them tell the others."""
    found = redundancy(System(autotree(2), sensor_set(ACCELERATIONS, TORQUES, UNLOADED)), ("tau",), size=9)
    names = ("qdd:joint1", "qdd:joint2", "tau:joint1", "tau:joint2")
    assert (found.sensors, found.critical, found.size) == (names, (), 4)
    assert found.failing_sets == tuple(itertools.combinations(names, 3))


def test_what_cannot_be_asked():
    system = System(autotree(2), INVERSE)
    with pytest.raises(InputError, match="at least 1"):
        redundancy(system, size=0)
    with pytest.raises(PlanError, match="tau"):
        redundancy(system, ("torque",))
