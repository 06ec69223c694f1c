"""Packages for Debian: what debhelper reads, and the command that builds them."""
