"""SHOW to machines, written down: what each URL does with each method."""
