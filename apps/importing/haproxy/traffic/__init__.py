"""Frontends: listeners, and lists of rules as routes."""
