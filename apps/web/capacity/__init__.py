"""SHOW to people: capacity tests, their runs and what they found."""
