"""The system: its layout, rows and text, its inputs, and its worst-case pattern."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import nori_dyn as nd
from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.kinematics import positions
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.assembly import assemble
from nori_dyn.system.builder import System
from nori_dyn.system.rows import NewtonEuler, SensorRow
from nori_dyn.system.trace import SymbolicSystem, trace
from nori_dyn.system.variables import VariableKey
from tests.systems import ACCELERATIONS, INVERSE, TORQUES, UNLOADED, sensor_set, values_at
from tests.tolerances import EXACT, RECURSION, ROUNDING, assert_close
from tests.trees import TREES, random_state


def inverse_dynamics(tree: KinematicTree, **wrench: float) -> System:
    rows = [ACCELERATIONS, {"type": "external_wrench", "links": "all", **wrench}]
    return System(tree, sensor_set(*rows, name="inverse_dynamics"))


@pytest.fixture
def arm() -> KinematicTree:
    return autotree(2).replace(gravity=(0.0, -9.81, 0.0))


def test_layout_of_rows_and_variables_and_the_fingerprint_of_robot_and_sensors(arm):
    system = inverse_dynamics(arm)
    assert system.fingerprint == inverse_dynamics(arm.replace(name="other")).fingerprint
    assert system.fingerprint != inverse_dynamics(arm, value=0).fingerprint
    assert system.fingerprint != inverse_dynamics(arm.replace(gravity=(0.0, 0.0, 0.0))).fingerprint
    assert system.shape == (40, 40)
    assert [(v.name, v.slice) for v in system.variables[:5]] == [
        ("a:link1", slice(0, 6)),
        ("f:link1", slice(6, 12)),
        ("tau:joint1", slice(12, 13)),
        ("fx:link1", slice(13, 19)),
        ("qdd:joint1", slice(19, 20)),
    ]
    assert [(row.name, row.slice, row.y) for row in system.rows] == [
        ("3a:link1", slice(0, 6), slice(0, 0)),
        ("3f:link1", slice(6, 12), slice(0, 0)),
        ("3tau:joint1", slice(12, 13), slice(0, 0)),
        ("3a:link2", slice(13, 19), slice(0, 0)),
        ("3f:link2", slice(19, 25), slice(0, 0)),
        ("3tau:joint2", slice(25, 26), slice(0, 0)),
        ("qdd:joint1", slice(26, 27), slice(0, 1)),
        ("qdd:joint2", slice(27, 28), slice(1, 2)),
        ("fx:link1", slice(28, 34), slice(2, 8)),
        ("fx:link2", slice(34, 40), slice(8, 14)),
    ]
    assert system.ny == 14
    assert system.measurement_names[:4] == ("qdd:joint1", "qdd:joint2", "fx:link1.mx", "fx:link1.my")
    assert system.variable_names[6:14] == (
        *(f"f:link1.{c}" for c in ("mx", "my", "mz", "fx", "fy", "fz")),
        "tau:joint1",
        "fx:link1.mx",
    )
    assert system.column("fx", 1) == slice(33, 39)
    assert repr(system) == "System('autotree(2, 1, 0, 1)' with 'inverse_dynamics', 40 rows, 40 variables)"


def test_a_system_without_sensors_has_the_dynamics_only(arm):
    system, q = System(arm, SensorSet("none", ())), np.zeros(2)
    assert (system.shape, system.ny) == ((26, 40), 0)
    assert (system.D(q).shape, system.b(q, q, {}).shape) == ((26, 40), (26,))
    assert isinstance(system.D(q), sp.csc_array)


# Readings.


def test_readings_are_flat_or_by_name(arm):
    system = inverse_dynamics(arm)
    q, qd = np.array([0.3, -0.2]), np.array([1.0, 2.0])
    y = np.arange(14.0)
    by_block = {"fx:link2": y[8:], "qdd:joint1": 0.0, "qdd:joint2": [1.0], "fx:link1": y[2:8].tolist()}
    by_number = dict(zip(system.measurement_names, y, strict=True))
    mixed = {"qdd:joint1": 0, "qdd:joint2": 1, "fx:link1": y[2:8]} | {k: by_number[k] for k in by_number if "k2" in k}
    for reading in (y, y.tolist(), by_block, by_number, mixed):
        assert np.array_equal(system.reading(reading), y)
        assert np.array_equal(system.b(q, qd, reading), system.b(q, qd, y))


def test_wrong_readings_are_refused(arm):
    system = inverse_dynamics(arm)
    y = dict(zip(system.measurement_names, np.arange(14.0), strict=True))
    q = np.zeros(2)
    short = {name: value for name, value in y.items() if name != "fx:link1.mz"}
    for reading, message in (
        (short, "y lacks 1 of 14 measurements: fx:link1.mz."),
        ({}, "y lacks 14 of 14 measurements: qdd:joint1, "),
        (y | {"qdd:joint1": [1.0, 2.0]}, "y['qdd:joint1'] has shape (2,), expected 1 numbers"),
        (y | {"fx:link1": [1.0, 2.0]}, "y['fx:link1'] has shape (2,), expected 6 numbers"),
        (y | {"fx:link1": np.zeros((6, 1))}, "y['fx:link1'] has shape (6, 1), expected 6 numbers"),
        (y | {"qdd:jiont1": 1.0}, "unknown measurement 'qdd:jiont1' in y of sensors 'inverse_dynamics'"),
        (np.zeros(13), "y has shape (13,), expected (14,)"),
        (np.zeros((14, 1)), "y has shape (14, 1), expected (14,)"),
        (np.r_[np.zeros(13), math.nan], "y[13] ('fx:link2.fz') is nan: values must be finite"),
        (y | {"qdd:joint2": math.inf}, "y[1] ('qdd:joint2') is inf"),
    ):
        with pytest.raises(InputError) as caught:
            system.b(q, q, reading)
        assert message in str(caught.value)
    with pytest.raises(UnknownNameError, match="Did you mean 'qdd:joint1'"):
        system.reading({"qdd:jiont1": 1.0})


def test_wrong_states_are_refused_by_name():
    tree = TREES["two_roots"]
    system = inverse_dynamics(tree)
    q, qd, y = tree.random_configuration(0), np.zeros(tree.nv), np.zeros(system.ny)
    for wrong, message in (
        (q[:-1], r"q has shape \(15,\), expected \(16,\)"),
        (q[None], r"q has shape \(1, 16\)"),
        (np.where(np.arange(16) == 2, math.nan, q), r"q\[2\] is nan"),
        (np.where(np.arange(16) == 5, math.inf, q), r"q\[5\] is inf"),
        (2 * q, r"joint 'joint3', q\[4:8\], has length 2 instead of 1"),
    ):
        for refuse in (lambda wrong=wrong: system.D(wrong), lambda wrong=wrong: system.b(wrong, qd, y)):
            with pytest.raises(InputError, match=message):
                refuse()
    stretched = q.copy()  # of quaternions close to unit length, which are normalised
    for part in tree.quaternions:
        stretched[part] *= 1 + 5e-4
    assert_close(system.D(stretched).toarray(), system.D(q).toarray(), ROUNDING)
    assert_close(system.b(stretched, qd + 1, y + 1), system.b(q, qd + 1, y + 1), ROUNDING)
    for wrong, message in ((q, r"qd has shape \(16,\), expected \(14,\)"), (qd + math.nan, r"qd\[0\] is nan")):
        with pytest.raises(InputError, match=message):
            system.b(q, wrong, y)


# The worst-case pattern.

TRACED = {
    "chain": autotree(6),
    "skewed chain": autotree(5, skew=0.7, taper=0.9),
    "branching 1.5": autotree(6, branching=1.5, skew=math.pi / 2),
    "branching 2": autotree(7, branching=2.0),
    "mixed": random_tree(7, seed=41),
    "mixed, aligned": random_tree(8, seed=42, aligned=1.0),
}


def traced(tree: KinematicTree) -> tuple[System, SymbolicSystem]:
    system = inverse_dynamics(tree)
    return system, trace(system, seed=5)


def test_pattern_covers_every_nonzero_and_holds_no_other():
    """On batches; no entry is lost to rounding where the pattern says zero for all q, none is zero but by chance."""
    for seed, tree in enumerate([*TRACED.values(), *(random_tree(20, seed=k, aligned=k / 5) for k in range(6))]):
        system, symbolic = traced(tree)
        pattern = symbolic.pattern.toarray()
        assert pattern.dtype == bool
        rng, held = np.random.default_rng(seed), np.zeros(system.shape, dtype=bool)
        Q = np.stack([tree.random_configuration(rng) for _ in range(20)], axis=-1)
        for row, column, block in system.blocks(positions(tree, Q)):
            nonzero = np.atleast_3d(block != 0)
            assert np.array_equal(nonzero.any(axis=-1), pattern[row, column])
            assert np.array_equal(nonzero.all(axis=-1), pattern[row, column])
            held[row, column] = pattern[row, column]
        assert np.array_equal(held, pattern)


@pytest.mark.parametrize("tree", TRACED.values(), ids=TRACED)
def test_traced_entries_are_those_of_D_and_b(tree):
    system, symbolic = traced(tree)
    assert symbolic.shape == system.shape
    order = np.lexsort((symbolic.rows, symbolic.columns))
    assert np.array_equal(order, np.arange(len(order)))
    other = trace(system, seed=6)
    assert np.array_equal((other.rows, other.columns), (symbolic.rows, symbolic.columns))
    assert len(other.graph) == len(symbolic.graph)
    for seed in range(3):
        q, qd, qdd, fx = random_state(tree, seed)
        y = np.r_[qdd, fx.ravel()]
        D, b = values_at(symbolic, q, qd, y)
        assert_close(D.toarray(), system.D(q).toarray(), ROUNDING)
        assert_close(b, system.b(q, qd, y), RECURSION)


def test_an_equation_of_motion_is_known_by_what_it_gives():
    """With -1 on it, in rows of its own: together they are all the rows of motion."""
    for name in ("one_free_body", "two_roots", "fixed_joints", "mixed_8"):
        tree = TREES[name]
        system = System(tree, INVERSE)
        D = system.D(tree.random_configuration(0)).toarray()
        found = [system.row(NewtonEuler(given, i)) for i in range(tree.n_links) for given in ("a", "f", "tau")]
        for row in found:
            column = system.column(row.key.gives, row.key.body)
            assert np.array_equal(D[row.slice, column], -np.eye(column.stop - column.start))
            assert (row.body, row.is_dynamic) == (row.key.body, True)
        assert found == [row for row in system.rows if row.is_dynamic]


def test_rows_of_sensors_are_known_by_their_number():
    system = System(TREES["mixed_8"], INVERSE)
    assert [row.key for row in system.sensor_rows] == [SensorRow(k) for k in range(len(system.sensor_rows))]
    for row in system.sensor_rows:
        assert system.row(row.key) is row
        assert (row.body, row.is_dynamic) == (None, False)
    assert system.rows[-len(system.sensor_rows) :] == system.sensor_rows
    assert NewtonEuler("a", 0) != VariableKey("a", 0)
    assert [v.key for v in system.variables][:2] == [VariableKey("a", 0), VariableKey("f", 0)]


def test_an_entry_that_is_zero_in_some_of_a_batch_is_kept():
    changing = np.array([[[0.0, 2.0], [0.0, 0.0]]])
    constant = np.array([[3.0], [0.0]])
    blocks = [(slice(0, 1), slice(1, 3), changing), (slice(1, 3), slice(0, 1), constant)]
    found = assemble(blocks, (3, 3), (2,))
    assert [*zip(found.rows, found.columns, strict=True)] == [(0, 1), (1, 0)]
    first, second = (D.toarray() for D in found.matrices())
    assert_close(second - first, 2.0 * (np.arange(9).reshape(3, 3) == 1), EXACT)
    assert first[1, 0] == second[1, 0] == 3.0


def rows(thing) -> list[list[str]]:
    return [line.split() for line in str(thing).splitlines()]


def test_a_system_as_text():
    system = nd.System(nd.autotree(3), sensor_set(ACCELERATIONS, UNLOADED))
    found = rows(system)
    assert found[2] == ["equations", "60", "for", "60", "unknowns,", "as", "many", "as", "it", "takes"]
    assert found[3] == ["readings", "qdd:joint1,", "qdd:joint2,", "qdd:joint3"]
    assert ["equations", "of", "motion", "39", "0", "0", "0"] in found
    assert ["joint_acceleration", "3", "3", "0", "0"] in found
    assert ["external_wrench", "18", "0", "18", "0"] in found
    assert ["tau", "joint", "torque", "3"] in found
    weighted = nd.System(nd.autotree(3), sensor_set({**ACCELERATIONS, "sigma": 0.5}, TORQUES, UNLOADED))
    assert "weighted least squares with 3 weights" in " ".join(str(weighted).split())
    assert ["joint_acceleration", "3", "3", "0", "3"] in rows(weighted)
    assert ["joint_torque", "3", "3", "0", "0"] in rows(weighted)
    short = nd.System(nd.autotree(3), sensor_set(ACCELERATIONS))
    assert rows(short)[2][-3:] == ["18", "too", "few"]


def test_a_set_of_sensors_as_text():
    feet = {"type": "external_wrench", "links": ["a", "b"], "components": ["fz"], "sigma": [0.25], "name": "cell"}
    text = str(sensor_set(ACCELERATIONS, feet, {"type": "joint_torque", "joints": {"match": "leg.*"}, "value": 0}))
    found = [" ".join(line.split()) for line in text.splitlines()]
    assert "joint_acceleration joints: all exact" in found
    assert "external_wrench name: cell; links: a, b; components: fz 0.25" in found
    assert "joint_torque value: 0; joints: match leg.* exact" in found
    biped = nd.sensors("biped_contacts")
    assert "while l_foot is open" in " ".join(str(biped).split())
    assert repr(biped) == "SensorSet('biped_contacts', 6 measurements, 2 contacts)"
