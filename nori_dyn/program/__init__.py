"""Straight-line programs: plans and functions of a robot lowered to expressions, and the kernels that run them."""
