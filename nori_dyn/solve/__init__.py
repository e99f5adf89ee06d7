"""Online: a solver runs a plan on states, checks its inputs, and reports how reliable its results are."""
