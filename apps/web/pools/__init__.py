"""SHOW to people: pools, their servers and limits."""
