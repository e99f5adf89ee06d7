"""Drafts of mappings: what the columns of a log are likely to be, by their names and by how their numbers move."""
