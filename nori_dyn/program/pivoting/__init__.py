"""Another way where the planned order does not hold: a state solved with pivots of its own, in extended precision."""
