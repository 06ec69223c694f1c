"""Kernel: keys, and what is sealed with them."""
