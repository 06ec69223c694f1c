"""COMPILE, what each target can do, and what it refuses of an object."""
