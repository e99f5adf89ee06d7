"""Mistakes that were made once: one file a topic, each test failed before its mend."""
