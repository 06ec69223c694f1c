"""SHOW: from one object to others: who uses it, and what else there is of its kind."""
