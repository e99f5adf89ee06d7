"""Backends: each runs a plan on states.

To add one: one file here with a class that obeys `base.Backend`, named in `registry.BACKENDS`, and a row in
tests/contracts/test_backends.py.
"""
