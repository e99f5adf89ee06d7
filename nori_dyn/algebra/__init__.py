"""Scalars and spatial vectors: expressions with fingerprints, and the algebra written once over any scalar."""
