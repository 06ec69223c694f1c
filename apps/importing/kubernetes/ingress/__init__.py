"""Ingress: hosts and paths, and what controllers read in annotations."""
