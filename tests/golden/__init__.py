"""Snapshots beside the exact files that they must compile to; adding a case is adding a folder."""
