"""SHOW to operators: management commands."""
