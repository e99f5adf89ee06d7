"""Is what is tested noticed? Faults put into the code, one at a time, and who finds them: `python -m tests.mutants`."""
