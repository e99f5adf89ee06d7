"""Files, read and written whole or not at all: robots, sensor configs, plan files, logs, exported code."""
