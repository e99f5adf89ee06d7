"""The only folder that opens files: robots, sensor configs, plan files and their cache, logs, pictures."""
