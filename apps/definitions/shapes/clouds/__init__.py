"""Accounts at clouds, what stands there, and addresses."""
