"""The append-only record of who changed what, from what, to what, and why."""
