"""SHOW to machines, written down: what each noun looks like, field by field."""
