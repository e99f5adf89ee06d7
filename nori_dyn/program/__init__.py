"""Straight-line programs: expressions lowered in the planned order, and the backends that run them."""
