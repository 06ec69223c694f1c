"""Policies as rules: a map says which blocks hold for a route, and each block is written once for all of its routes."""
