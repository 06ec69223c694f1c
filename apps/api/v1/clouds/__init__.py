"""SHOW to machines: stacks, static IPs and zones beyond their definitions."""
