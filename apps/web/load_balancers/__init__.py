"""SHOW to people: load balancers, listeners and certificates."""
