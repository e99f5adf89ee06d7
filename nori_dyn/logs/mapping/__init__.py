"""Mappings of the columns of a log to the numbers of a robot's samples."""
