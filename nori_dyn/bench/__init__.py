"""Benchmarks: suites that measure, peers that they measure against, and reports of both.

A suite is one module of `suites/`, registered by name; a peer is one module of `peers/`, registered by name. What both
share is in `measure` (runs that take turns), `records` (what a suite returns) and `robots` (what is measured on).
"""
