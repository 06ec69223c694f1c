"""SHOW to operators how Spillway itself does: its parts, its processes, its backups."""
