"""Plans, solvers and trackers of a robot with its sensors, and logs that run through them."""
