"""Rows of loops that repeat others: left out, and what nothing tells is named instead of shown."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.ranges import numbers_in
from nori_dyn.algebra.spatial import Transform
from nori_dyn.components import Coupling
from nori_dyn.errors import ModelError, NotClosedError, NotRequestedError, PlanError
from nori_dyn.model import closure
from nori_dyn.model.closure import gap_rate
from nori_dyn.model.kinematics import positions
from nori_dyn.model.synthetic import random_tree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.repeats import ReducedSystem, remove_repeats
from nori_dyn.system.builder import System
from tests.closed_robots import four_bar
from tests.systems import TORQUES, UNLOADED, sensor_set
from tests.tolerances import SOLVED, assert_close


def planar(constrains: object, **options: float) -> KinematicTree:
    """The four-bar of `closed_robots`, upright."""
    return four_bar(constrains, **options).replace(gravity=(0.0, -9.81, 0.0))


def closed_state(tree: KinematicTree, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return nd.tools.closed(tree, tree.random_configuration(rng), rng.normal(size=tree.nv))


def check_solution(system: System, y: np.ndarray, only: np.ndarray | None = None) -> ReducedSystem:
    """Check that what a reduced system tells, or only some of it, is the smallest d with which all rows agree."""
    q, qd = closed_state(system.tree)
    D, b = system.D(q).toarray(), system.b(q, qd, y)
    expected = np.linalg.lstsq(D, -b, 1e-10)[0]
    assert np.abs(D @ expected + b).max() < 1e-9
    reduced = remove_repeats(system)
    D = reduced.system.D(q).toarray()
    assert np.linalg.matrix_rank(D, 1e-10) == len(D) == D.shape[1]
    d = np.linalg.solve(D, -reduced.system.b(q, qd, y))
    told = np.delete(np.arange(len(d)), reduced.undetermined) if only is None else only
    assert_close(d[told], expected[told], SOLVED)
    return reduced


@pytest.mark.parametrize(
    ("constrains", "repeated"), [(["fx", "fy"], 0), ("point", 1), ("hinge", 3), (["mx", "my", "fx", "fy"], 2)], ids=str
)
def test_a_planar_four_bar_in_space_repeats_what_its_hinges_say(constrains, repeated):
    reduced = check_solution(System(planar(constrains), sensor_set(TORQUES, UNLOADED)), np.array([1.0, 2.0, 3.0]))
    assert len(reduced.system.of_components.repeats) == repeated


def test_rows_that_are_nothing_but_rounding_repeat_others():
    """In a plane that is no coordinate plane a row of zeros is one of 1e-16."""
    tree = planar("point")
    E = random_tree(1, seed=9).X_tree[0].E
    X_tree = tuple(Transform(E @ X.E, E.T @ X.r) if tree.is_root(i) else X for i, X in enumerate(tree.X_tree))
    tilted = tree.replace(X_tree=X_tree)
    q, _ = closed_state(tilted)
    row = gap_rate(positions(tilted, q))[2]
    assert 0 < np.abs(row).max() < 1e-14
    reduced = remove_repeats(System(tilted, sensor_set(TORQUES, UNLOADED)))
    assert [repeat.row for repeat in reduced.system.of_components.repeats] == [2]


def test_what_nothing_tells_is_no_output_and_is_named():
    system = nd.System(planar("hinge"), sensor_set(TORQUES, UNLOADED))
    plan = nd.plan(system)
    assert [output.name for output in plan.outputs] == ["a", "tau", "fx", "qdd"]
    with pytest.raises(PlanError, match=r"output 'f:crank': the sensors do not determine f:crank: .*load cell"):
        nd.plan(system, outputs=["f:crank"], cache=False)
    estimate = plan.solver("numpy").solve(*closed_state(system.tree), np.zeros(3))
    with pytest.raises(NotRequestedError, match="'loop:bar' was not requested"):
        _ = estimate["loop:bar"]
    text = str(plan)
    assert "loop:bar.mx, loop:bar.my, loop:bar.fz: redundant" in text
    assert "f:crank, f:coupler, f:rocker, loop:bar" in text


def test_load_cells_in_the_loop_tell_what_is_left_and_one_of_three_leaves_two_forces():
    cells = [
        {"type": "linear_relation", "name": c, "terms": {f"loop:bar.{c}": 1}, "value": None} for c in ("mx", "my", "fz")
    ]
    tree = planar("hinge")
    y = np.array([1.0, 2.0, 3.0, 0.5, -0.5, 4.0])
    reduced = check_solution(System(tree, sensor_set(TORQUES, UNLOADED, *cells)), y)
    assert [repeat.is_zero for repeat in reduced.system.of_components.repeats] == [False] * 3
    assert not len(reduced.undetermined)
    reduced = remove_repeats(System(tree, sensor_set(TORQUES, UNLOADED, cells[1])))
    assert sorted(repeat.is_zero for repeat in reduced.system.of_components.repeats) == [False, True, True]
    n, m = reduced.system.shape
    assert n == m


def test_a_coupling_that_says_what_another_says():
    couplings = [
        Coupling(name=f"c{k}{on}", joint=f"joint{k}", of={f"joint{on}": ratio})
        for k, on, ratio in ((2, 1, 2.0), (3, 2, -2.0), (3, 1, -4.0))
    ]
    tree = random_tree(4, seed=3, kinds=("revolute",)).replace(components=tuple(couplings))
    system = System(tree, sensor_set(TORQUES, UNLOADED))
    reduced = check_solution(system, np.arange(4.0), numbers_in([system.column("qdd", i) for i in range(4)]))
    assert len(reduced.system.of_components.repeats) == 1


def test_a_loop_that_cannot_be_closed_is_told_with_its_gap(monkeypatch):
    monkeypatch.setattr(closure, "DRAWS", 1)
    with pytest.raises(NotClosedError, match=r"'loop:bar' stays open by 0\.\d+ .*Begin nearer") as told:
        nd.plan(nd.System(planar(["fx", "fy"], ground=2.5), sensor_set(TORQUES, UNLOADED)), cache=False)
    assert told.value.part == "loop:bar"
    assert 0.5 / np.sqrt(2) <= told.value.gap <= 0.5 + 1e-6  # the larger component of half a metre


def test_loops_that_lock_the_robot_are_refused():
    with pytest.raises(ModelError, match=r"its loops and couplings \('loop:bar'\) hold all of its 3 freedoms"):
        nd.plan(nd.System(planar("pose", ground=0.5), sensor_set(TORQUES, UNLOADED)), cache=False)


def test_the_gap_of_an_open_state_is_on_its_estimate():
    tree = planar(["fx", "fy"])
    solver = nd.plan(nd.System(tree, sensor_set(TORQUES, UNLOADED))).solver("numpy")
    q, qd = closed_state(tree)
    assert solver.solve(q, qd, np.zeros(3)).gap < 1e-9
    open_q = q + np.array([0.0, 0.0, 1e-3])
    assert solver.solve(open_q, qd, np.zeros(3)).gap == pytest.approx(0.7e-3, rel=0.5)
    assert "gap of loops" in str(solver.solve(open_q, qd, np.zeros(3)))
    batch = solver.solve_batch(np.array([q, open_q]), np.array([qd, qd]), np.zeros((2, 3)))
    assert batch.gap.shape == (2,)
    assert batch.gap[0] < 1e-9 < batch.gap[1]
