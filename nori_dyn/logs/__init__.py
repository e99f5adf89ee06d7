"""Recorded robots: formats of logs, the mapping of their columns to the robot's, clocks, and files of estimates.

    source ─► binding ─► clock ─► samples ─► (plan) ─► writer
      │         ▲ mapping
      └─ streams, columns

A format is one module of `formats/`: a `LogSource` that reads it, a `Writer` that writes estimates in it, and its row
in `registry.py`.
"""
