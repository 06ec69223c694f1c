"""SHOW to those who help: what Spillway is and does, without secrets."""
