"""Parameters of a robot: which combinations of them are identifiable from its sensors, and estimates from its logs.

The equations of motion are linear in inertias, rotors, friction, springs, offsets and gains as well, once the motion is
known. So every reading is a row of numbers times the parameters: the regressor.

Source: docs/design.md, 4.11.
"""
