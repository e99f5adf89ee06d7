"""The linear system D(q) d + b(q, qd) = 0: variables, equations, and their assembly over any scalar.

One seam: an `Equation`. The Newton-Euler rows and every sensor implement it, and nothing above distinguishes them.
"""
