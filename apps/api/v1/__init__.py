"""SHOW to machines: version 1 of the REST API, which only grows."""
