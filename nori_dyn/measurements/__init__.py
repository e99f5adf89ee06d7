"""The pluggable layer of sensors: one class in one file each, found by the name in its `type` field.

To add one: subclass `Measurement`, yield equations from `on(tree)`, name it in `registry.BUILT_IN` (or, from
another package, under the entry-point group "nori_dyn.measurements"), and add a row to the tables of
test_measurements.py, test_equations.py and test_names.py in tests/contracts.
"""
