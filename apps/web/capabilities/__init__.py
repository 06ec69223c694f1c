"""SHOW: forms follow what the targets can do, as the one table of capabilities says."""
