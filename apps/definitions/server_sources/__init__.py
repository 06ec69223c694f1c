"""Servers that are found: a source is asked every two seconds, and the backend has the servers that it lists."""
