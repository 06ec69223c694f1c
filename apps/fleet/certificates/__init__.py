"""Certificates of enrolled nodes: the authorities that sign them, what they signed, what counts no more."""
