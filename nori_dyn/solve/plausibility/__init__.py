"""Whether a log is likely: of the robot, in its units and its time, and of readings that fit together.

The checks know what the model knows: limits, weight, reach, and the equations. They are made to see a wrong unit,
order, sign or step of time, not a noisy sensor, and they change nothing.

To add one: a function in a module here that yields `Doubt`s, and is called by `doubts`.
"""
