"""SHOW: what templates can do with observed numbers."""
