"""Upstreams of nginx.conf as pools."""
