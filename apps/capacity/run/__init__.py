"""CAPACITY, the run: from the claim to the last step."""
