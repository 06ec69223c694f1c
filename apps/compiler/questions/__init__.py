"""COMPILE, questions to a snapshot: traces, assertions, loops, and snapshots without some objects."""
