"""Tenants and machines: accounts, regions, fleets, nodes, grants."""
