"""SHOW: what is left to do before the first request is served, for customers and for operators."""
