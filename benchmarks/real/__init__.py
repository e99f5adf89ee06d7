"""Robots that exist: what their logs tell of them, held against what else was measured on them.

One module a data set. Each says what was estimated, what it was held against, and the error. Beside each are the
mapping of its log (`*.log.yaml`) and its sensors (`*.sensors.yaml`). `python -m benchmarks.real --data DIR` makes the
table of all.
"""
