"""The fallback of the planned order: a state solved with pivoting of its own, in extended precision."""
