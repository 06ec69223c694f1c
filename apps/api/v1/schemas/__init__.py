"""SHOW to machines, written down: what every noun looks like when it is sent and when it is shown, field by field."""
