"""Prints the table and how many checks it stands for: `python -m tests.permissions`."""

from __future__ import annotations

from tests.permissions.table import as_text

print(as_text())
