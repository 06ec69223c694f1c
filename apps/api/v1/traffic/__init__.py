"""SHOW to machines: health, overflow, limits, and what would happen to a request."""
