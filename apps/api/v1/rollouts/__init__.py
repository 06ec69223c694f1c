"""SHOW to machines: changes, plans and batches, and how far they have come."""
