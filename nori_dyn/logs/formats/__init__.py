"""File formats of logs, one a module: a `LogSource` that reads it, a `Writer` that writes estimates in it.

A new one is a module here, its row in `registry.py`, and its row in `tests/contracts/test_log_formats.py`.
"""
