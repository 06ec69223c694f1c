"""SHOW to machines: runs and comparisons of capacity tests."""
