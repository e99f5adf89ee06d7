"""The suites, one a module: each answers one question with a list of records.

A new one is a module with a `Suite`, and a line in `registry`.
"""
