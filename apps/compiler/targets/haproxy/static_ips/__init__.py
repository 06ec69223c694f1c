"""COMPILE for keepalived and BIRD: static IPs that move."""
