"""PUSH: which objects a node refuses, and how they are kept apart."""
