"""What a robot's parameters are: which combinations of them its sensors tell, and what its logs say that they are.

The equations of motion are linear in inertias, rotors, friction, springs, offsets and gains as well, once the motion is
known. So every reading is a row of numbers times the parameters: the regressor.

Source: docs/design.md, 4.11.
"""
