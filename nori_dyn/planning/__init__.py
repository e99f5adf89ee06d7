"""Offline: the worst-case sparsity, the orderings, what each costs, and the plan that keeps the best."""
