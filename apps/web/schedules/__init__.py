"""SHOW to people: schedules and their calendar."""
