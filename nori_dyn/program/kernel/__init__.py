"""Kernels: each runs a straight-line program on arrays; those that run plans are the backends of `registry`.

To add one: a class in one file here that obeys `base.Kernel`; its maker from a plan, in `registry.BACKENDS`; a row in
tests/contracts/test_backends.py.
"""
