"""What ties the columns of a log to a robot: mappings, drafts of them, and the numbers of a sample by name."""
