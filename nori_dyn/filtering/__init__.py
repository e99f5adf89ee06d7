"""Estimates over time: what persists from tick to tick, as a square-root information filter and smoother."""
