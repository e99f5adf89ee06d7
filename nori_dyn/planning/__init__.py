"""Offline: the worst-case sparsity, the orderings with their costs, and the plan that keeps the best."""
