"""Kernels: each runs a straight-line program on arrays. Plans (`backends`) and functions of a robot stand on them.

A kernel knows expressions and arrays only: no robot, no pivots that shrink, no way out where numbers are not good.
"""
