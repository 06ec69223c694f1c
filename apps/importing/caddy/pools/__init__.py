"""`reverse_proxy` as a pool."""
