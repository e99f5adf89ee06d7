"""Online: a solver runs a plan on states, checks what it is given, and says how far to trust what it returns."""
