"""Robots with loops: ranks at closed configurations, what repeats, what is not seen, and what to add."""

from dataclasses import replace

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import NoConfigurationError, NotClosedError
from nori_dyn.model.closure import gaps
from nori_dyn.model.joints import axis_rotation
from nori_dyn.model.kinematics import positions
from nori_dyn.observe.generic import generic_rank
from nori_dyn.system.builder import System
from nori_dyn.system.sources import natural_sizes
from tests.closed_robots import four_bar, parallel_cranks, random_mechanism
from tests.mechanisms import stewart
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set

ZERO = 1e-9
"""Singular values of D in natural units, relative to the largest, below which they are zero."""

CLEAR = 1e3
"""How many times larger others are where a configuration is nothing special."""


def read(name: str) -> dict[str, object]:
    """A load cell for a number of d."""
    return {"type": "linear_relation", "name": f"cell:{name}", "terms": {name: 1}, "value": None}


def test_a_four_bar_in_space_repeats_three_rows_and_does_not_tell_three_forces_and_says_so():
    report = nd.observability(nd.System(four_bar(), sensor_set(TORQUES, UNLOADED)))
    assert report.deficiency == 3
    assert report.repeated == ("loop:bar.mx", "loop:bar.my", "loop:bar.fz")
    assert [part.words for part in report.unseen] == ["mx, my, fz of the internal wrench of loop 'bar'"]
    assert report.unseen[0].added == ("loop:bar",)
    out_of_plane = {
        f"{what}.{c}" for what in ("loop:bar", "f:crank", "f:coupler", "f:rocker") for c in ("mx", "my", "fz")
    }
    assert set(report.unobservable) == out_of_plane
    assert report.error is None
    assert report.gap > 1e9
    said = str(report)
    words = " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80
    assert "at closed configurations of the loops and couplings" in words
    assert "loop:bar.mx, loop:bar.my, loop:bar.fz: redundant wherever" in words
    assert "poses at which no loop is closed: at the zero of every joint" in words


@pytest.mark.parametrize("tilt", [1e-14, 1e-12, 1e-10])
def test_an_axis_that_is_off_by_rounding_makes_no_other_mechanism(tilt):
    """Exact arithmetic on such numbers would: in it the three rows out of the plane are independent."""
    plane = four_bar()
    elbow = Transform(axis_rotation((1.0, 0.0, 0.0), tilt), np.zeros(3)) @ plane.X_tree[1]
    tilted = replace(plane, X_tree=(plane.X_tree[0], elbow, plane.X_tree[2]))
    reports = [nd.observability(nd.System(tree, sensor_set(TORQUES, UNLOADED))) for tree in (plane, tilted)]
    assert [report.deficiency for report in reports] == [3, 3]
    assert reports[1].repeated == reports[0].repeated
    assert set(reports[1].unobservable) == set(reports[0].unobservable)


def test_rows_that_are_independent_where_loops_are_open_repeat_where_they_are_closed():
    system = nd.System(parallel_cranks(), sensor_set(TORQUES, UNLOADED))
    report = nd.observability(system, where=None)
    open_ = np.random.default_rng(0).normal(size=4)
    assert np.linalg.matrix_rank(system.D(open_).toarray(), ZERO) == system.shape[1]
    assert (report.generic_rank, report.deficiency) == (system.shape[1] - 1, 1)
    assert len(report.repeated) == 1
    assert [part.words for part in report.unseen] == ["1 combination of the internal wrench of loop 'middle' and 'end'"]
    assert not any(name.startswith("qdd") for name in report.unobservable)
    (found,) = report.additions
    assert [sensor.words for sensor in found.sensors] == ["a load cell that reads loop:middle.fx"]
    for sensor in (*found.sensors, *found.others[:1]):
        more = sensor_set(TORQUES, UNLOADED, dict(sensor.entry))
        assert nd.observability(nd.System(system.tree, more), where=None).is_observable


def test_load_cells_in_the_rods_of_a_stewart_platform_tell_the_forces_of_its_legs():
    unloaded = {**UNLOADED, "links": {"except": "platform"}}
    passive = {**TORQUES, "joints": {"match": "barrel.*|platform"}, "value": 0}
    motion = {**ACCELERATIONS, "joints": "platform"}
    tree = stewart()

    def not_told(*cells: str) -> set[str]:
        system = System(tree, sensor_set(unloaded, passive, motion, *map(read, cells)))
        moved = generic_rank(system).moved
        return {name for name, there in zip(system.variable_names, moved, strict=True) if there}

    forces = {f"tau:rod{k}" for k in range(6)}
    before, with_one = not_told(), not_told("loop:leg0.fz")
    assert forces < before
    assert any(name.startswith("fx:platform") for name in before)
    assert forces - with_one == {"tau:rod0"}
    assert not not_told(*(f"loop:leg{k}.fz" for k in range(6)))


def test_sensors_are_placed_where_loops_are_closed():
    cells = [read(f"loop:{name}.{c}") for name in ("middle", "end") for c in ("fx", "fy")]
    candidates = nd.placement.Candidates.from_dict(
        {
            "name": "shop",
            "measurements": [UNLOADED],
            "candidates": {"measurements": [TORQUES, *({**cell, "sigma": 0.1} for cell in cells)]},
            "costs": {"joint_torque": 1.0, "linear_relation": 3.0},
        }
    )
    tree = parallel_cranks()
    found = nd.place(tree, candidates, outputs=None)
    assert found.is_optimal
    assert found.cost == 4 * 1.0 + 3.0  # all torques and one load cell: the cranks share what they carry
    assert nd.observability(nd.System(tree, found.sensors), where=None).is_observable


def some_sensors(tree: nd.KinematicTree, seed: int) -> System:
    rng = np.random.default_rng(seed)
    torques = {**TORQUES, "joints": [name for name in tree.joint_names if rng.random() < 0.8]}
    motion = {**ACCELERATIONS, "joints": [name for name in tree.joint_names if rng.random() < 0.3]}
    unloaded = {**UNLOADED, "links": [name for name in tree.names if rng.random() < 0.9]}
    return System(tree, sensor_set(*(e for e in (torques, motion, unloaded) if e.get("joints", e.get("links")))))


def rank_by_singular_values(system: System, configurations: np.ndarray) -> tuple[int, set[str]]:
    """The rank of the dense D, and what it does not determine, at the clearest of some configurations."""
    sizes = natural_sizes(system)
    best: tuple[float, int, np.ndarray] | None = None
    for q in configurations:
        D = system.D(q).toarray() * sizes.unknowns / sizes.rows[:, None]
        _, values, V = np.linalg.svd(D)
        values = np.concatenate([values, np.zeros(len(V) - len(values))]) / values[0]
        rank = int(np.sum(values > ZERO))
        clear = values[rank - 1] / max(ZERO, values[rank] if rank < len(values) else 0.0)
        if best is None or clear > CLEAR > best[0] or (clear > CLEAR and rank > best[1]):
            best = clear, rank, np.abs(V[rank:]).max(axis=0, initial=0.0)
    assert best is not None
    names = np.array(system.variable_names)
    return best[1], set(names[best[2] > 1e-7].tolist())


@pytest.mark.parametrize("mechanisms", [6, pytest.param(50, marks=pytest.mark.long)])
def test_ranks_are_those_of_singular_values_on_random_mechanisms(mechanisms):
    looked_at = 0
    seed = 0
    while looked_at < mechanisms:
        seed += 1
        tree = random_mechanism(seed)
        try:
            Q = tree.random_configurations(4, seed)
        except NotClosedError:
            continue
        looked_at += 1
        system = some_sensors(tree, seed)
        found = generic_rank(system, seed)
        rank, moved = rank_by_singular_values(system, Q)
        names = {name for name, there in zip(system.variable_names, found.moved, strict=True) if there}
        assert (seed, found.rank, names) == (seed, rank, moved)
        assert found.gap > 100, seed


def test_a_pose_at_which_loops_are_open_is_refused():
    with pytest.raises(NoConfigurationError, match=r"open there: ask for another pose"):
        nd.configurations_where(four_bar(), "at_zero", n=2)


@pytest.mark.parametrize(("condition", "frames"), [("closed", ()), ("parallel", ("link2", "link5"))])
def test_special_poses_are_closed(condition, frames):
    tree = random_mechanism(8)
    Q = nd.configurations_where(tree, condition, frames, n=3)
    assert np.abs(gaps(positions(tree, Q.T))).max() < 1e-9
