"""Kernel: leases, locks and fair shares of threads."""
