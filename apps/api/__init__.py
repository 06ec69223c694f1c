"""SHOW to machines: the REST API."""
