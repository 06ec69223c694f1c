"""OBSERVE, verdicts: facts become conditions."""
