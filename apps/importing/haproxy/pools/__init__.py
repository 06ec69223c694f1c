"""Backends as pools: servers, checks, persistence."""
