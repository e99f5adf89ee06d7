"""Whether a log is plausible for a robot, in its units and its time, and whether its readings fit together.

The checks use the knowledge of the model: limits, weight, reach, and the equations. They are made to see a wrong unit,
order, sign or step of time, not a noisy sensor, and they change nothing.

To add one: a function in a module here that yields `PlausibilityWarning`s, and is called by `plausibility_warnings`.
"""
