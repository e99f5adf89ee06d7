"""Orderings: each gives the row and column permutations of an elimination.

To add one: one function in one file here, `(problem) -> Ordering`, named in `registry.ORDERINGS`, and a row in
tests/contracts/test_orderings.py.
"""
