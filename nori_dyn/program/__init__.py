"""Straight-line programs: plans and functions of a robot lowered to expressions, and the backends that run them."""
