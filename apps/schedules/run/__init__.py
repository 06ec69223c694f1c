"""SCHEDULES: from an instant that has come to what was done about it."""
