"""SHOW to operators: how Spillway itself does."""
