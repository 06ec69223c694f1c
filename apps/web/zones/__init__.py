"""SHOW to people: DNS zones and records."""
