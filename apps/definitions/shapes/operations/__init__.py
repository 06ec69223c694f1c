"""What runs against the platform: capacity tests, schedules."""
