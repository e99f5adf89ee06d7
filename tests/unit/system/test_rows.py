"""Rows are found by what they are of, not by where they stand or what they are called."""

import numpy as np

from nori_dyn.system.builder import System
from nori_dyn.system.rows import NewtonEuler, SensorRow
from nori_dyn.system.variables import VariableKey
from tests.systems import INVERSE
from tests.trees import TREES


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
