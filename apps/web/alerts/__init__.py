"""SHOW to people: what is firing, the rules that make it, and whom it is told."""
