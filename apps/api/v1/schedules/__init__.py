"""SHOW to machines: schedules beyond their definitions, and their triggers."""
