"""Straight-line programs: expressions lowered in the planned order, functions of a robot, and the backends that run them."""
