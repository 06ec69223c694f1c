"""Ports, certificates and what else a frontend says of its connections."""
