"""PUSH: one fleet from what is desired to what every node confirms."""
