"""SHOW to operators: the parts of Spillway, each with its state, what was found and what to do."""
