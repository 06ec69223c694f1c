"""REPLACE: servers of a pool leave, are replaced by their owner, and come back, batch by batch."""
