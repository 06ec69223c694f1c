"""SCHEDULES: what happens when its time has come, once, whatever dies in between."""
