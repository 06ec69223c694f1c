"""Reads nginx.conf and the files that it includes."""
