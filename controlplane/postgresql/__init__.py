"""Wiring of PostgreSQL: Django's backend, and no waiting for a host that says nothing."""
