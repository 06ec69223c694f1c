"""DEFINE, dry runs: a change is made, looked at, and undone."""
