"""OBSERVE → SHOW, overflow: who wants traffic, who serves it and why, and what would be if."""
