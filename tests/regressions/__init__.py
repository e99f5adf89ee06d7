"""One test a mistake that was found from outside, each of which failed before it was mended."""
